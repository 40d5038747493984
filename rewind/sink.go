package rewind

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Sink is where a recovered file goes. [ToFile] and [ToWriter] make one.
type Sink interface {
	// check refuses early what could only fail later.
	check() error
	// open returns where to write. Commit or discard follows; discard after commit changes nothing.
	open() (pendingFile, error)
	// dest names the destination in results, empty when it has no name.
	dest() string
}

type pendingFile interface {
	io.Writer
	commit() error
	discard()
}

// FileOption changes how [ToFile] writes.
type FileOption func(*fileSink)

// Replace allows an existing file to be replaced. It never allows a folder or a link to be.
func Replace() FileOption { return func(f *fileSink) { f.replace = true } }

// WithMode sets the mode of the new file. The default is 0600: what comes out of a journal may be a secret.
func WithMode(mode fs.FileMode) FileOption { return func(f *fileSink) { f.mode = mode.Perm() } }

// ToFile writes to path. The name appears only after every byte did: the bytes go to a temporary file beside it, are
// synced, and are given the name last. An existing file is an error that matches [fs.ErrExist], unless [Replace] is
// given.
func ToFile(path string, opts ...FileOption) Sink {
	f := &fileSink{path: path, mode: 0o600}
	for _, o := range opts {
		o(f)
	}
	return f
}

type fileSink struct {
	path    string
	replace bool
	mode    fs.FileMode
}

func (f *fileSink) dest() string { return f.path }

func (f *fileSink) check() error {
	if f.path == "" {
		return errors.New("rewind: ToFile needs a path")
	}
	if folder, err := os.Stat(filepath.Dir(f.path)); err != nil {
		return err
	} else if !folder.IsDir() {
		return fmt.Errorf("rewind: %s is not a folder to recover to", filepath.Dir(f.path))
	}
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("rewind: %s is not a regular file and is not replaced", f.path)
	case !f.replace:
		return &fs.PathError{Op: "recover to", Path: f.path, Err: fs.ErrExist}
	}
	return nil
}

func (f *fileSink) open() (pendingFile, error) {
	// A short name of its own: one made from the destination's could be too long for the file system.
	temp := filepath.Join(filepath.Dir(f.path), ".rewind-"+rand.Text()[:10])
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return nil, err
	}
	return &pendingDest{File: file, sink: f}, nil
}

type pendingDest struct {
	*os.File

	sink *fileSink
}

func (p *pendingDest) discard() {
	_ = p.Close()
	_ = os.Remove(p.Name())
}

func (p *pendingDest) commit() error {
	if err := errors.Join(p.Chmod(p.sink.mode), p.Sync(), p.Close()); err != nil {
		return errors.Join(err, os.Remove(p.Name()))
	}
	if err := p.name(); err != nil {
		return errors.Join(err, os.Remove(p.Name()))
	}
	return syncFolder(filepath.Dir(p.sink.path))
}

// name gives the finished file its name. A hard link fails where a file exists, which a rename would silently replace;
// file systems without hard links fall back to looking first.
func (p *pendingDest) name() error {
	if !p.sink.replace {
		err := os.Link(p.Name(), p.sink.path)
		if err == nil {
			return os.Remove(p.Name())
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := p.sink.check(); err != nil {
		return err
	}
	return os.Rename(p.Name(), p.sink.path)
}

// syncFolder makes the new name last. Systems that cannot sync a folder keep names in their own way.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // a folder that may be written but not read holds the file all the same
	}
	_ = folder.Sync()
	return folder.Close()
}

// ToWriter writes to w as the bytes arrive. A failed recovery may have written some of them.
func ToWriter(w io.Writer) Sink { return writerSink{w} }

type writerSink struct{ io.Writer }

func (w writerSink) check() error               { return nil }
func (w writerSink) open() (pendingFile, error) { return w, nil }
func (w writerSink) dest() string               { return "" }
func (w writerSink) commit() error              { return nil }
func (w writerSink) discard()                   {}
