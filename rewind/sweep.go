package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	if len(open) == 0 {
		return []Leftover{}, nil
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	left := []Leftover{}
	var failures []error
	for id, sessions := range byVPG(open) {
		if vpg, listed := inv.vpgs[id]; listed {
			found, err := s.leftovers(ctx, vpg, clock, sessions)
			if err != nil {
				failures = append(failures, fmt.Errorf("sweep: journal of %s: %w", shown(vpg.Name), err))
			}
			left = append(left, found...)
		}
	}
	slices.SortFunc(left, func(a, b Leftover) int { return strings.Compare(string(a.FLRSessionID), string(b.FLRSessionID)) })
	if !o.apply {
		return left, errors.Join(failures...)
	}
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

func byVPG(sessions []zvm.FLRSession) map[zvm.VPGID][]zvm.FLRSession {
	grouped := map[zvm.VPGID][]zvm.FLRSession{}
	for _, f := range sessions {
		grouped[f.VPG] = append(grouped[f.VPG], f)
	}
	return grouped
}

// leftovers tells by the tags of their checkpoints which sessions of a VPG are ours. A checkpoint that is in the journal
// no more tells nothing: its session is then not ours to close.
func (s *Session) leftovers(ctx context.Context, vpg zvm.VPG, clock serverClock, sessions []zvm.FLRSession) ([]Leftover, error) {
	var left []Leftover
	for st, err := range s.ourTags(ctx, vpgProtection(vpg), time.Time{}, clock.now()) {
		if err != nil {
			return nil, err
		}
		for _, f := range sessions {
			if f.Checkpoint == st.ID {
				left = append(left, Leftover{
					FLRSessionID: f.ID, VPGID: vpg.ID, VPGName: vpg.Name, VMID: f.VM, CheckpointID: f.Checkpoint,
					ChangeID: st.tag.Change, MountedAt: f.MountTime.Time, InUse: f.RunningTasks > 0,
				})
			}
		}
	}
	return left, nil
}
