package mcpadapter

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// destination is a file that is being written below the recovery folder, and gets its name when it is whole.
//
// It keeps the folder open that it lies in. Each folder on the way was opened from the one above it and found to be the
// very folder that was seen there, so that no link is followed, one that is put there meanwhile included.
type destination struct {
	*os.File

	folder  *os.Root
	temp    string
	name    string
	path    string // absolute
	replace bool
	moved   bool // the temporary name is the destination's by now
}

// createBelowRecoverDir refuses a bad destination before anything is asked of the ZVM.
func (t *toolset) createBelowRecoverDir(dest string, replace bool) (*destination, error) {
	switch {
	case t.recoverDir == "":
		return nil, destRefused("This server has no recovery folder, so it writes no files.",
			"Call again without dest for a small text file, or ask the human for a recovery folder.", nil)
	case !plainPath(dest):
		return nil, destRefused("The destination has to be a plain path below the recovery folder.",
			"Call again with a relative path with / between names and without .. in it.", nil)
	}
	folder, err := openFolder(t.recoverDir, path.Dir(dest))
	if err != nil {
		return nil, destRefused("The folder of the destination cannot be used.",
			"Call again with another destination; links are not followed.", err)
	}
	d := &destination{
		folder: folder, name: path.Base(dest), path: filepath.Join(t.recoverDir, filepath.FromSlash(dest)), replace: replace,
		// A short name of its own: one made from the destination's could be too long for the file system.
		temp: ".rewind-" + rand.Text()[:10],
	}
	if err := d.begin(); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return d, nil
}

// plainPath reports whether a path names a file below a folder in the same way on every system.
func plainPath(dest string) bool {
	odd := func(r rune) bool { return r == '\\' || unicode.IsControl(r) }
	return dest != "." && fs.ValidPath(dest) && filepath.IsLocal(filepath.FromSlash(dest)) && !strings.ContainsFunc(dest, odd)
}

// openFolder opens a folder below base, making those that are missing, and follows no link.
func openFolder(base, below string) (*os.Root, error) {
	folder, err := os.OpenRoot(base)
	if err != nil || below == "." {
		return folder, err
	}
	for name := range strings.SplitSeq(below, "/") {
		next, err := enter(folder, name)
		_ = folder.Close()
		if err != nil {
			return nil, err
		}
		folder = next
	}
	return folder, nil
}

func enter(folder *os.Root, name string) (*os.Root, error) {
	if err := folder.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	seen, err := folder.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, &fs.PathError{Op: "enter", Path: name, Err: errors.New("not a folder, or a link to one")}
	}
	next, err := folder.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(seen, opened) {
		_ = next.Close()
		return nil, &fs.PathError{Op: "enter", Path: name, Err: errors.New("the folder was exchanged meanwhile")}
	}
	return next, nil
}

func (d *destination) begin() error {
	if err := d.check(); err != nil {
		return err
	}
	file, err := d.folder.OpenFile(d.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return destRefused("The destination cannot be written.", seeDetail, err)
	}
	d.File = file
	return nil
}

// check refuses what may not be replaced.
func (d *destination) check() error {
	info, err := d.folder.Lstat(d.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return destRefused("The destination cannot be used.", seeDetail, err)
	case !info.Mode().IsRegular():
		return destRefused("The destination is not a regular file and is not replaced.", "Call again with another destination.", nil)
	case !d.replace:
		return destExists()
	}
	return nil
}

// commit gives the file its name, as the last step.
func (d *destination) commit() error {
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return destRefused("The destination could not be written to its end.", seeDetail, err)
	}
	if err := d.check(); err != nil {
		return err
	}
	// A hard link fails where a file exists by now, which a rename would silently replace.
	if !d.replace {
		err := d.folder.Link(d.temp, d.name)
		if errors.Is(err, fs.ErrExist) {
			return destExists()
		}
		if err == nil {
			d.syncFolder()
			return nil
		}
	}
	if err := d.folder.Rename(d.temp, d.name); err != nil {
		return destRefused("The destination could not be given its name.", seeDetail, err)
	}
	d.moved = true
	d.syncFolder()
	return nil
}

// syncFolder makes the new name last. Systems that cannot sync a folder keep names in their own way.
func (d *destination) syncFolder() {
	if folder, err := d.folder.Open("."); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}

// discard removes what has no name yet and lets go of the folder.
func (d *destination) discard() {
	_ = d.Close()
	if !d.moved {
		_ = d.folder.Remove(d.temp)
	}
	_ = d.folder.Close()
}

func destExists() error {
	return &refused{refusalError{
		Code: codeDestExists, Message: "A file of that name exists.", NotDone: notWritten,
		NextStep: "Call again with another destination, or with force when the file may be replaced.",
	}}
}

func destRefused(message, next string, cause error) error {
	e := refusalError{Code: codeDestRefused, Message: message, NotDone: notWritten, NextStep: next}
	if cause != nil {
		e.Detail = cause.Error()
	}
	return &refused{e}
}

const notWritten = "No file was written or replaced."
