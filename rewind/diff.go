package rewind

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Difference is the evidence of what came to differ in one folder of a VM between two of its guards. Paths are relative
// to the folder, which is ".", and every list is ordered by path.
type Difference struct {
	VM     string   `json:"vm"`
	VMID   zvm.VMID `json:"vmId"`
	Path   string   `json:"path"` // as it was asked for
	Before DiffSide `json:"before"`
	After  DiffSide `json:"after"`

	Added   []DiffItem    `json:"added"`
	Removed []DiffItem    `json:"removed"`
	Changed []ChangedItem `json:"changed"`
	// Same counts the files that were read on both sides and hold the same bytes, under the same write time as far as the
	// server tells it.
	Same int `json:"same"`
	// Unread are the items of which it cannot be said that they are the same, although nothing that was seen differs, and
	// those that only one side lists while the other was not read far enough to miss them.
	Unread []UnreadItem `json:"unread"`
	// Complete is true when every folder was listed whole on both sides.
	Complete bool `json:"complete"`
}

// DiffSide is the checkpoint that one side of a [Difference] was read from.
type DiffSide struct {
	ChangeID     string           `json:"changeId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// RecoverySiteID is as in [Recovery].
	RecoverySiteID zvm.SiteID `json:"recoverySiteId,omitempty"`
	Tag            string     `json:"tag"`
	// CheckpointTime is the server's.
	CheckpointTime time.Time `json:"checkpointTime"`
	// GuestPath starts with the partition, in the server's own spelling. It is empty for the top of a session, and when
	// the path is not there.
	GuestPath    string        `json:"guestPath"`
	Items        int           `json:"items"` // that were seen, the folder itself included; zero when it is not there
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	Unmounted    bool          `json:"unmounted"`
}

// ItemState is what was seen of one item at one checkpoint.
type ItemState struct {
	Type    string     `json:"type"`
	Bytes   *int64     `json:"bytes,omitempty"`   // nil when unknown
	Written *time.Time `json:"written,omitempty"` // nil when unknown
	SHA256  string     `json:"sha256,omitempty"`  // hexadecimal, empty when the content was not read
	// Unread says why the content of a file, or all or some of a folder, was not read.
	Unread string `json:"unread,omitempty"`
	// Content is nil unless [WithContents] asked for it.
	Content []byte `json:"content,omitempty"`
}

// DiffItem is an item that only one side has.
type DiffItem struct {
	Path string `json:"path"`
	ItemState
}

// ChangedItem is an item that both sides have and that differs.
type ChangedItem struct {
	Path string `json:"path"`
	// By is what differs: "type", "size", "written" and "sha256". With "written" alone and two equal hashes the file was
	// written again with the same bytes.
	By     []string  `json:"by"`
	Before ItemState `json:"before"`
	After  ItemState `json:"after"`
}

// UnreadItem is an item that was not compared.
type UnreadItem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

const (
	// DefaultDiffItems is how many items [Session.Diff] takes in on each side unless [AtMostItems] says otherwise.
	DefaultDiffItems = 10_000
	// DefaultHashUpTo is the largest file in bytes that [Session.Diff] reads unless [HashUpTo] says otherwise.
	DefaultHashUpTo = 1 << 20
	// MaxDiffContents bounds in bytes what [WithContents] holds in memory of each side. Files beyond it have hashes alone.
	MaxDiffContents = 64 << 20
)

// DiffOption configures one [Session.Diff]. A [PlaceOption] is one too, and counts for both guards.
type DiffOption interface{ applyToDiff(*diffOptions) }

type diffOptions struct {
	places   []PlaceOption
	items    int
	hashUpTo int64
	contents bool
}

type diffOption func(*diffOptions)

func (f diffOption) applyToDiff(o *diffOptions) { f(o) }

func (f PlaceOption) applyToDiff(o *diffOptions) { o.places = append(o.places, f) }

// AtMostItems bounds the items that are taken in on each side. Folders are read breadth first; one that would exceed the
// bound is not taken in, nor is any after it, and the result is not complete.
func AtMostItems(n int) DiffOption { return diffOption(func(o *diffOptions) { o.items = n }) }

// HashUpTo sets the largest file in bytes whose content is compared. Each such file is downloaded from both sides. With 0
// only empty files are, and all others are compared by size and write time.
func HashUpTo(bytes int64) DiffOption { return diffOption(func(o *diffOptions) { o.hashUpTo = bytes }) }

// WithContents has the bytes of added, removed and changed files in the result, for files that are hashed and as long as
// [MaxDiffContents] holds them.
func WithContents() DiffOption { return diffOption(func(o *diffOptions) { o.contents = true }) }

func newDiffOptions(opts []DiffOption) (diffOptions, error) {
	o := diffOptions{items: DefaultDiffItems, hashUpTo: DefaultHashUpTo}
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("rewind: an option is nil")
		}
		opt.applyToDiff(&o)
	}
	switch {
	case o.items < 1:
		return o, fmt.Errorf("rewind: AtMostItems(%d): at least one item has to be seen", o.items)
	case o.hashUpTo < 0:
		return o, fmt.Errorf("rewind: HashUpTo(%d): a size is not negative", o.hashUpTo)
	}
	return o, nil
}

// Diff tells what came to differ in one folder of a VM, or in one file, between two of its guards. It mounts the two
// checkpoints one after the other, as [Session.Recover] mounts, and reads everything below the path: names, sizes, write
// times, and the content of files up to a limit. Files that are larger, or that the server does not hand out, are
// compared by size and write time, and are said to be unread where those are the same. So are those that the server refuses
// when asked, with its reason, and those whose name cannot be part of a path in a session, such as one with a backslash. A
// folder of which that is true is unread, with all below it.
//
// The path is as Recover takes it, and "/" or the empty path means all partitions. It may be missing on one side: then all
// that the other holds was added or removed. What is mounted below the path is not followed into, since where partitions
// are mounted is not told (zvm-wire 6.4): it is compared under its own partition.
//
// Errors: those of Recover, for either guard, and [*AmbiguousPathError] as well when the path leads to another partition
// after the change than before it, and when only one side has it but the other may have it too ([PathNotFoundError.Doubt]).
// A [*LeftOpenError] comes with a result when only the second session is still open.
func (s *Session) Diff(ctx context.Context, before, after *Guard, guestPath string, opts ...DiffOption) (*Difference, error) {
	wanted, err := parseGuestPath(guestPath)
	if err != nil {
		return nil, err
	}
	o, err := newDiffOptions(opts)
	if err != nil {
		return nil, err
	}
	from, to, err := s.chooseBoth(ctx, before, after, o.places)
	if err != nil {
		return nil, err
	}
	old, err := s.readTree(ctx, from, before.record.ChangeID, wanted, o, nil)
	if err != nil {
		return nil, fmt.Errorf("reading change %s: %w", shown(before.record.ChangeID), err)
	}
	now, err := s.readTree(ctx, to, after.record.ChangeID, wanted, o, old)
	if err != nil {
		err = fmt.Errorf("reading change %s: %w", shown(after.record.ChangeID), err)
	}
	if now == nil {
		return nil, err
	}
	switch a, b := old.side, now.side; {
	case old.missing != nil && now.missing != nil:
		return nil, errors.Join(now.missing, err)
	case old.missing.unless(b.GuestPath) != nil:
		return nil, errors.Join(fmt.Errorf("reading change %s: %w", shown(a.ChangeID), old.missing.Doubt), err)
	case now.missing.unless(a.GuestPath) != nil:
		return nil, errors.Join(fmt.Errorf("reading change %s: %w", shown(b.ChangeID), now.missing.Doubt), err)
	case old.missing == nil && now.missing == nil && a.GuestPath != b.GuestPath:
		return nil, errors.Join(&AmbiguousPathError{Path: guestPath, Hits: []string{a.GuestPath, b.GuestPath}}, err)
	}
	d := &Difference{
		VM: to.vms[0].Name, VMID: to.vms[0].ID, Path: guestPath, Before: old.side, After: now.side,
		Added: []DiffItem{}, Removed: []DiffItem{}, Changed: []ChangedItem{}, Unread: []UnreadItem{},
		Complete: old.whole && now.whole,
	}
	d.compare(old, now)
	return d, err
}

// DiffNow is [Session.Diff] with the VM as it is now. It guards the VM, as [Session.Protect] does, with its errors, once it
// is sure that the guard can be read, and compares with that: [Difference.After] names its change. Its tagged checkpoints
// stand whatever comes of the comparison, so that an error after it names their change as well.
func (s *Session) DiffNow(ctx context.Context, before *Guard, guestPath string, opts ...DiffOption) (*Difference, error) {
	if _, err := parseGuestPath(guestPath); err != nil {
		return nil, err
	}
	o, err := newDiffOptions(opts)
	if err != nil {
		return nil, err
	}
	from, err := s.chooseMount(ctx, before, o.places)
	if err != nil {
		return nil, err
	}
	after, err := s.Protect(ctx, string(from.vms[0].ID), Change{Action: "compare with change " + before.record.ChangeID})
	if err != nil {
		return nil, fmt.Errorf("guarding %s as it is now: %w", shown(from.vms[0].Name), err)
	}
	d, err := s.Diff(ctx, before, after, guestPath, opts...)
	if d == nil {
		record := after.Record()
		err = pinnedAllTheSame(&record, err)
	}
	return d, err
}

// chooseBoth picks what is mounted for two guards, which have to be of one VM.
func (s *Session) chooseBoth(ctx context.Context, before, after *Guard, places []PlaceOption) (from, to covered, err error) {
	if from, err = s.chooseMount(ctx, before, places); err != nil {
		return from, to, err
	}
	if to, err = s.chooseMount(ctx, after, places); err != nil {
		return from, to, err
	}
	if a, b := from.vms[0], to.vms[0]; !sameID(a.ID, b.ID) {
		return from, to, fmt.Errorf("rewind: the guards are of two VMs, %s (%s) and %s (%s)", shown(a.Name), a.ID, shown(b.Name), b.ID)
	}
	return from, to, nil
}

func (d *Difference) compare(before, after *tree) {
	for at, old := range before.items {
		now, both := after.items[at]
		switch {
		case both:
			d.compareItem(at, old, now)
		case after.lacks(at):
			d.Removed = append(d.Removed, DiffItem{at, old.ItemState})
		default:
			d.unread(at, "its folder was not read whole after the change")
		}
	}
	for at, now := range after.items {
		_, both := before.items[at]
		switch {
		case both:
		case before.lacks(at):
			d.Added = append(d.Added, DiffItem{at, now.ItemState})
		default:
			d.unread(at, "its folder was not read whole before the change")
		}
	}
	byPath := func(a, b DiffItem) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(d.Added, byPath)
	slices.SortFunc(d.Removed, byPath)
	slices.SortFunc(d.Changed, func(a, b ChangedItem) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(d.Unread, func(a, b UnreadItem) int { return strings.Compare(a.Path, b.Path) })
}

func (d *Difference) compareItem(at string, old, now treeItem) {
	switch by := differences(old, now); {
	case len(by) > 0:
		if old.SHA256 == now.SHA256 {
			old.Content, now.Content = nil, nil
		}
		d.Changed = append(d.Changed, ChangedItem{at, by, old.ItemState, now.ItemState})
	case old.Unread != "":
		d.unread(at, old.Unread)
	case now.Unread != "":
		d.unread(at, now.Unread)
	case !old.folder:
		d.Same++
	}
}

func (d *Difference) unread(at, reason string) { d.Unread = append(d.Unread, UnreadItem{at, reason}) }

// differences names what differs as far as both sides tell. A folder's own time says nothing that its items do not.
func differences(a, b treeItem) []string {
	var by []string
	if a.Type != b.Type || a.file != b.file && a.folder != b.folder {
		by = append(by, "type")
	}
	if a.folder || b.folder {
		return by
	}
	if a.Bytes != nil && b.Bytes != nil && *a.Bytes != *b.Bytes {
		by = append(by, "size")
	}
	if a.Written != nil && b.Written != nil && !a.Written.Equal(*b.Written) {
		by = append(by, "written")
	}
	if a.SHA256 != "" && b.SHA256 != "" && a.SHA256 != b.SHA256 {
		by = append(by, "sha256")
	}
	return by
}

// lacks reports whether an item that the tree does not hold is known not to be there. It is not when a folder above it
// was not listed whole.
func (t *tree) lacks(at string) bool {
	for at != "." {
		at = path.Dir(at)
		if above, there := t.items[at]; there {
			return above.file || t.listed[at]
		}
	}
	return t.missing != nil
}
