//go:build unix

package zvmtest

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe that nobody writes to would hang the server.
func TestMountedDirectoryNeverOpensSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	done(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	g := frozenGuest(t, LinuxLayout())
	done(t, g.MountDir("/mnt", dir))
	self, _, err := g.snapshot().browse("Volume1-Ext4/mnt/fifo")
	done(t, err)
	expect(t, "reason", "Cannot restore. special files are not supported.", self.reason)
}
