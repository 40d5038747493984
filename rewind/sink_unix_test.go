//go:build unix

package rewind_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const (
	// fullDest tells the process of a test that files end early in it, and where to recover to.
	fullDest = "REWIND_TEST_FULL_DEST"
	fullAt   = 1 << 20
)

// Where a file cannot grow to its size, nothing of it stays. The limit is a process's, so a process of its own meets it.
func TestLaw8_AFullDiskLeavesNoFile(t *testing.T) {
	t.Parallel()
	if dest := os.Getenv(fullDest); dest != "" {
		recoverToAFullDisk(t, dest)
		return
	}
	dir := t.TempDir()
	dest := filepath.Join(dir, "f")
	must(t, os.WriteFile(dest, []byte("mine"), 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLaw8_AFullDiskLeavesNoFile$")
	child.Env = append(os.Environ(), fullDest+"="+dest)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	holds(t, dest, "mine")
	folderIs(t, dir, "f")
}

func recoverToAFullDisk(t *testing.T, dest string) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fullAt, Max: fullAt}))
	w := newWorld(t)
	must(t, w.web.Guest().WriteZeros("/big", 4*fullAt))
	_, err := w.Recover(t.Context(), w.guard(t, "web01"), "/big", rewind.ToFile(dest, rewind.Replace()))
	var failed *rewind.DestinationError
	if !errors.As(err, &failed) || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("got %v, want a *DestinationError of EFBIG", err)
	}
	w.nothingMounted(t)
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
