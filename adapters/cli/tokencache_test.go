package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestTheTokenCacheIsOffByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.env["ZERTO_REWIND_STATE_DIR"] = dir
	w.mustRun("find", "web01")
	w.mustRun("find", "web01")
	if n := w.sim.TokenRequests(); n != 2 {
		t.Errorf("%d logins of two runs, want 2", n)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the state folder holds %v, %v", entries, err)
	}
}

func TestRunsShareOneLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.ConcurrentLoginRefused))
	dir := t.TempDir()
	w.env["ZERTO_REWIND_STATE_DIR"], w.env["ZERTO_REWIND_TOKEN_CACHE"] = dir, "1"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if o := w.run("find", "web01"); o.code != 0 {
				t.Errorf("exit %d: %s", o.code, o.err)
			}
		})
	}
	wg.Wait()
	if n := w.sim.TokenRequests(); n != 1 {
		t.Errorf("%d logins of eight runs at once, want 1", n)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tokens", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", f, info.Mode(), err)
		}
	}
	w.env["ZVM_USERNAME"] = "somebody-else"
	if o := w.run("find", "web01"); o.code != 4 {
		t.Errorf("another user got in by the first one's token: exit %d", o.code)
	}
}

// TestProcessesShareOneLogin runs real processes, which share nothing but the file.
func TestProcessesShareOneLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.ConcurrentLoginRefused))
	binary := filepath.Join(t.TempDir(), "zerto-rewind")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/zerto-rewind")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.env["ZERTO_REWIND_STATE_DIR"], w.env["ZERTO_REWIND_TOKEN_CACHE"] = t.TempDir(), "1"
	environment := []string{}
	for k, v := range w.env {
		environment = append(environment, k+"="+v)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			c := exec.CommandContext(t.Context(), binary, "find", "web01")
			c.Env = environment
			if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "web-local") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if n := w.sim.TokenRequests(); n != 1 {
		t.Errorf("%d logins of five processes at once, want 1", n)
	}
}

func TestATokenCacheOthersMayReadIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.env["ZERTO_REWIND_STATE_DIR"], w.env["ZERTO_REWIND_TOKEN_CACHE"] = dir, "1"
	if err := os.MkdirAll(filepath.Join(dir, "tokens"), 0o755); err != nil { //nolint:gosec // this is what is to be refused
		t.Fatal(err)
	}
	if o := w.run("find", "web01"); o.code != 64 || !strings.Contains(o.err, "chmod 700") {
		t.Errorf("exit %d: %s", o.code, o.err)
	}
}

func TestADamagedTokenFileIsAsGoodAsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.env["ZERTO_REWIND_STATE_DIR"], w.env["ZERTO_REWIND_TOKEN_CACHE"] = dir, "1"
	w.mustRun("find", "web01")
	files, _ := filepath.Glob(filepath.Join(dir, "tokens", "*.json"))
	for _, f := range files {
		if err := os.WriteFile(f, []byte(`{"access":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.mustRun("find", "web01")
	if n := w.sim.TokenRequests(); len(files) != 1 || n != 2 {
		t.Errorf("%d files, %d logins, want 1 and 2", len(files), n)
	}
}
