package zvmtest

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
)

// FS is the file system of a partition. It decides how names are compared: by case except on NTFS.
type FS uint8

// The file systems of guests. What a real ZVM supports is not public (zvm-wire 6.7).
const (
	Ext4 FS = iota
	Ext3
	XFS
	NTFS
)

// Partition is one file system of a guest.
type Partition struct {
	// Root is the first element of its session paths, as browsing an empty path lists it. A root may name its disk too,
	// as in "Disk0/Volume1-Ext4": the disk is then listed, and the partition below it.
	Root string
	// MountPoint is where the guest sees it: "/", "/var", "C:" or a folder as in `C:\data`.
	MountPoint string
	FS         FS
}

// Layout is the set of partitions of a guest.
type Layout []Partition

// LinuxLayout is one partition, "Volume1-Ext4", mounted at "/": the root name seen on 10.0 (zvm-wire 6.4).
func LinuxLayout() Layout {
	return Layout{{Root: "Volume1-Ext4", MountPoint: "/", FS: Ext4}}
}

// NumberedLayout is "partition#0 Ext3" at "/boot" and "partition#1 Ext3" at "/": the root names of the 7.0
// documentation, with a blank and a number sign (zvm-wire 6.4).
func NumberedLayout() Layout {
	return Layout{
		{Root: "partition#0 Ext3", MountPoint: "/boot", FS: Ext3},
		{Root: "partition#1 Ext3", MountPoint: "/", FS: Ext3},
	}
}

// WindowsLayout is one partition, "C", mounted at "C:": on 10.9 the drive letter is the partition (zvm-wire 13).
func WindowsLayout() Layout {
	return Layout{{Root: "C", MountPoint: "C:", FS: NTFS}}
}

// WindowsVolumeLayout is the drives "C:" and "D:" under roots that do not show their letters, as releases before 10.9
// are expected to name them (zvm-wire 6.4).
func WindowsVolumeLayout() Layout {
	return Layout{
		{Root: "Volume1-NTFS", MountPoint: "C:", FS: NTFS},
		{Root: "Volume2-NTFS", MountPoint: "D:", FS: NTFS},
	}
}

// ManyDisksLayout is a Linux guest whose disks are listed above their partitions. How a real ZVM shows several disks is
// not public (zvm-wire 6.4).
func ManyDisksLayout() Layout {
	return Layout{
		{Root: "Disk0/Volume1-Ext4", MountPoint: "/", FS: Ext4},
		{Root: "Disk0/Volume2-Ext4", MountPoint: "/var", FS: Ext4},
		{Root: "Disk1/Volume1-XFS", MountPoint: "/srv", FS: XFS},
	}
}

// guestMount is a partition's place in the guest.
type guestMount struct {
	point   guestPath
	session []string
}

// guestPath is a path as the guest's users write it. Rooted paths start with a slash and have no other separator; the
// others start with a drive letter, are separated by either slash, and ignore case.
type guestPath struct {
	rooted   bool
	elements []string
}

// SetLayout replaces all partitions of the guest by empty ones, and ends the mounts of host directories. Earlier states
// keep what they had.
func (g *Guest) SetLayout(layout Layout) error {
	stamp := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	stamp = g.clamp(stamp)
	top, mounts, err := partitioned(layout, stamp)
	if err != nil {
		return err
	}
	g.mounts, g.hostDirs = mounts, nil
	g.record(top, stamp)
	return nil
}

// AddPartition adds an empty partition; see [Partition] for its parts. As on a real guest, the partition that holds the
// mount point keeps an empty folder there, and files that were written below it before are hidden from the guest's
// paths, though not from browsing. A root or a mount point that is taken is refused with [fs.ErrExist].
func (g *Guest) AddPartition(root, mountPoint string, kind FS) error {
	stamp := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	stamp = g.clamp(stamp)
	top, mounts, err := addPartition(g.latest().tree.top, g.mounts, Partition{root, mountPoint, kind}, stamp)
	if err != nil {
		return err
	}
	g.mounts = mounts
	g.record(top, stamp)
	return nil
}

