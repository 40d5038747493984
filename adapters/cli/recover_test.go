package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestRecoverToStdoutKeepsItForTheBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	o := w.mustRun("recover", "--change", "c1", "/etc/hosts", "-o", "-")
	o.want(t, 0, "sha256  ", "unmounted", "web01 was not touched: copy the file back yourself\n")
	if o.out != "127.0.0.1 localhost\n" {
		t.Errorf("stdout:\n%s", o.out)
	}
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", "-", "--json").want(t, 64, "both want stdout")
}

func TestRecoverSaysThatTheVMWasNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	dest := filepath.Join(t.TempDir(), "hosts")
	recover := []string{"recover", "--change", "c1", "/etc/hosts", "-o", dest, "--force"}
	if o := w.mustRun(recover...); o.err != "web01 was not touched: copy the file back yourself\n" {
		t.Errorf("stderr:\n%s", o.err)
	}
	if o := w.mustRun(append(recover, "--json")...); o.err != "" {
		t.Errorf("stderr with --json:\n%s", o.err)
	}
}

func TestRecoverRefusesADestinationThatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	dir := t.TempDir()
	file := filepath.Join(dir, "hosts")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", file).want(t, 1, "exists", "--force replaces it\n")
	before := len(w.sim.Requests())
	for _, folder := range []string{dir, dir + "/", filepath.Join(dir, "none") + "/"} {
		w.run("recover", "--change", "c1", "/etc/hosts", "-o", folder, "--force").want(t, 64, folder+" is a folder: give a file name")
	}
	if n := len(w.sim.Requests()); n != before {
		t.Errorf("%d requests for a destination that cannot be", n-before)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "mine" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestAnInterruptedRecoverSaysThatNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithMountTime(time.Hour))
	w.guard()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if ctx.Err() != nil || w.sim.Count("POST", "/v1/flrs") == 1 && w.sim.Count("GET", "/v1/flrs/*") > 0 {
				cancel()
				return
			}
		}
	}()
	dest := filepath.Join(t.TempDir(), "hosts")
	o := w.runUntil(ctx, "recover", "--change", "c1", "/etc/hosts", "-o", dest)
	o.want(t, 130, "interrupted", "nothing was written, and no FLR session of this command is left open\n")
	if live := w.sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
	if _, err := os.Stat(dest); !os.IsNotExist(err) {
		t.Errorf("the destination is there: %v", err)
	}
}

func TestBrowseTellsAFileFromAnEmptyFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.web01.Guest().Mkdir("/empty"); err != nil {
		t.Fatal(err)
	}
	w.write("/odd/denied", "x")
	if err := w.web01.Guest().Deny("/odd/denied", "it is in use"); err != nil {
		t.Fatal(err)
	}
	w.guard()
	for path, want := range map[string]string{
		"/etc/hosts": "Volume1-Ext4/etc/hosts is a file, 20 bytes; use recover\n",
		"/empty":     "empty folder\n",
	} {
		if o := w.mustRun("browse", "--change", "c1", path); o.out != want {
			t.Errorf("%s: stdout %q, want %q", path, o.out, want)
		}
	}
	if o := w.mustRun("browse", "--change", "c1", "/odd"); !strings.Contains(o.out, "NOTE\n") || !strings.Contains(o.out, "it is in use") {
		t.Errorf("stdout:\n%s", o.out)
	}
}
