package zvmtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"time"
)

// The refusals of a guest. Each wraps the io/fs error that a caller outside this package can test for.
var (
	errGuestNotFound  = fmt.Errorf("no such item in the guest: %w", fs.ErrNotExist)
	errGuestBadPath   = fmt.Errorf("malformed guest path: %w", fs.ErrInvalid)
	errGuestExists    = fmt.Errorf("already in the guest: %w", fs.ErrExist)
	errGuestRefused   = fmt.Errorf("the item cannot be restored: %w", fs.ErrPermission)
	errGuestHostDir   = fmt.Errorf("the item lies in a mounted host directory and changes only there: %w", fs.ErrPermission)
	errGuestNotFolder = errors.New("not a folder")
	errGuestNotFile   = errors.New("not a file")
)

// Guest is the set of disks of one simulated VM. It remembers every earlier state, so that a checkpoint of any moment
// can be mounted and shows the files as they were then. A Guest is safe for concurrent use.
//
// Paths are written as the guest's own users write them: "/etc/nginx/nginx.conf" on a partition mounted below "/", and
// `C:\inetpub\web.config` or "C:/inetpub/web.config" on one mounted at a drive letter. Of several mount points that
// cover a path the longest wins. On NTFS a name is found whatever its case and keeps the spelling of its first write.
// Names are otherwise stored byte for byte; one above 255 bytes (NTFS: 255 UTF-16 units) and the element ".." are
// refused with an error that wraps [fs.ErrInvalid].
//
// Errors of the methods are [*fs.PathError] values which wrap [fs.ErrNotExist], [fs.ErrExist], [fs.ErrInvalid] or
// [fs.ErrPermission] where one of them applies. A call that fails changes nothing.
type Guest struct {
	now func() time.Time

	// capturing serialises the reading of host directories, which must not happen under mu.
	capturing sync.Mutex

	mu       sync.Mutex
	versions []guestVersion
	mounts   []guestMount
	hostDirs []*hostDir
}

// guestVersion is the tree that was current from its stamp on, until the stamp of the next version.
type guestVersion struct {
	stamp time.Time
	tree  *tree
}

// newGuest returns a guest with the partitions of [LinuxLayout] and no files. The clock is asked before any lock of the
// guest is taken, and at does not ask it: now may take a lock under which its owner calls at, though not snapshot.
func newGuest(now func() time.Time) *Guest {
	stamp := now()
	top, mounts, err := partitioned(LinuxLayout(), stamp)
	if err != nil {
		top = emptyGuest(stamp) // cannot happen: a test builds every layout of this package
	}
	return &Guest{now: now, versions: []guestVersion{{stamp, &tree{top}}}, mounts: mounts}
}

// at returns the state of the guest at t: the last version stamped t or earlier, or the oldest one when t lies
// before all of them. It reads no host directory.
func (g *Guest) at(t time.Time) *tree {
	g.mu.Lock()
	defer g.mu.Unlock()
	younger := sort.Search(len(g.versions), func(i int) bool { return g.versions[i].stamp.After(t) })
	return g.versions[max(younger-1, 0)].tree
}

// snapshot returns the state of the guest now. Mounted host directories are read first, and what changed in them since
// the last reading becomes a version of its own; without any, snapshot costs the same for every size of guest.
func (g *Guest) snapshot() *tree {
	g.captureHostDirs()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latest().tree
}

// WriteFile makes path a file that holds a copy of data, creating the folders above it. A file that is there already is
// replaced and keeps its creation time; a folder or a link is not.
func (g *Guest) WriteFile(path string, data []byte) error {
	return g.writeContent(path, storedContent(bytes.Clone(data)))
}

// WriteSparse makes path a file of size bytes of noise, which depend on seed alone and are computed as they are read:
// the file takes no memory, whatever its size. It creates and replaces as [Guest.WriteFile] does.
func (g *Guest) WriteSparse(path string, size int64, seed uint64) error {
	return g.writeContent(path, noiseContent{length: size, seed: seed})
}

// WriteZeros is [Guest.WriteSparse] with zeros instead of noise.
func (g *Guest) WriteZeros(path string, size int64) error {
	return g.writeContent(path, zeroContent(size))
}

func (g *Guest) writeContent(path string, data fileContent) error {
	return g.change("write", path, func(_, old *inode, stamp time.Time) (*inode, error) {
		if data.size() < 0 {
			return nil, fs.ErrInvalid
		}
		if old == nil {
			return &inode{kind: kindFile, content: data, created: stamp, accessed: stamp, written: stamp}, nil
		}
		if old.kind != kindFile || old.link {
			return nil, errGuestNotFile
		}
		next := *old
		next.content, next.accessed, next.written = data, stamp, stamp
		return &next, nil
	})
}

// WriteManyFiles puts n generated files into the folder dir, creating it: "file-000000.txt" and so on, each of which
// holds its own name and a newline. A folder of 200,000 files takes some 15 MB of memory.
func (g *Guest) WriteManyFiles(dir string, n int) error {
	return g.change("write many", dir, func(parent, old *inode, stamp time.Time) (*inode, error) {
		if n < 0 {
			return nil, fs.ErrInvalid
		}
		made := newFolder(folderOf(parent, old).foldCase, stamp)
		made.entries = generatedItems(made, n, stamp)
		return mergeItems(old, made, stamp)
	})
}

