//go:build unix

package rewind_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	// fullCase tells the process of a test that files end early in it, and fullDest where to recover to.
	fullCase, fullDest = "REWIND_TEST_FULL_CASE", "REWIND_TEST_FULL_DEST"
	fullAt             = 512 << 10
)

// fullDisks recover to a folder that holds "f" while no file can be longer than fullAt.
var fullDisks = map[string]func(t *testing.T, dir string){
	"a file": func(t *testing.T, dir string) {
		w := newWorld(t)
		must(t, w.web.Guest().WriteZeros("/big", 4*fullAt))
		_, err := w.Recover(t.Context(), w.guard(t, "web01"), "/big", rewind.ToFile(filepath.Join(dir, "f"), rewind.Replace()))
		isFullDestination(t, err)
		w.nothingMounted(t)
	},
	"the zip of a file": func(t *testing.T, dir string) {
		w := newWorld(t, zvmtest.WithSwitch(zvmtest.DownloadZipped))
		must(t, w.web.Guest().WriteZeros("/big", 4*fullAt))
		_, err := w.Recover(t.Context(), w.guard(t, "web01"), "/big", rewind.ToFile(filepath.Join(dir, "f"), rewind.Replace()))
		if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "/big") || !strings.Contains(err.Error(), "temporary files") {
			t.Errorf("got %v, want EFBIG, the file and where there is no room", err)
		}
		w.nothingMounted(t)
	},
	"a file of a tree": func(t *testing.T, dir string) {
		w := newTreeWorld(t)
		must(t, w.web.Guest().WriteZeros("/srv/site/conf.d/big", 4*fullAt))
		isFullTree(t, w, dir)
	},
	"a file of a tree, in a zip that has room": func(t *testing.T, dir string) {
		w := newTreeWorld(t)
		must(t, w.web.Guest().WriteFile("/srv/site/conf.d/big", make([]byte, fullAt+1)))
		isFullTree(t, w, dir)
		if w.sim.Count("POST", "/v1/flrs/*/download") != 2 { // of a folder each
			t.Error("the file did not come in a zip")
		}
	},
	"the zip of a tree, whose files have room": func(t *testing.T, dir string) {
		w := newWorld(t)
		for _, name := range []string{"a", "b", "c"} {
			must(t, w.web.Guest().WriteZeros("/srv/site/"+name, fullAt/2))
		}
		bringsAll(t, w, dir, 3)
	},
	"no folder for a zip": func(t *testing.T, dir string) {
		t.Setenv("TMPDIR", filepath.Join(dir, "none"))
		w := newTreeWorld(t)
		bringsAll(t, w, dir, len(tree))
	},
}

func isFullDestination(t *testing.T, err error) {
	t.Helper()
	var failed *rewind.DestinationError
	if !errors.As(err, &failed) || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("got %v, want a *DestinationError of EFBIG", err)
	}
}

// isFullTree recovers a tree of which "conf.d/big" alone has no room.
func isFullTree(t *testing.T, w *world, dir string) {
	t.Helper()
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site", openRoot(t, dir))
	isFullDestination(t, err)
	if r == nil || !r.Unmounted {
		t.Fatalf("got %+v, want what has arrived", r)
	}
	got := contents(t, dir)
	delete(got, "f")
	if len(got) != len(r.Files) {
		t.Errorf("%d files are there, %d are told", len(got), len(r.Files))
	}
	for name, content := range got {
		if want, known := tree[name]; !known || content != want {
			t.Errorf("%s holds %d bytes", name, len(content))
		}
	}
	w.nothingMounted(t)
}

func bringsAll(t *testing.T, w *world, dir string, files int) {
	t.Helper()
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site", openRoot(t, dir))
	must(t, err)
	if len(r.Files) != files || len(contents(t, dir)) != files+1 {
		t.Errorf("brought %q of %d files", names(r), files)
	}
	w.nothingMounted(t)
}

// Where a file cannot grow to its size, nothing of it stays. The limit is a process's, so a process of its own meets it.
func TestLaw8_AFullDiskLeavesNoFile(t *testing.T) {
	if recoverTo, told := fullDisks[os.Getenv(fullCase)]; told {
		signal.Ignore(syscall.SIGXFSZ)
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fullAt, Max: fullAt}))
		recoverTo(t, os.Getenv(fullDest))
		return
	}
	t.Parallel()
	for name := range fullDisks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, temp := t.TempDir(), t.TempDir()
			dest := filepath.Join(dir, "f")
			must(t, os.WriteFile(dest, []byte("mine"), 0o600))
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLaw8_AFullDiskLeavesNoFile$")
			child.Env = append(os.Environ(), fullCase+"="+name, fullDest+"="+dir, "TMPDIR="+temp)
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			holds(t, dest, "mine")
			folderIs(t, temp)
			if left, _ := filepath.Glob(filepath.Join(dir, ".rewind-*")); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func TestLaw8_AFolderThatMayNotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	if os.Geteuid() == 0 {
		dir = "/proc" // which nobody may write to
	}
	_, err := w.Recover(t.Context(), w.guard(t, "web01"), nginxConf, rewind.ToFile(filepath.Join(dir, "f")))
	var failed *rewind.DestinationError
	if !errors.As(err, &failed) {
		t.Errorf("got %v, want *DestinationError", err)
	}
	w.nothingMounted(t)
}
