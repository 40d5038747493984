package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// changed is a world whose guest came to differ after change c1.
func changed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.write("/etc/old", "gone soon\n")
	w.write("/etc/kept", "kept\n")
	if err := w.web01.Guest().Symlink("kept", "/etc/link"); err != nil {
		t.Fatal(err)
	}
	w.guard()
	w.sim.Advance(2 * time.Minute)
	w.write("/etc/hosts", "127.0.0.1 elsewhere\n")
	w.write("/etc/new", "new\n")
	if err := w.web01.Guest().Remove("/etc/old"); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestDiff(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.mustRun("protect", "web01", "--action", "look again", "--change", "c2")
	text := w.mustRun("diff", "--change", "c1", "--to", "c2", "/etc")
	golden(t, "diff.txt", steady(text.out))
	document := w.mustRun("diff", "--change", "c1", "--to", "c2", "--vm", "web01", "/etc", "--json")
	golden(t, "diff.json", steady(document.out))
	if text.err != "" || document.err != "" {
		t.Errorf("words on stderr:\n%s%s", text.err, document.err)
	}
	if o := w.mustRun("diff", "--change", "c1", "--to", "c1", "/etc"); !strings.Contains(o.out, "no difference seen\n") {
		t.Errorf("stdout:\n%s", o.out)
	}
	if o := w.mustRun("diff", "--change", "c1", "--to", "c2", "/etc/hosts"); !strings.Contains(o.out, "\nchanged  hosts  ") {
		t.Errorf("of a single file:\n%s", o.out)
	}
	if live := w.sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
}

func TestDiffWithoutALaterChangeGuardsTheVMAfterSayingSo(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.run("diff", "--change", "c1", "--to", "none", "/etc").want(t, 5, "none")
	if n := len(w.local.TaggedCheckpoints()); n != 1 {
		t.Fatalf("%d tagged checkpoints before there was anything to guard", n)
	}
	o := w.mustRun("diff", "--change", "c1", "/etc")
	if n := len(w.local.TaggedCheckpoints()); n != 2 || o.err != "guarding web01 as it is now, to compare with\n" {
		t.Errorf("%d tagged checkpoints, stderr:\n%s", n, o.err)
	}
	for _, line := range []string{"added", "removed", "changed"} {
		if !strings.Contains(o.out, "\n"+line+" ") {
			t.Errorf("stdout lacks %q:\n%s", line, o.out)
		}
	}
	w.sim.Advance(2 * time.Minute)
	if o := w.mustRun("diff", "--change", "c1", "/etc", "--json"); !json.Valid([]byte(o.err)) || !strings.Contains(o.err, "guarding") {
		t.Errorf("stderr with --json:\n%s", o.err)
	}
}

func TestDiffShowsTheChangesOfTextFilesOnRequest(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.write("/etc/tab", "a\tb\x1b[2J\r\nno end")
	w.write("/etc/latin1", "caf\xe9\n")
	w.write("/etc/binary", "a\x00b")
	w.write("/etc/empty", "")
	w.write("/etc/line\n+forged", "x\n")
	if err := w.web01.Guest().WriteZeros("/etc/large", rewind.DefaultHashUpTo+1); err != nil {
		t.Fatal(err)
	}
	w.mustRun("protect", "web01", "--action", "look again", "--change", "c2")
	diff := []string{"diff", "--change", "c1", "--to", "c2", "/etc", "-u"}
	text := w.mustRun(diff...)
	golden(t, "diff-unified.txt", steady(text.out))
	document := w.mustRun(append(diff, "--json")...)
	if strings.Contains(document.out, `"content"`) {
		t.Error("the contents themselves are printed")
	}
	var got struct {
		Texts []struct{ Path, Unified, Reason string }
	}
	if err := json.Unmarshal([]byte(document.out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"binary": "it is binary", "latin1": "it is not UTF-8 text", "large": "it is larger than 1048576 bytes", "empty": "",
		"hosts":         "--- a/hosts\n+++ b/hosts\n@@ -1 +1 @@\n-127.0.0.1 localhost\n+127.0.0.1 elsewhere\n",
		"new":           "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n",
		"old":           "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone soon\n",
		"line\n+forged": "--- /dev/null\n+++ b/line\\n+forged\n@@ -0,0 +1 @@\n+x\n",
		"tab":           "--- /dev/null\n+++ b/tab\n@@ -0,0 +1,2 @@\n+a\tb\x1b[2J\r\n+no end\n\\ No newline at end of file\n",
	}
	told := map[string]string{}
	for _, d := range got.Texts {
		told[d.Path] = d.Unified + d.Reason
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestDiffOfOneFileIsUnderItsName(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.mustRun("protect", "web01", "--action", "look again", "--change", "c2")
	if o := w.mustRun("diff", "--change", "c1", "--to", "c2", "/etc/hosts", "--unified"); !strings.Contains(o.out, "\n\n--- a/hosts\n+++ b/hosts\n@@") {
		t.Errorf("stdout:\n%s", o.out)
	}
	for _, unified := range []string{"--unified=true", "--unified=false"} {
		o := w.mustRun("diff", "--change", "c1", "--to", "c1", "/etc/hosts", "--json", unified)
		if strings.Contains(o.out, `"texts": []`) != (unified == "--unified=true") {
			t.Errorf("%s prints\n%s", unified, o.out)
		}
	}
}

func TestDiffOfWhatCannotAllBeReadSaysSo(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.write(`/etc/unit\x2da.mount`, "x")
	w.write("/srv/shut/file", "x")
	w.mustRun("protect", "web01", "--action", "look again", "--change", "c2")
	if err := w.web01.Guest().Deny("/srv/shut", "scripted: damaged"); err != nil {
		t.Fatal(err)
	}
	w.sim.Advance(2 * time.Minute)
	w.mustRun("protect", "web01", "--action", "look a third time", "--change", "c3")
	for path, want := range map[string]struct {
		code      int
		out, warn string
	}{
		"/etc": {0, `not compared  unit\x2da.mount  -  its path cannot be asked for`, ""},
		"/srv": {3, "not compared  shut       -  scripted: damaged", "not every folder was read whole"},
	} {
		o := w.run("diff", "--change", "c2", "--to", "c3", path)
		o.want(t, want.code, want.warn)
		if !strings.Contains(o.out, want.out) || (o.err == "") != (want.warn == "") {
			t.Errorf("%s: stdout:\n%sstderr:\n%s", path, o.out, o.err)
		}
		w.run("diff", "--change", "c2", "--to", "c3", path, "--json").want(t, want.code, want.warn)
	}
}

func TestDiffHelp(t *testing.T) {
	t.Parallel()
	help, _, _ := strings.Cut(emptyWorld(t).mustRun("diff", "--help").out, "\nGlobal Flags:")
	golden(t, "diff-help.txt", help)
}
