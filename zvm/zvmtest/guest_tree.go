package zvmtest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// nodeKind is what the Type of a browsed item says (zvm-wire 6.4).
type nodeKind uint8

const (
	kindFile nodeKind = iota
	kindFolder
	kindPartition
	kindDisk
	kindGuest // holds disks and partitions; browsed as a partition with an empty path
)

// linkRefusal is the reason a ZVM gives for every symbolic link (zvm-wire 6.4).
const linkRefusal = "Cannot restore. Links are not supported."

// inode is one item of a guest. It is immutable and shared by every version in which it looks the same.
type inode struct {
	kind                       nodeKind
	foldCase                   bool // of a container: its names are compared as NTFS compares them
	link                       bool
	entries                    *itemSet    // of a container
	content                    fileContent // of a file that is no link
	refusal                    string      // why the item can be neither browsed nor downloaded
	created, accessed, written time.Time
}

// editor decides what shall stand at a place: parent is the folder that holds it, old what is there, nil for nothing.
// The answer nil removes, the answer old changes nothing.
type editor func(parent, old *inode, stamp time.Time) (*inode, error)

func emptyGuest(stamp time.Time) *inode {
	return &inode{kind: kindGuest, created: stamp, accessed: stamp, written: stamp}
}

func newFolder(foldCase bool, stamp time.Time) *inode {
	return &inode{kind: kindFolder, foldCase: foldCase, created: stamp, accessed: stamp, written: stamp}
}

func newLink(stamp time.Time) *inode {
	return &inode{kind: kindFile, link: true, refusal: linkRefusal, created: stamp, accessed: stamp, written: stamp}
}

func (n *inode) container() bool { return n.kind != kindFile }

func (n *inode) key(name string) string {
	if n.foldCase {
		return upcase(name)
	}
	return name
}

// child returns the item called name and its stored spelling, or nil and the name as given. Names of partitions are
// found as the partition's own file system compares names.
func (n *inode) child(name string) (string, *inode) {
	if found := n.entries.find(n.key(name)); found != nil {
		return found.name, found.item
	}
	if n.kind == kindGuest || n.kind == kindDisk {
		for stored, item := range n.entries.from(0) {
			if item.foldCase && upcase(stored) == upcase(name) {
				return stored, item
			}
		}
	}
	return name, nil
}

// with returns a copy of the container in which name stands for item, or for nothing if item is nil.
func (n *inode) with(name string, item *inode, stamp time.Time) *inode {
	next := *n
	if item == nil {
		next.entries = n.entries.without(n.key(name))
	} else {
		next.entries = n.entries.with(n.key(name), name, item)
	}
	if next.entries.size() != n.entries.size() {
		next.accessed, next.written = stamp, stamp
	}
	return &next
}

// update returns a copy of the container in which edit's answer stands at where, creating the folders on the way.
func (n *inode) update(where []string, stamp time.Time, edit editor) (*inode, error) {
	if !n.container() {
		return nil, errGuestNotFolder
	}
	name, old := n.child(where[0])
	if old == nil {
		if err := checkName(name, n.foldCase); err != nil {
			return nil, err
		}
	}
	var next *inode
	var err error
	switch {
	case len(where) == 1:
		next, err = edit(n, old, stamp)
	case old == nil:
		next, err = newFolder(n.foldCase, stamp).update(where[1:], stamp, edit)
	default:
		next, err = old.update(where[1:], stamp, edit)
	}
	if err != nil || next == old {
		return n, err
	}
	return n.with(name, next, stamp), nil
}

// mergeItems returns old with all that is in fresh added to it: folders are united, files replace files and keep their
// creation time and denial, and a link does for another.
func mergeItems(old, fresh *inode, stamp time.Time) (*inode, error) {
	switch {
	case old == nil:
		return fresh, nil
	case old.link && fresh.link:
		return old, nil
	case !old.container() && !fresh.container() && !old.link && !fresh.link:
		next := *fresh
		next.created, next.refusal = old.created, old.refusal
		return &next, nil
	case !old.container() || !fresh.container():
		return nil, errGuestExists
	}
	next := *old
	if old.entries == nil {
		next.entries = fresh.entries
	} else {
		for name, item := range fresh.entries.from(0) {
			stored, there := old.child(name)
			merged, err := mergeItems(there, item, stamp)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			next.entries = next.entries.with(old.key(stored), stored, merged)
		}
	}
	if next.entries.size() != old.entries.size() {
		next.accessed, next.written = stamp, stamp
	}
	return &next, nil
}

