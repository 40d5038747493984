package catalogfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockRetry = 20 * time.Millisecond // how often a lock that another process holds is tried
	maxLinks  = 40                    // as Linux
	newMode   = 0o600                 // of a file that was not there
	emptyFile = "{\n  \"version\": 1\n}\n"
)

// Update edits the file at path, which need not be there yet, and no other process edits it meanwhile. A symbolic link is
// followed and stays one; another name of the same file, a hard link, keeps the old content. When edit fails or changes
// nothing, nothing is written; when anything fails, the file is as it was. It waits for other processes until ctx ends.
func Update(ctx context.Context, path string, edit func(*Edit) error) error {
	return systemDisk().update(ctx, path, edit)
}

// disk is how a file is replaced, so that tests can let that fail.
type disk struct {
	rename func(from, to string) error
	// busy reports whether a failed rename may succeed a moment later.
	busy func(error) bool
}

func systemDisk() disk { return disk{os.Rename, busyOnWindows} }

func (d disk) update(ctx context.Context, path string, edit func(*Edit) error) error {
	target, linked, err := follow(path)
	if err != nil {
		return err
	}
	if !linked {
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
	}
	lock := flock.New(target+".lock", flock.SetPermissions(newMode))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("%s was not changed: a lock beside it could not be had: %w", target, err)
	}
	defer func() { _ = lock.Unlock() }() // the process's end would release it too

	before, mode, err := read(target)
	if errors.Is(err, fs.ErrNotExist) {
		before, mode, err = nil, newMode, nil
	}
	if err != nil {
		return err
	}
	after, err := edited(target, before, edit)
	if err != nil || after == nil || bytes.Equal(before, after) {
		return err
	}
	if err := d.replace(ctx, target, after, mode); err != nil {
		return fmt.Errorf("%s was not changed: %w", target, err)
	}
	return nil
}

// follow returns the file that a path leads to through links, whether or not that is there. Linked says that there was a
// link in the path's last place.
func follow(path string) (target string, linked bool, err error) {
	target = path
	for range maxLinks {
		// A link is relative to the folder that it really is in, which a path through another link does not show.
		folder, name := filepath.Split(target) // which leaves ".." behind a link alone
		folder, err := filepath.EvalSymlinks(folder + ".")
		if errors.Is(err, fs.ErrNotExist) && !linked {
			return target, false, nil
		}
		if err != nil {
			return "", linked, err
		}
		target = filepath.Join(folder, name)
		info, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return target, linked, nil
		case err != nil:
			return "", linked, err
		case info.Mode().IsRegular():
			return target, linked, nil
		case info.Mode()&fs.ModeSymlink == 0:
			return "", linked, fmt.Errorf("%s is not a file", target)
		}
		next, err := os.Readlink(target)
		if err != nil {
			return "", linked, err
		}
		if !filepath.IsAbs(next) {
			next = folder + string(filepath.Separator) + next
		}
		target, linked = next, true
	}
	return "", linked, fmt.Errorf("%s: its links lead nowhere", path)
}

// replace puts the content in the place of the file in one step, after all of it has reached the disk.
func (d disk) replace(ctx context.Context, path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.renamed(ctx, f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync() // the name is not on the disk for certain before, but not every system can say so
		_ = folder.Close()
	}
	return nil
}

const (
	renameTries    = 10
	maxRenamePause = 100 * time.Millisecond
)

// renamed tries again while another program has the file open, which on Windows is in the way.
func (d disk) renamed(ctx context.Context, from, to string) error {
	for try := 1; ; try++ {
		err := d.rename(from, to)
		if err == nil || !d.busy(err) {
			return err
		}
		if try == renameTries {
			return fmt.Errorf("another program, such as an editor or a virus scanner, has it open: %w", err)
		}
		pause := time.NewTimer(rand.N(maxRenamePause)) //nolint:gosec // spreads tries
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// The two codes by which Windows refuses to replace a file that somebody reads.
const (
	windowsAccessDenied     = syscall.Errno(5)
	windowsSharingViolation = syscall.Errno(32)
)

func busyOnWindows(err error) bool { return runtime.GOOS == "windows" && isBusyCode(err) }

func isBusyCode(err error) bool {
	return errors.Is(err, windowsAccessDenied) || errors.Is(err, windowsSharingViolation)
}
