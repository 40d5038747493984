package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Exists reports whether there is a ledger in a folder, readable or not. It makes none.
func Exists(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
