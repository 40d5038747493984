package zvmtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// captureLimit bounds, in bytes, what one reading of a host directory keeps in memory.
const captureLimit = 1 << 30

// hostDir is a directory of the host that shows up as a folder of the guest.
type hostDir struct {
	where    []string // session path of the folder, in stored spelling
	foldCase bool
	dir      string
	last     *inode // as of the last reading; guarded by Guest.capturing
}

// CopyFS copies all of fsys, 1 GiB at most, into the folder dst, creating it and replacing files of the same names;
// either everything is copied, or nothing. Links are kept as links, other special files are refused.
func (g *Guest) CopyFS(dst string, fsys fs.FS) error {
	foldCase, err := g.foldsCase(dst)
	if err != nil {
		return &fs.PathError{Op: "copy", Path: dst, Err: err}
	}
	c := hostReading{source: fsys, foldCase: foldCase, stamp: g.now(), left: captureLimit, strict: true}
	copied, err := c.folder(".", nil)
	if err != nil {
		return err
	}
	return g.change("copy", dst, func(_, old *inode, stamp time.Time) (*inode, error) {
		return mergeItems(old, copied, stamp)
	})
}

// MountDir shows the real directory dir of this host as the folder guestPath, which must be empty or absent. The
// directory is read when it is mounted, whenever a checkpoint is inserted, and at [Guest.ReadFile]; what was read is
// kept in memory, 1 GiB at most for one reading, and never changes again in the state that got it. Links are shown as
// links and are not followed, not even inside dir. What cannot be read, or goes beyond the limit, is listed as not
// downloadable with the reason, and names that the guest's file system could not hold are left out. The folder can be
// changed on the host alone; [Guest.Remove] of the folder ends the mount and leaves the host's files alone.
func (g *Guest) MountDir(guestPath, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "mount", Path: dir, Err: errGuestNotFolder}
	}
	if err := g.mountDir(guestPath, dir); err != nil {
		return &fs.PathError{Op: "mount", Path: guestPath, Err: err}
	}
	g.captureHostDirs()
	return nil
}

func (g *Guest) mountDir(guestPath, dir string) error {
	stamp := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	where, err := g.locateLocked(guestPath)
	if err != nil {
		return err
	}
	var foldCase bool
	err = g.apply(g.hostDirs, where, g.clamp(stamp), func(parent, old *inode, stamp time.Time) (*inode, error) {
		if old == nil {
			old = newFolder(parent.foldCase, stamp)
		}
		if !old.container() || old.entries != nil {
			return nil, errGuestExists
		}
		foldCase = old.foldCase
		return old, nil
	})
	if err != nil {
		return err
	}
	g.hostDirs = append(g.hostDirs, &hostDir{where: where, foldCase: foldCase, dir: dir})
	return nil
}

// foldsCase says whether names at path are compared as NTFS compares them.
func (g *Guest) foldsCase(path string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	where, err := g.locateLocked(path)
	if err != nil {
		return false, err
	}
	holder := g.latest().tree.top
	for _, element := range where {
		_, next := holder.child(element)
		if next == nil || !next.container() {
			break
		}
		holder = next
	}
	return holder.foldCase, nil
}

// captureHostDirs makes a version of what changed in the mounted host directories, if anything did.
func (g *Guest) captureHostDirs() {
	g.mu.Lock()
	dirs := slices.Clone(g.hostDirs)
	g.mu.Unlock()
	if len(dirs) == 0 {
		return
	}
	stamp := g.now()
	g.capturing.Lock()
	defer g.capturing.Unlock()
	for _, h := range dirs {
		h.last = h.read(stamp)
		g.show(h, stamp)
	}
}

// show puts what was last read of h where it is mounted, unless it no longer is.
func (g *Guest) show(h *hostDir, stamp time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.hostDirs, h) {
		return
	}
	stamp = g.clamp(stamp)
	top, err := g.latest().tree.top.update(h.where, stamp, func(_, old *inode, stamp time.Time) (*inode, error) {
		if old == nil {
			return nil, errGuestNotFound
		}
		if old.entries == h.last.entries && old.refusal == h.last.refusal {
			return old, nil
		}
		next := *old
		next.entries, next.refusal = h.last.entries, h.last.refusal
		next.accessed, next.written = stamp, stamp
		return &next, nil
	})
	if err == nil {
		g.record(top, stamp)
	}
}

