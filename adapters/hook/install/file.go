package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged says that a file was changed by somebody else between the plan of a change and its writing.
var ErrChanged = errors.New("the file was changed meanwhile; nothing was written")

// backupSuffix ends the name of what a file held before it was first changed. Hosts that read every .json of a folder pass
// it by.
const backupSuffix = ".zerto-rewind-backup"

// maxLinks is how many symbolic links lead to a file at most.
const maxLinks = 40

// Change is what will be written to one file. Nothing is written before [Change.Apply].
type Change struct {
	// Path is the file as its host names it. A symbolic link there stays one: what it leads to is written.
	Path string
	// Before is what the file holds, nil when it does not exist. After is what it will hold, nil when it will be removed.
	Before, After []byte
	// Backup is the file that keeps Before, empty when none is written.
	Backup string
	// Notes are what a person should know of it.
	Notes []string

	target string      // Path without its links
	mode   fs.FileMode // of After
	stale  string      // a backup that has nothing left to keep
}

// Changed reports whether Apply has anything to do.
func (c *Change) Changed() bool {
	return !bytes.Equal(c.Before, c.After) || (c.Before == nil) != (c.After == nil)
}

// Apply writes the change: the backup first, then the file, whole or not at all. It returns [ErrChanged] if the file no
// longer holds Before.
func (c *Change) Apply() error {
	if !c.Changed() {
		return nil
	}
	now, err := readFile(c.target)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, c.Before) || (now == nil) != (c.Before == nil) {
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	}
	if c.Backup != "" {
		if err := writeFile(c.Backup, c.Before, c.mode); err != nil {
			return err
		}
	}
	if c.After == nil {
		err = os.Remove(c.target)
	} else {
		err = writeFile(c.target, c.After, c.mode)
	}
	if err == nil && c.stale != "" {
		err = os.Remove(c.stale)
	}
	return err
}

// openChange reads the file at a path. A file that is made gets the mode.
func openChange(path string, mode fs.FileMode) (*Change, error) {
	target, err := follow(path)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: path, target: target, mode: mode}
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a file", path)
		}
		c.mode = info.Mode().Perm()
	}
	c.Before, err = readFile(target)
	c.After = c.Before
	return c, err
}

// follow returns what the links at a path lead to, whether it exists or not.
func follow(path string) (string, error) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link, or nothing there: the end of the chain
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: its symbolic links lead in a circle", path)
}

// readFile returns nil for a file that does not exist.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%s is too large for settings", path)
	}
	return append([]byte{}, data...), nil
}

// writeFile puts a file at a path whole or not at all.
func writeFile(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if folder, err := os.Open(dir); err == nil {
		_ = folder.Sync() // the name lasts from here on, where the system can say so
		_ = folder.Close()
	}
	return nil
}
