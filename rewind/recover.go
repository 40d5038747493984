package rewind

import (
	"context"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Recovery is the evidence of one file brought back.
type Recovery struct {
	ChangeID     string           `json:"changeId"`
	VM           string           `json:"vm"`
	VMID         zvm.VMID         `json:"vmId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// RecoverySiteID names the site whose ZVM mounted the checkpoint and knows the identifiers here, empty for the session's own.
	RecoverySiteID zvm.SiteID `json:"recoverySiteId,omitempty"`
	// Tag and CheckpointTime are those of the checkpoint that the file comes from; the time is the server's.
	Tag            string    `json:"tag"`
	CheckpointTime time.Time `json:"checkpointTime"`
	// GuestPath is the path in the session, which starts with the partition, in the server's own spelling.
	GuestPath string `json:"guestPath"`
	// Created, Accessed and Written are the file's times in the guest, nil, and left out of JSON, where the server does not say.
	Created      *time.Time    `json:"created,omitempty"`
	Accessed     *time.Time    `json:"accessed,omitempty"`
	Written      *time.Time    `json:"written,omitempty"`
	Dest         string        `json:"dest"`
	Bytes        int64         `json:"bytes"`
	SHA256       string        `json:"sha256"` // hexadecimal
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	// Unmounted is true once the server no longer lists the session.
	Unmounted bool `json:"unmounted"`
	// Stages are the steps in the order in which they were done, and how long each took.
	Stages []StageTime `json:"stages"`
	// Pinned is the guard that [PinFirst] made, nil, and left out of JSON, without it.
	Pinned *GuardRecord `json:"pinned,omitempty"`
}

// Listing is what one folder of a guarded VM held at its checkpoint.
type Listing struct {
	ChangeID     string           `json:"changeId"`
	VM           string           `json:"vm"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// RecoverySiteID is as in [Recovery].
	RecoverySiteID zvm.SiteID   `json:"recoverySiteId,omitempty"`
	GuestPath      string       `json:"guestPath"`
	Items          []ListedItem `json:"items"`
	// Complete is false when the server seems to hold back items of the folder.
	Complete     bool          `json:"complete"`
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	Unmounted    bool          `json:"unmounted"`
}

// ListedItem is one entry of a [Listing].
type ListedItem struct {
	Name         string     `json:"name"`
	Path         string     `json:"path"`
	Type         string     `json:"type"`
	Bytes        *int64     `json:"bytes"`   // nil when unknown
	Written      *time.Time `json:"written"` // nil when unknown
	Downloadable bool       `json:"downloadable"`
	Reason       string     `json:"reason"` // why not downloadable
}

// Recover brings one file of a guarded VM back, as it was at the guard's checkpoint, by file-level recovery: it mounts
// the checkpoint, finds the path by browsing, downloads into the sink, and closes the session on every path.
//
// The path is the guest's own ("/etc/hosts", `C:\inetpub\web.config`) or starts with a partition, as [Session.Browse]
// lists them. Where partitions are mounted is not told (zvm-wire 6.4): a path is followed into another one only at an
// empty folder, and whatever leaves a choice is an [*AmbiguousPathError], one hit that another partition contests
// included. A path that starts with a partition is never followed out of it. Names are compared as they are spelt; case
// is ignored on Windows file systems, and [WithNormalForm] makes names equal that Unicode spells in two ways.
//
// The data takes constant memory, whatever its size. A file that the server sends in a zip passes through a temporary file in
// the system's folder for these ([os.TempDir]), which needs room for it.
//
// Errors: [ErrNotProven], [ErrNotLocal], [ErrCheckpointGone], [*AmbiguousVMError], [*AmbiguousVPGError], [*CounterpartError],
// [*NotMountableError], [*PathNotFoundError], [*AmbiguousPathError], [*PartitionNotFoundError], [*NotDownloadableError],
// [*DestinationError]. A [*LeftOpenError] may come with a result: the file is whole, but the session is still open.
func (s *Session) Recover(ctx context.Context, g *Guard, path string, sink Sink, opts ...PlaceOption) (*Recovery, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return nil, err
	}
	if err := checkSink(sink); err != nil {
		return nil, err
	}
	opts, first := withoutPinFirst(opts)
	times := startLaps()
	from, err := s.chooseMount(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	times.end("check")
	r := recoveryOf(g, from)
	r.Dest = sink.dest()
	if first {
		if r.Pinned, err = s.pin(ctx, from.vms[0], r.ChangeID); err != nil {
			return nil, err
		}
		times.end("pin")
	}
	done := false
	r.FLRSessionID, r.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		times.end("mount")
		item, err := m.locate(ctx, wanted)
		if err != nil {
			return err
		}
		if err := refuseFile(item); err != nil {
			return err
		}
		times.end("browse")
		err = s.bring(ctx, m, r, item, sink)
		times.end("download")
		done = err == nil
		return err
	})
	times.end("unmount")
	r.Stages = times.times
	if !done {
		return nil, pinnedAllTheSame(r.Pinned, err)
	}
	return r, err
}