// checkName refuses what the guest's own system could not store.
func checkName(name string, foldCase bool) error {
	length := len(name)
	if foldCase {
		length = len(utf16.Encode([]rune(name)))
		reserved := func(r rune) bool { return r < ' ' || strings.ContainsRune(`"*/:<>?\|`, r) }
		if strings.ContainsFunc(name, reserved) {
			return fmt.Errorf("%w: %q holds a character that Windows reserves", errGuestBadPath, name)
		}
	}
	if length > 255 {
		return fmt.Errorf("%w: a name of %d is longer than 255", errGuestBadPath, length)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q is no name", errGuestBadPath, name)
	}
	return nil
}

// upcase gives the form in which NTFS compares names: letter by letter, without the expansions of full case folding, so
// that "straße" and "STRASSE" are two names. Names that are no UTF-8 are folded in their ASCII letters only, because
// strings.ToUpper would make all invalid bytes alike.
func upcase(name string) string {
	if utf8.ValidString(name) {
		return strings.ToUpper(name)
	}
	folded := []byte(name)
	for i, b := range folded {
		if 'a' <= b && b <= 'z' {
			folded[i] = b - 'a' + 'A'
		}
	}
	return string(folded)
}

// tree is one version of a guest's disks, as a mounted session shows them. It never changes.
type tree struct{ top *inode }

// node is one browsed item. Path is the full session path in stored spelling; size is in bytes, and -1 for what has
// none: containers and links.
type node struct {
	path                       string
	kind                       nodeKind
	size                       int64
	browsable, downloadable    bool
	reason                     string
	created, accessed, written time.Time
}

// browse returns the item at a session path and, for a container that can be read, everything directly in it, in the
// order of the stored names. The empty path is the guest itself and holds its disks and partitions. A session path is
// the root's name and the elements below it, separated by single slashes; one with a backslash or ".." is
// errGuestBadPath, and any other that names nothing, such as one with a slash at an end, is errGuestNotFound.
func (t *tree) browse(path string) (self node, children []node, err error) {
	self, children, _, err = t.browsePage(path, 0, -1)
	return self, children, err
}

// browsePage is browse for limit children after the first offset ones; a negative limit means all. Total counts the
// children of all pages. A page costs its own length, not the folder's.
func (t *tree) browsePage(path string, offset, limit int) (self node, page []node, total int, err error) {
	stored, item, err := t.find(path)
	if err != nil {
		return node{}, nil, 0, err
	}
	self = item.describe(stored)
	if !self.browsable {
		return self, nil, 0, nil
	}
	total = item.entries.size()
	offset = min(max(offset, 0), total)
	if limit < 0 || limit > total-offset {
		limit = total - offset
	}
	page = make([]node, 0, limit)
	for name, child := range item.entries.from(offset) {
		if len(page) == limit {
			break
		}
		page = append(page, child.describe(joinSession(stored, name)))
	}
	return self, page, total, nil
}

// open returns the content of the file at a session path and its size in bytes. Several readers of one file do not
// disturb each other. A file that cannot be downloaded is errGuestRefused, a container errGuestNotFile.
func (t *tree) open(path string) (io.ReadSeeker, int64, error) {
	stored, item, err := t.find(path)
	switch {
	case err != nil:
		return nil, 0, err
	case item.refusal != "":
		return nil, 0, fmt.Errorf("%w: %s", errGuestRefused, item.refusal)
	case item.container():
		return nil, 0, errGuestNotFile
	}
	return item.content.reader(stored[strings.LastIndexByte(stored, '/')+1:]), item.content.size(), nil
}

// find returns the item at a session path, and the path in stored spelling.
func (t *tree) find(path string) (string, *inode, error) {
	if path == "" {
		return "", t.top, nil
	}
	elements := strings.Split(path, "/")
	if strings.Contains(path, `\`) || slices.Contains(elements, "..") {
		return "", nil, fmt.Errorf("%w: %q", errGuestBadPath, path)
	}
	item := t.top
	for i, element := range elements {
		if item.refusal != "" {
			return "", nil, errGuestNotFound
		}
		if elements[i], item = item.child(element); item == nil {
			return "", nil, errGuestNotFound
		}
	}
	return strings.Join(elements, "/"), item, nil
}

func (n *inode) describe(path string) node {
	described := node{
		path:         path,
		kind:         n.kind,
		size:         -1,
		browsable:    n.container() && n.refusal == "",
		downloadable: n.refusal == "",
		reason:       n.refusal,
		created:      n.created,
		accessed:     n.accessed,
		written:      n.written,
	}
	switch {
	case n.kind == kindGuest:
		described.kind = kindPartition
	case n.content != nil:
		described.size = n.content.size()
	}
	return described
}

func joinSession(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "/" + name
}
