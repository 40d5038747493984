package rewind

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// FileOption changes how [ToFile] and [ToRoot] write.
type FileOption func(*fileSink)

// Replace allows an existing file to be replaced. It never allows a folder or a link to be.
func Replace() FileOption { return func(f *fileSink) { f.replace = true } }

// WithMode sets the mode of the new file. The default is 0600: what comes out of a journal may be a secret.
func WithMode(mode fs.FileMode) FileOption { return func(f *fileSink) { f.mode = mode.Perm() } }

// syncedLater leaves it to whoever writes many files to make the names in their folder last.
func syncedLater(f *fileSink) { f.syncedLater = true }

// ToFile writes to path. The name appears only after every byte did: the bytes go to a temporary file beside it, are
// synced, and are given the name last. The folder is there already, and may be read and written.
//
// Where a file exists, or comes to exist meanwhile, that is an error which matches [fs.ErrExist], unless [Replace] is
// given. File systems without hard links leave a moment between the last look and the naming.
//
// Errors of the destination are [*DestinationError].
func ToFile(path string, opts ...FileOption) Sink {
	f := newFileSink(path, filepath.Base(path), opts)
	f.folder = func() (*os.Root, error) { return openFolder(filepath.Dir(path), os.Stat, os.OpenRoot) }
	if path == "" || os.IsPathSeparator(path[len(path)-1]) {
		f.refuse(errors.New("a file needs a name"))
	}
	return f
}

// ToRoot writes as [ToFile] does, to a path below root, with "/" between its parts. Links on the way are followed only as
// far as they stay below root. The caller keeps root open until the recovery is over, and closes it.
func ToRoot(root *os.Root, name string, opts ...FileOption) Sink {
	f := newFileSink(name, path.Base(name), opts)
	switch {
	case root == nil:
		f.refuse(errors.New("there is no root"))
	case name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)):
		f.refuse(errors.New("not a plain path below the root"))
	default:
		f.path = filepath.Join(root.Name(), filepath.FromSlash(name))
		f.folder = func() (*os.Root, error) { return openFolder(path.Dir(name), root.Stat, root.OpenRoot) }
	}
	return f
}

// openFolder looks before it opens: opening a pipe would wait for somebody to write into it.
func openFolder(name string, stat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error)) (*os.Root, error) {
	info, err := stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a folder")}
	}
	return open(name)
}

// fileSink puts a file into a folder. All it does goes through the folder as it was opened: what is put in the folder's
// place meanwhile is not written to.
type fileSink struct {
	path    string
	name    string                   // in its folder
	folder  func() (*os.Root, error) // opens it; whoever calls closes it
	replace bool
	mode    fs.FileMode
	refused error // what is wrong with the arguments

	syncedLater bool
}

func newFileSink(path, name string, opts []FileOption) *fileSink {
	f := &fileSink{path: path, name: name, mode: 0o600}
	for _, o := range opts {
		if o == nil {
			f.refuse(errors.New("an option is nil"))
			continue
		}
		o(f)
	}
	return f
}

func (f *fileSink) refuse(err error) { f.refused = errors.Join(f.refused, err) }

func (f *fileSink) dest() string { return f.path }

func (f *fileSink) failed(err error) error { return &DestinationError{Dest: f.path, Err: err} }

func (f *fileSink) Check() error {
	folder, err := f.enter()
	if err != nil {
		return err
	}
	return folder.Close()
}

// enter opens the folder of a destination that is free.
func (f *fileSink) enter() (*os.Root, error) {
	if f.refused != nil {
		return nil, f.failed(f.refused)
	}
	folder, err := f.folder()
	if err != nil {
		return nil, f.failed(err)
	}
	if err := f.free(folder); err != nil {
		return nil, f.failed(errors.Join(err, folder.Close()))
	}
	return folder, nil
}

// free refuses what may not be replaced.
func (f *fileSink) free(folder *os.Root) error {
	info, err := folder.Lstat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("what is there is not a regular file and is not replaced")
	case !f.replace:
		return fs.ErrExist
	}
	return nil
}

func (f *fileSink) open() (pendingFile, error) {
	folder, err := f.enter()
	if err != nil {
		return nil, err
	}
	// A short name of its own: one made from the destination's could be too long for the file system.
	temp := ".rewind-" + rand.Text()[:10]
	file, err := folder.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return nil, f.failed(errors.Join(err, folder.Close()))
	}
	return &pendingDest{sink: f, folder: folder, file: file, temp: temp}, nil
}

// pendingDest is a file that has no name yet.
type pendingDest struct {
	sink   *fileSink
	folder *os.Root
	file   *os.File
	temp   string
	ended  bool
}

func (p *pendingDest) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	if err != nil {
		err = p.sink.failed(err)
	}
	return n, err
}

func (p *pendingDest) discard() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.file.Close()
	_ = p.folder.Remove(p.temp)
	_ = p.folder.Close()
}

func (p *pendingDest) commit() error {
	err := errors.Join(p.file.Chmod(p.sink.mode), p.file.Sync(), p.file.Close())
	if err == nil {
		err = p.name()
	}
	if err != nil {
		p.discard()
		return p.sink.failed(err)
	}
	p.ended = true
	if !p.sink.syncedLater {
		syncFolder(p.folder)
	}
	_ = p.folder.Close()
	return nil
}

// name gives the finished file its name. A hard link fails where a file exists, which a rename would silently replace;
// file systems without hard links fall back to looking first.
func (p *pendingDest) name() error {
	if !p.sink.replace {
		err := p.folder.Link(p.temp, p.sink.name)
		if err == nil {
			_ = p.folder.Remove(p.temp) // the file is whole and in its place, whatever comes of its other name
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := p.sink.free(p.folder); err != nil {
		return err
	}
	return p.folder.Rename(p.temp, p.sink.name)
}

// syncFolder makes the names in a folder last. Systems that cannot sync a folder keep names in their own way.
func syncFolder(in *os.Root) {
	if folder, err := in.Open("."); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}
