//go:build unix

package ledger

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a folder into which somebody else could have put the file.
func checkOwner(dir string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write into %s (chmod 700)", dir)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int64(stat.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s belongs to somebody else", dir)
	}
	return nil
}
