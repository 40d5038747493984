package rewind

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// RecoverOption narrows what [Session.Recover] and [Session.Browse] look at.
type RecoverOption func(*recoverOptions)

type recoverOptions struct{ vm, vpg string }

// takes reports whether the options leave a checkpoint to choose from.
func (o recoverOptions) takes(c TaggedCheckpoint) bool {
	return o.vpg == "" || string(c.VPGID) == o.vpg || c.VPGName == o.vpg
}

// FromVM names the VM to look at, by name or id, when a guard covers several.
func FromVM(vm string) RecoverOption { return func(o *recoverOptions) { o.vm = vm } }

// InVPG names the VPG, by name or id, whose checkpoint is taken.
func InVPG(vpg string) RecoverOption { return func(o *recoverOptions) { o.vpg = vpg } }

// Recovery is the evidence of one file brought back.
type Recovery struct {
	ChangeID     string           `json:"changeId"`
	VM           string           `json:"vm"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// GuestPath is the path in the session, which starts with the partition, in the server's own spelling.
	GuestPath    string        `json:"guestPath"`
	Dest         string        `json:"dest"`
	Bytes        int64         `json:"bytes"`
	SHA256       string        `json:"sha256"` // hexadecimal
	FLRSessionID zvm.SessionID `json:"flrSessionId"`
	// Unmounted is true once the server no longer lists the session.
	Unmounted bool `json:"unmounted"`
}

// Listing is what one folder of a guarded VM held at its checkpoint.
type Listing struct {
	ChangeID     string           `json:"changeId"`
	VM           string           `json:"vm"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	GuestPath    string           `json:"guestPath"`
	Items        []ListedItem     `json:"items"`
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
// Errors: [ErrNotProven], [ErrNotLocal], [ErrCheckpointGone], [*PathNotFoundError], [*AmbiguousPathError],
// [*NotDownloadableError]. A [*LeftOpenError] may come with a result: the file is whole, but the session is still open.
func (s *Session) Recover(ctx context.Context, g *Guard, path string, sink Sink, opts ...RecoverOption) (*Recovery, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return nil, err
	}
	if err := sink.check(); err != nil {
		return nil, err
	}
	pin, vm, err := s.choosePin(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	r := &Recovery{
		ChangeID: g.record.ChangeID, VM: vm.Name, VPGID: pin.VPGID, CheckpointID: pin.CheckpointID, Dest: sink.dest(),
	}
	done := false
	r.FLRSessionID, err = s.withMount(ctx, flrTarget(pin, vm), pin.VPGName, func(ctx context.Context, m mounted) error {
		item, err := s.locate(ctx, m, wanted)
		if err != nil {
			return err
		}
		r.GuestPath = item.Path
		if !item.Downloadable {
			return &NotDownloadableError{Path: item.Path, Reason: item.Reason}
		}
		if item.Browsable {
			return &NotDownloadableError{Path: item.Path, Reason: "it is a folder"}
		}
		r.Bytes, r.SHA256, err = s.download(ctx, m, item, sink)
		done = err == nil
		return err
	})
	var open *LeftOpenError
	r.Unmounted = !errors.As(err, &open)
	if !done {
		return nil, err
	}
	return r, err
}

// Browse lists one folder of a guarded VM as it was at the guard's checkpoint, or the partitions for an empty path or
// "/". It mounts and closes as [Session.Recover] does, with the same errors.
func (s *Session) Browse(ctx context.Context, g *Guard, path string, opts ...RecoverOption) (*Listing, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return nil, err
	}
	pin, vm, err := s.choosePin(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	l := &Listing{
		ChangeID: g.record.ChangeID, VM: vm.Name, VPGID: pin.VPGID, CheckpointID: pin.CheckpointID, Items: []ListedItem{},
	}
	done := false
	l.FLRSessionID, err = s.withMount(ctx, flrTarget(pin, vm), pin.VPGName, func(ctx context.Context, m mounted) error {
		if len(wanted.parts) > 0 || wanted.drive != "" {
			item, err := s.locate(ctx, m, wanted)
			if err != nil {
				return err
			}
			l.GuestPath = item.Path
		}
		folder, err := s.zvm.BrowseFLR(ctx, m.session, l.GuestPath)
		for _, i := range folder.Items {
			l.Items = append(l.Items, listedItem(i))
		}
		l.Complete = folder.Complete
		done = err == nil
		return err
	})
	var open *LeftOpenError
	l.Unmounted = !errors.As(err, &open)
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
	if !i.Written.IsZero() {
		l.Written = &i.Written.Time
	}
	return l
}

func flrTarget(pin TaggedCheckpoint, vm VM) zvm.FLRTarget {
	return zvm.FLRTarget{VPG: pin.VPGID, VM: vm.ID, Checkpoint: pin.CheckpointID}
}

// choosePin picks the checkpoint to mount, the guard's local one that covers the VM, and reads it in its journal once
// more: mounting what is gone would fail late and in the server's words.
func (s *Session) choosePin(ctx context.Context, g *Guard, opts []RecoverOption) (TaggedCheckpoint, VM, error) {
	if !g.Proven() {
		return TaggedCheckpoint{}, VM{}, ErrNotProven
	}
	var o recoverOptions
	for _, opt := range opts {
		opt(&o)
	}
	vm, err := g.chooseVM(o.vm)
	if err != nil {
		return TaggedCheckpoint{}, VM{}, err
	}
	var elsewhere []string
	for _, c := range g.record.Checkpoints {
		switch {
		case !slices.Contains(g.members[c.VPGID], vm), !o.takes(c):
		case c.Local:
			_, err := s.readPin(ctx, c)
			return c, vm, err
		default:
			elsewhere = append(elsewhere, c.RecoverySite)
		}
	}
	return TaggedCheckpoint{}, VM{}, &NotLocalError{ChangeID: g.record.ChangeID, RecoverySites: elsewhere}
}

func (g *Guard) chooseVM(wanted string) (VM, error) {
	vms := g.record.VMs
	if wanted != "" {
		vms = slices.DeleteFunc(slices.Clone(vms), func(v VM) bool { return string(v.ID) != wanted && v.Name != wanted })
	}
	switch len(vms) {
	case 0:
		return VM{}, &NotFoundError{Wanted: wanted, What: "VM in the guard of change " + g.record.ChangeID + ":"}
	case 1:
		return vms[0], nil
	}
	ambiguous := &AmbiguousVMError{Wanted: "change " + g.record.ChangeID}
	for _, v := range vms {
		ambiguous.Candidates = append(ambiguous.Candidates, Protection{VM: v})
	}
	return VM{}, ambiguous
}