// Browse lists one folder of a guarded VM as it was at the guard's checkpoint, the partitions for an empty path or "/",
// or a single file. It mounts and closes as [Session.Recover] does, with the same errors.
func (s *Session) Browse(ctx context.Context, g *Guard, path string, opts ...PlaceOption) (*Listing, error) {
	l := &Listing{Items: []ListedItem{}}
	return s.browse(ctx, g, path, l, func(ctx context.Context, m mounted) error {
		folder, err := m.listFolder(ctx, l.GuestPath)
		for _, i := range folder.Items {
			l.Items = append(l.Items, listedItem(i))
		}
		l.Complete = folder.Complete
		return err
	}, opts)
}

// BrowseEach is [Session.Browse] for folders of any size: it gives each the items as they arrive, in pages of some
// thousand, and keeps none but a single file. The Listing comes at the end, with no items of a folder. An error of each ends
// it and is returned.
func (s *Session) BrowseEach(ctx context.Context, g *Guard, path string, each func(ListedItem) error, opts ...PlaceOption) (*Listing, error) {
	l := &Listing{Items: []ListedItem{}}
	return s.browse(ctx, g, path, l, func(ctx context.Context, m mounted) (err error) {
		l.Complete, err = m.eachItem(ctx, l.GuestPath, func(i zvm.Item) error { return each(listedItem(i)) })
		return err
	}, opts)
}

// browse mounts, finds the path, and lists a single file itself.
func (s *Session) browse(
	ctx context.Context, g *Guard, path string, l *Listing, list func(context.Context, mounted) error, opts []PlaceOption,
) (*Listing, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return nil, err
	}
	from, err := s.chooseMount(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	l.ChangeID, l.VM, l.VPGID, l.CheckpointID = g.record.ChangeID, from.vms[0].Name, from.VPGID, from.CheckpointID
	l.RecoverySiteID = from.at.site
	done := false
	l.FLRSessionID, l.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		if !wanted.isTop() || m.partition != "" {
			item, err := m.locate(ctx, wanted)
			if err != nil {
				return err
			}
			l.GuestPath = item.Path
			if !item.Browsable {
				l.Items = append(l.Items, listedItem(item))
				l.Complete, done = true, true
				return nil
			}
		}
		err := list(ctx, m)
		done = err == nil
		return err
	})
	if !done {
		return nil, err
	}
	return l, err
}

func listedItem(i zvm.Item) ListedItem {
	l := ListedItem{Name: i.Name(), Path: i.Path, Type: i.Type, Downloadable: i.Downloadable, Reason: i.Reason}
	if i.Size >= 0 {
		l.Bytes = &i.Size
	}
	l.Written = known(i.Written)
	return l
}

// known is a time that the server tells, nil when it does not.
func known(t zvm.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}
