package cli_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

var update = flag.Bool("update", false, "write the golden files")

// moment is where the clock of a simulation stands, so that outputs repeat.
var moment = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// world is a simulated ZVM and the environment that leads to it.
type world struct {
	t   *testing.T
	sim *zvmtest.Server
	env map[string]string

	local, remote *zvmtest.VPG
	web01         *zvmtest.VM
}

// newWorld has web01 in a local VPG and one to another site. Everything is done at once, and time stands still.
func newWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	w := emptyWorld(t, opts...)
	w.local = w.sim.AddVPG("web-local", zvmtest.VPGConfig{})
	w.remote = w.sim.AddVPG("web-remote", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("Recovery")})
	w.web01 = w.sim.AddVM("web01", w.local, w.remote)
	w.write("/etc/hosts", "127.0.0.1 localhost\n")
	return w
}

func emptyWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	sim := zvmtest.Start(t, append([]zvmtest.Option{
		zvmtest.WithManualClock(moment), withinReach(t),
		zvmtest.WithInsertTime(0), zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0),
	}, opts...)...)
	return &world{t: t, sim: sim, env: map[string]string{
		"ZVM_URL": sim.URL(), "ZVM_USERNAME": sim.Username(), "ZVM_PASSWORD": sim.Password(), "ZVM_CERT_SHA256": sim.CertSHA256(),
		"ZERTO_REWIND_AGENT": "patch-bot", "ZERTO_REWIND_STATE_DIR": filepath.Join(t.TempDir(), "state"),
	}}
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := w.web01.Guest().WriteFile(path, []byte(content)); err != nil {
		w.t.Fatal(err)
	}
}

// without makes an environment that lacks some variables.
func (w *world) without(names ...string) *world {
	c := *w
	c.env = map[string]string{}
	for name, value := range w.env {
		c.env[name] = value
	}
	for _, name := range names {
		delete(c.env, name)
	}
	return &c
}

// with makes an environment in which a variable has another value.
func (w *world) with(name, value string) *world {
	c := w.without()
	c.env[name] = value
	return c
}

// outcome is what one run did.
type outcome struct {
	code     int
	out, err string
}

func (w *world) run(args ...string) outcome {
	w.t.Helper()
	return w.runUntil(w.t.Context(), args...)
}

func (w *world) runUntil(ctx context.Context, args ...string) outcome {
	w.t.Helper()
	var out, err bytes.Buffer
	code := cli.Run(ctx, cli.IO{In: strings.NewReader(""), Out: &out, Err: &err, Env: w.lookup}, args)
	return outcome{code, out.String(), err.String()}
}

func (w *world) lookup(name string) (string, bool) {
	value, set := w.env[name]
	return value, set
}

// mustRun is run for a step that only prepares.
func (w *world) mustRun(args ...string) outcome {
	w.t.Helper()
	o := w.run(args...)
	if o.code != 0 {
		w.t.Fatalf("%v: exit code %d, stderr:\n%s", args, o.code, o.err)
	}
	return o
}

// guard guards change c1 of web01.
func (w *world) guard() {
	w.t.Helper()
	w.mustRun("protect", "web01", "--action", "upgrade nginx", "--change", "c1")
}

func (o outcome) want(t *testing.T, code int, inErr ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; stderr:\n%s", o.code, code, o.err)
	}
	for _, text := range inErr {
		if !strings.Contains(o.err, text) {
			t.Errorf("stderr lacks %q:\n%s", text, o.err)
		}
	}
}

var (
	proven   = regexp.MustCompile(`("provenAt": "|journal at )(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\d`)
	fraction = regexp.MustCompile(`(\d\d:\d\d:\d\d)\.\d+Z`)
	guid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	seconds  = regexp.MustCompile(`"seconds": [\d.e-]+`)
	digest   = regexp.MustCompile(`--call [0-9a-f]{16}`)
	address  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// steady takes out what differs between runs: identifiers, the port, how long things took, fractions of a
// second, and the second of a proof, to which the time that it took is added.
func steady(text string) string {
	text = fraction.ReplaceAllString(text, "${1}Z")
	text = proven.ReplaceAllString(text, "${1}${2}:SS")
	text = seconds.ReplaceAllString(text, `"seconds": SECONDS`)
	text = digest.ReplaceAllString(text, "--call DIGEST")
	text = address.ReplaceAllString(text, "127.0.0.1:PORT")
	return guid.ReplaceAllString(text, "GUID")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s mismatch (-want +got):\n%s", name, diff)
	}
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}
