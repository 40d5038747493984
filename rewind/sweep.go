package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Leftover is something of ours that is open at the server: an FLR session on a checkpoint that bears our tag.
type Leftover struct {
	FLRSessionID zvm.SessionID    `json:"flrSessionId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	VMID         zvm.VMID         `json:"vmId"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	ChangeID     string           `json:"changeId"`
	MountedAt    time.Time        `json:"mountedAt"` // server clock, zero when not given
	// InUse is true while the server counts work in the session. Such a session is left alone.
	InUse bool `json:"inUse"`
	// Closed is true once the server no longer lists the session.
	Closed bool `json:"closed"`
}

// SweepOption changes what [Session.Sweep] does.
type SweepOption func(*sweepOptions)

type sweepOptions struct{ apply bool }

// Apply has what is found closed.
func Apply() SweepOption { return func(o *sweepOptions) { o.apply = true } }

// Sweep finds what a crash left open, from the server's own truth, and closes it if [Apply] is given. It looks only at
// what carries a tag of ours, and leaves alone what is in use. It cannot tell a leftover from the session of another
// process that is at work between two downloads.
//
// A session that could not be closed is a [*LeftOpenError], beside the list.
func (s *Session) Sweep(ctx context.Context, opts ...SweepOption) ([]Leftover, error) {
	var o sweepOptions
	for _, opt := range opts {
		opt(&o)
	}
	open, err := s.zvm.ListFLRSessions(ctx, "")
	if err != nil || len(open) == 0 {
		return []Leftover{}, err
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	left := []Leftover{}
	for _, session := range open {
		l, ours, err := s.leftover(ctx, inv, clock, session)
		if err != nil {
			return left, fmt.Errorf("sweep: FLR session %s: %w", session.ID, err)
		}
		if ours {
			left = append(left, l)
		}
	}
	if !o.apply {
		return left, nil
	}
	var failures []error
	for i := range left {
		l := &left[i]
		if l.InUse {
			continue
		}
		target := zvm.FLRTarget{VPG: l.VPGID, VM: l.VMID, Checkpoint: l.CheckpointID}
		err := s.unmount(ctx, mounted{FLRTarget: target, session: l.FLRSessionID, vpgName: l.VPGName})
		l.Closed = err == nil
		failures = append(failures, err)
	}
	return left, errors.Join(failures...)
}

// leftover tells by the tag of its checkpoint whether a session is ours. A checkpoint that is in no journal any more, or
// a VPG that the server does not list, tells nothing: the session is then not ours to close.
func (s *Session) leftover(ctx context.Context, inv inventory, clock serverClock, f zvm.FLRSession) (Leftover, bool, error) {
	vpg, listed := inv.vpgs[f.VPG]
	if !listed {
		return Leftover{}, false, nil
	}
	for st, err := range s.ourTags(ctx, vpgProtection(vpg), time.Time{}, clock.now()) {
		if err != nil {
			return Leftover{}, false, err
		}
		if st.ID == f.Checkpoint {
			return Leftover{
				FLRSessionID: f.ID, VPGID: f.VPG, VPGName: vpg.Name, VMID: f.VM, CheckpointID: f.Checkpoint,
				ChangeID: st.tag.Change, MountedAt: f.MountTime.Time, InUse: f.RunningTasks > 0,
			}, true, nil
		}
	}
	return Leftover{}, false, nil
}