// partitioned returns a guest with the partitions of layout. Those with short mount points come first, so that a mount
// point inside another partition gets its folder there.
func partitioned(layout Layout, stamp time.Time) (*inode, []guestMount, error) {
	top, mounts := emptyGuest(stamp), []guestMount(nil)
	ordered := slices.Clone(layout)
	slices.SortStableFunc(ordered, func(a, b Partition) int { return len(a.MountPoint) - len(b.MountPoint) })
	for _, p := range ordered {
		var err error
		if top, mounts, err = addPartition(top, mounts, p, stamp); err != nil {
			return nil, nil, err
		}
	}
	return top, mounts, nil
}

func addPartition(top *inode, mounts []guestMount, p Partition, stamp time.Time) (*inode, []guestMount, error) {
	added, next, err := addPartitionTo(top, mounts, p, stamp)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "add partition", Path: p.Root + " at " + p.MountPoint, Err: err}
	}
	return added, next, nil
}

func addPartitionTo(top *inode, mounts []guestMount, p Partition, stamp time.Time) (*inode, []guestMount, error) {
	point, err := parseGuestPath(p.MountPoint)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range mounts {
		if m.point.holds(point) && point.holds(m.point) {
			return nil, nil, errGuestExists
		}
	}
	session := strings.Split(p.Root, "/")
	if len(session) > 2 || strings.Contains(p.Root, `\`) {
		return nil, nil, errGuestBadPath
	}
	if where, err := resolveGuestPath(mounts, p.MountPoint); err == nil {
		if top, err = top.update(where, stamp, makeMountFolder); err != nil {
			return nil, nil, err
		}
	}
	partition := newFolder(p.FS == NTFS, stamp)
	partition.kind = kindPartition
	if top, err = insertPartition(top, session, partition, stamp); err != nil {
		return nil, nil, err
	}
	return top, append(slices.Clip(mounts), guestMount{point, session}), nil
}

func makeMountFolder(parent, old *inode, stamp time.Time) (*inode, error) {
	switch {
	case old == nil:
		return newFolder(parent.foldCase, stamp), nil
	case !old.container():
		return nil, errGuestNotFolder
	}
	return old, nil
}

func insertPartition(top *inode, session []string, partition *inode, stamp time.Time) (*inode, error) {
	return top.update(session[:1], stamp, func(_, old *inode, _ time.Time) (*inode, error) {
		switch {
		case len(session) == 1 && old == nil:
			return partition, nil
		case len(session) == 2 && old == nil:
			old = newFolder(false, stamp)
			old.kind = kindDisk
		case len(session) == 1 || old.kind != kindDisk:
			return nil, errGuestExists
		}
		return old.update(session[1:], stamp, func(_, there *inode, _ time.Time) (*inode, error) {
			if there != nil {
				return nil, errGuestExists
			}
			return partition, nil
		})
	})
}

// resolveGuestPath returns the elements of the session path of a guest path, in a slice of the caller's own.
func resolveGuestPath(mounts []guestMount, path string) ([]string, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return nil, err
	}
	var best *guestMount
	for i, m := range mounts {
		if m.point.holds(wanted) && (best == nil || len(m.point.elements) > len(best.point.elements)) {
			best = &mounts[i]
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no partition is mounted there: %w", errGuestNotFound)
	}
	return slices.Concat(best.session, wanted.elements[len(best.point.elements):]), nil
}

func parseGuestPath(path string) (guestPath, error) {
	rooted := strings.HasPrefix(path, "/")
	separates := func(r rune) bool { return r == '/' || r == '\\' && !rooted }
	elements := slices.DeleteFunc(strings.FieldsFunc(path, separates), func(e string) bool { return e == "." })
	if slices.Contains(elements, "..") || !rooted && !startsWithDrive(path) {
		return guestPath{}, errGuestBadPath
	}
	return guestPath{rooted, elements}, nil
}

func startsWithDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && path[0] <= unicode.MaxASCII && unicode.IsLetter(rune(path[0])) &&
		(len(path) == 2 || path[2] == '/' || path[2] == '\\')
}

// holds says whether inner is p or lies below it.
func (p guestPath) holds(inner guestPath) bool {
	if p.rooted != inner.rooted || len(p.elements) > len(inner.elements) {
		return false
	}
	return slices.EqualFunc(p.elements, inner.elements[:len(p.elements)], func(a, b string) bool {
		return a == b || !p.rooted && upcase(a) == upcase(b)
	})
}
