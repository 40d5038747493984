package mcpadapter

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// destination is where a file goes below the recovery folder.
type destination struct {
	rewind.Sink

	// folder is the one that the file will lie in. Each folder on the way was opened from the one above it and found to be
	// the very folder that was seen there, so that no link is followed, one that is put there meanwhile included.
	folder *os.Root
	path   string // absolute
}

// belowRecoverDir refuses a bad destination before anything is asked of the ZVM. The caller closes the folder.
func (t *toolset) belowRecoverDir(dest string, replace bool) (*destination, error) {
	switch {
	case t.recoverDir == "":
		return nil, destRefused("This server has no recovery folder, so it writes no files.",
			"Call again without dest for a small text file, or ask the human for a recovery folder.", nil)
	case !plainPath(dest):
		return nil, destRefused("The destination has to be a plain path below the recovery folder.",
			"Call again with a relative path with / between names and without .. in it, of at most 512 bytes.", nil)
	}
	folder, err := openFolder(t.recoverDir, path.Dir(dest))
	if err != nil {
		return nil, destRefused("The folder of the destination cannot be used.",
			"Call again with another destination; links are not followed.", err)
	}
	var opts []rewind.FileOption
	if replace {
		opts = append(opts, rewind.Replace())
	}
	d := &destination{
		Sink: rewind.ToRoot(folder, path.Base(dest), opts...), folder: folder,
		path: filepath.Join(t.recoverDir, filepath.FromSlash(dest)),
	}
	if err := d.Check(); err != nil {
		_ = folder.Close()
		return nil, explainDest(err)
	}
	return d, nil
}

// maxDestination keeps the whole path within what every system opens, and the folders that are made few. In bytes.
const maxDestination = 512

// plainPath reports whether a path names a file below a folder in the same way on every system.
func plainPath(dest string) bool {
	odd := func(r rune) bool { return r == '\\' || unicode.IsControl(r) }
	return dest != "." && len(dest) <= maxDestination && fs.ValidPath(dest) && filepath.IsLocal(filepath.FromSlash(dest)) && !strings.ContainsFunc(dest, odd)
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

// explainDest tells what went wrong at the destination. Any other error stays as it is.
func explainDest(err error) error {
	var failed *rewind.DestinationError
	switch {
	case !errors.As(err, &failed):
		return err
	case errors.Is(err, fs.ErrExist):
		return errors.Join(&refused{refusalError{
			Code: codeDestExists, Message: "A file of that name exists.", NotDone: notWritten,
			NextStep: "Call again with another destination, or with force when the file may be replaced.",
		}}, err)
	}
	return errors.Join(destRefused("The destination cannot be written.", "See detail for the reason, or call again with another destination.", failed), err)
}

func destRefused(message, next string, cause error) error {
	e := refusalError{Code: codeDestRefused, Message: message, NotDone: notWritten, NextStep: next}
	if cause != nil {
		e.Detail = cause.Error()
	}
	return &refused{e}
}

const notWritten = "No file was written or replaced."
