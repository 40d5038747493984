package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

var varying = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`(?m)^ *\d+\.\d\d s`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`change [a-z2-7-]{14} `), "change ID "},
	{regexp.MustCompile(`checkpoint \d+`), "checkpoint ID"},
	{regexp.MustCompile(`[0-9a-f]{64}`), "SUM"},
	{regexp.MustCompile(`\n {18}`), "\n  "},
}

func steady(text string) string {
	for _, v := range varying {
		text = v.found.ReplaceAllString(text, v.shown)
	}
	return text
}

func tell(t *testing.T, env map[string]string, args ...string) (string, error) {
	t.Helper()
	var out, warnings strings.Builder
	lookup := func(name string) (string, bool) { value, set := env[name]; return value, set }
	err := run(t.Context(), cli.IO{Out: &out, Err: &warnings, Env: lookup}, args)
	if strings.Contains(out.String()+warnings.String(), "MARKER") {
		t.Errorf("a secret is shown:\n%s%s", out.String(), warnings.String())
	}
	return steady(out.String()), err
}

func TestTheFileComesBack(t *testing.T) {
	t.Parallel()
	got, err := tell(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `TIME  find     web01 is in these VPGs
  web-local, Production to Production, MeetingSLA: protecting, files come back here
  web-remote, Production to Recovery, MeetingSLA: protecting, files come back at Recovery
TIME  guard    change ID is guarded, proof task+journal
  web-local: task ID Completed, checkpoint ID
  web-remote: task ID Completed, checkpoint ID
TIME  change   /etc/nginx/nginx.conf is wrong now
TIME  recover  Volume1-Ext4/etc/nginx/nginx.conf from checkpoint ID, 60 bytes
  FLR session ID, unmounted: true
TIME  compare  SHA-256 SUM, as before the change
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story mismatch (-want +got):\n%s", diff)
	}
}

func TestAnotherZVMIsToldTheSameStory(t *testing.T) {
	t.Parallel()
	sim := zvmtest.Start(t, zvmtest.WithProfile(zvmtest.Quick))
	vm := sim.AddVM("db01", sim.AddVPG("db", zvmtest.VPGConfig{}))
	if err := vm.Guest().WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ZVM_USERNAME": sim.Username(), "ZVM_PASSWORD": sim.Password(), "ZVM_CERT_SHA256": sim.CertSHA256(),
	}
	got, err := tell(t, env, "-zvm", sim.URL(), "-vm", "db01", "-path", "/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	want := `TIME  find     db01 is in these VPGs
  db, Production to Production, MeetingSLA: protecting, files come back here
TIME  guard    change ID is guarded, proof task+journal
  db: task ID Completed, checkpoint ID
TIME  change   db01 cannot be changed from here: the file comes back as it was guarded
TIME  recover  Volume1-Ext4/etc/hosts from checkpoint ID, 20 bytes
  FLR session ID, unmounted: true
TIME  compare  20 bytes on disk, SHA-256 SUM, as recovered
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story mismatch (-want +got):\n%s", diff)
	}
	if live := sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	_, err := tell(t, nil, "-zvm", "https://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "ZVM_USERNAME, ZVM_PASSWORD or ZVM_PASSWORD_FILE") {
		t.Errorf("error %v, want one that names the settings", err)
	}
}