// folderOf returns what decides how names below a place are compared: what is there, or else what would hold it.
func folderOf(parent, old *inode) *inode {
	if old != nil {
		return old
	}
	return parent
}

// Mkdir makes path a folder, with the folders above it. A folder that is there already is left as it is.
func (g *Guest) Mkdir(path string) error {
	return g.change("mkdir", path, func(parent, old *inode, stamp time.Time) (*inode, error) {
		if old == nil {
			return newFolder(parent.foldCase, stamp), nil
		}
		if !old.container() {
			return nil, errGuestExists
		}
		return old, nil
	})
}

// Symlink makes path a symbolic link, creating the folders above it. Nothing follows it: a link can be neither browsed
// nor downloaded (zvm-wire 6.4), and target, which need not exist, is not shown by any call of a ZVM.
func (g *Guest) Symlink(target, path string) error {
	return g.change("symlink", path, func(_, old *inode, stamp time.Time) (*inode, error) {
		if target == "" {
			return nil, fs.ErrInvalid
		}
		if old != nil {
			return nil, errGuestExists
		}
		return newLink(stamp), nil
	})
}

// Deny makes the existing item at path unreadable for file-level recovery: it is listed with reason and can be neither
// browsed nor downloaded. An empty reason stands for "Cannot restore. Access is denied.". The guest itself goes on
// reading and writing the item; only [Guest.Remove] ends the denial.
func (g *Guest) Deny(path, reason string) error {
	return g.change("deny", path, func(_, old *inode, _ time.Time) (*inode, error) {
		if old == nil {
			return nil, errGuestNotFound
		}
		next := *old
		next.refusal = reason
		if reason == "" {
			next.refusal = "Cannot restore. Access is denied."
		}
		return &next, nil
	})
}

// Remove deletes the item at path with everything below it, and ends the mounts of host directories there. A partition
// itself cannot be removed.
func (g *Guest) Remove(path string) error {
	stamp := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	where, err := g.locateLocked(path)
	kept := slices.DeleteFunc(slices.Clone(g.hostDirs), func(h *hostDir) bool { return hasPrefix(h.where, where) })
	if err == nil {
		err = g.apply(kept, where, g.clamp(stamp), removeItem)
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	g.hostDirs = kept
	return nil
}

func removeItem(_, old *inode, _ time.Time) (*inode, error) {
	switch {
	case old == nil:
		return nil, errGuestNotFound
	case old.kind == kindFile || old.kind == kindFolder:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: a partition cannot be removed", errGuestBadPath)
}

// ReadFile returns the present content of the file at path, denied or not.
func (g *Guest) ReadFile(path string) ([]byte, error) {
	data, err := g.readFile(path)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}

func (g *Guest) readFile(path string) ([]byte, error) {
	g.captureHostDirs()
	g.mu.Lock()
	where, err := g.locateLocked(path)
	name, item := "", g.latest().tree.top
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, element := range where {
		if name, item = item.child(element); item == nil {
			return nil, errGuestNotFound
		}
	}
	if item.kind != kindFile || item.link {
		return nil, errGuestNotFile
	}
	data := make([]byte, item.content.size())
	_, err = io.ReadFull(item.content.reader(name), data)
	return data, err
}

// locateLocked translates a guest path into the elements of its session path, in stored spelling as far as they exist.
func (g *Guest) locateLocked(path string) ([]string, error) {
	where, err := resolveGuestPath(g.mounts, path)
	if err != nil {
		return nil, err
	}
	item := g.latest().tree.top
	for i := 0; i < len(where) && item != nil; i++ {
		where[i], item = item.child(where[i])
	}
	return where, nil
}

// change makes a new version in which edit's answer stands at path.
func (g *Guest) change(op, path string, edit editor) error {
	stamp := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	where, err := g.locateLocked(path)
	if err == nil {
		err = g.apply(g.hostDirs, where, g.clamp(stamp), edit)
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// apply makes a new version in which edit's answer stands at where, which must not belong to one of hostDirs.
func (g *Guest) apply(hostDirs []*hostDir, where []string, stamp time.Time, edit editor) error {
	if slices.ContainsFunc(hostDirs, func(h *hostDir) bool { return hasPrefix(where, h.where) }) {
		return errGuestHostDir
	}
	top, err := g.latest().tree.top.update(where, stamp, edit)
	if err != nil {
		return err
	}
	g.record(top, stamp)
	return nil
}

func (g *Guest) latest() guestVersion { return g.versions[len(g.versions)-1] }

// clamp keeps the versions in order when the clock was turned back, or when two changes overtook each other between
// asking the clock and taking the lock.
func (g *Guest) clamp(stamp time.Time) time.Time {
	if last := g.latest().stamp; stamp.Before(last) {
		return last
	}
	return stamp
}

// record makes top the latest version; of several versions with one stamp only the last can ever be seen.
func (g *Guest) record(top *inode, stamp time.Time) {
	last := g.latest()
	switch {
	case top == last.tree.top:
	case stamp.Equal(last.stamp):
		g.versions[len(g.versions)-1].tree = &tree{top}
	default:
		g.versions = append(g.versions, guestVersion{stamp, &tree{top}})
	}
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