func (h *hostDir) read(stamp time.Time) *inode {
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return refusedItem(kindFolder, err, stamp)
	}
	defer func() { _ = root.Close() }()
	c := hostReading{source: root.FS(), foldCase: h.foldCase, stamp: stamp, left: captureLimit}
	folder, err := c.folder(".", h.last)
	if err != nil {
		return refusedItem(kindFolder, err, stamp)
	}
	return folder
}

// refusedItem is an item that is there and could not be read. The reason keeps the cause alone: the host's own paths are
// none of the guest's business.
func refusedItem(kind nodeKind, err error, stamp time.Time) *inode {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	reason := fmt.Sprintf("Cannot restore. %v.", err)
	return &inode{kind: kind, refusal: reason, created: stamp, accessed: stamp, written: stamp}
}

// hostReading is one reading of a file system of the host.
type hostReading struct {
	source   fs.FS
	foldCase bool
	stamp    time.Time
	left     int64 // bytes that may still be kept
	strict   bool  // fail at the first item that cannot be kept as it is
}

// folder reads the folder at dir and returns previous, its last reading, if nothing changed.
func (c *hostReading) folder(dir string, previous *inode) (*inode, error) {
	listed, err := fs.ReadDir(c.source, dir)
	if err != nil {
		return nil, err
	}
	folder := newFolder(c.foldCase, c.stamp)
	for _, entry := range listed {
		name := entry.Name()
		err := checkName(name, c.foldCase)
		if _, taken := folder.child(name); taken != nil {
			err = errGuestExists
		}
		if err != nil && c.strict {
			return nil, &fs.PathError{Op: "copy", Path: path.Join(dir, name), Err: err}
		}
		if err != nil {
			continue
		}
		var before *inode
		if previous != nil {
			_, before = previous.child(name)
		}
		item, err := c.item(path.Join(dir, name), entry, before)
		if err != nil {
			return nil, err
		}
		folder.entries = folder.entries.with(folder.key(name), name, item)
	}
	return unchanged(previous, folder), nil
}

// item reads one item of a folder. When it cannot be read, a capture that is not strict gets it as a refused one.
func (c *hostReading) item(itemPath string, entry fs.DirEntry, previous *inode) (*inode, error) {
	stamp := c.stamp
	item, err := c.read(itemPath, entry, previous)
	if info, infoErr := entry.Info(); infoErr == nil && !info.ModTime().IsZero() {
		stamp = info.ModTime()
	}
	if err != nil {
		if c.strict {
			return nil, err
		}
		kind := kindFile
		if entry.IsDir() {
			kind = kindFolder
		}
		item = refusedItem(kind, err, stamp)
	}
	dated := *item
	dated.created, dated.accessed, dated.written = stamp, stamp, stamp
	return unchanged(previous, &dated), nil
}

func (c *hostReading) read(itemPath string, entry fs.DirEntry, previous *inode) (*inode, error) {
	switch {
	case entry.IsDir():
		return c.folder(itemPath, previous)
	case entry.Type() == fs.ModeSymlink:
		return newLink(c.stamp), nil
	case !entry.Type().IsRegular():
		return nil, &fs.PathError{Op: "copy", Path: itemPath, Err: errors.New("special files are not supported")}
	}
	info, err := entry.Info()
	if err != nil {
		return nil, err
	}
	if info.Size() > c.left {
		return nil, &fs.PathError{Op: "copy", Path: itemPath, Err: errors.New("the directory is larger than the simulator keeps")}
	}
	data, err := fs.ReadFile(c.source, itemPath)
	if err != nil {
		return nil, err
	}
	c.left -= int64(len(data))
	return &inode{kind: kindFile, content: storedContent(data)}, nil
}

// unchanged returns previous if fresh looks the same, so that versions share what did not change, and fresh otherwise.
func unchanged(previous, fresh *inode) *inode {
	if previous == nil || previous.kind != fresh.kind || previous.link != fresh.link || previous.refusal != fresh.refusal ||
		fresh.kind == kindFile && !previous.written.Equal(fresh.written) || !sameContent(previous.content, fresh.content) ||
		!sameItems(previous, fresh) {
		return fresh
	}
	return previous
}

func sameContent(a, b fileContent) bool {
	one, _ := a.(storedContent)
	other, _ := b.(storedContent)
	return bytes.Equal(one, other)
}

func sameItems(a, b *inode) bool {
	if a.entries.size() != b.entries.size() {
		return false
	}
	for name, item := range a.entries.from(0) {
		if stored, other := b.child(name); stored != name || other != item {
			return false
		}
	}
	return true
}
