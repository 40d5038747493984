package rewind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Verification is what a guard is worth now.
type Verification struct {
	ChangeID string `json:"changeId"`
	// Valid is true when every checkpoint of the guard still stands and no VPG is being synced in a way that may delete it.
	Valid bool `json:"valid"`
	// Recoverable is true when a file could be brought back now, as far as the server tells.
	Recoverable bool                 `json:"recoverable"`
	Checkpoints []VerifiedCheckpoint `json:"checkpoints"`
	VerifiedAt  time.Time            `json:"verifiedAt"` // server clock
}

// VerifiedCheckpoint is what one checkpoint of a guard is worth now.
type VerifiedCheckpoint struct {
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// Listed is true when the checkpoint was read in the journal.
	Listed bool `json:"listed"`
	// Threat says in words what may delete the checkpoint, empty when nothing known does.
	Threat string `json:"threat"`
	Local  bool   `json:"local"`
	// Mountable says of each guarded VM whether file-level recovery from here is possible. It is empty for a checkpoint
	// that is not local.
	Mountable []Mountable `json:"mountable"`
}

// Mountable says whether a VM can be mounted from a checkpoint now.
type Mountable struct {
	VM     VM     `json:"vm"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason"` // in the server's words where it gives any
}

// Verify looks at a guard again: whether each checkpoint still stands, whether its VPG is in a sync that may delete it,
// and whether the server would mount it. A guard that is not valid any more is a result, not an error.
func (s *Session) Verify(ctx context.Context, g *Guard) (*Verification, error) {
	if !g.Proven() {
		return nil, ErrNotProven
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify change %s: %w", g.record.ChangeID, err)
	}
	v := &Verification{
		ChangeID: g.record.ChangeID, Valid: true, VerifiedAt: clock.now(),
		Checkpoints: make([]VerifiedCheckpoint, len(g.record.Checkpoints)),
	}
	work, ctx := groupWithin(ctx)
	work.SetLimit(s.parallel)
	for i, c := range g.record.Checkpoints {
		work.Go(func() (err error) {
			v.Checkpoints[i], err = s.verifyCheckpoint(ctx, inv, c, g.members[c.VPGID])
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, fmt.Errorf("verify change %s: %w", g.record.ChangeID, err)
	}
	for _, c := range v.Checkpoints {
		v.Valid = v.Valid && c.Listed && c.Threat == ""
		v.Recoverable = v.Recoverable || c.Listed && slices.ContainsFunc(c.Mountable, func(m Mountable) bool { return m.OK })
	}
	return v, nil
}

func (s *Session) verifyCheckpoint(ctx context.Context, inv inventory, c TaggedCheckpoint, members []VM) (VerifiedCheckpoint, error) {
	v := VerifiedCheckpoint{
		VPGID: c.VPGID, VPGName: c.VPGName, CheckpointID: c.CheckpointID, Local: c.Local, Mountable: []Mountable{},
	}
	vpg, listed := inv.vpgs[c.VPGID]
	if !listed {
		v.Threat = "the ZVM does not list the VPG"
		return v, nil
	}
	v.Threat = threatTo(vpg)
	switch _, err := s.readPin(ctx, c); {
	case errors.Is(err, ErrCheckpointGone):
		return v, nil
	case err != nil:
		return v, err
	}
	v.Listed = true
	if !c.Local {
		return v, nil
	}
	for _, vm := range members {
		m, err := s.mountable(ctx, inv, c, vm)
		if err != nil {
			return v, err
		}
		v.Mountable = append(v.Mountable, m)
	}
	return v, nil
}

// threatTo returns why a VPG's checkpoints may be deleted. A bitmap sync adds none and deletes none; a VPG that is merely
// paused or disconnected keeps what it has until it ages out (zvm-wire 3.3).
func threatTo(v zvm.VPG) string {
	if whyNotProtecting(v) == "" {
		return ""
	}
	switch v.SubStatus.String() {
	case "BitmapSync", "ReplicationPausedUserInitiated", "ReplicationPausedSystemInitiated", "DisconnectedFromPeer":
		return ""
	}
	return whyNotProtecting(v)
}

// mountable asks the server whether it would mount a VM from a checkpoint, in both ways in which it tells.
func (s *Session) mountable(ctx context.Context, inv inventory, c TaggedCheckpoint, vm VM) (Mountable, error) {
	row := slices.IndexFunc(inv.vms, func(r zvm.VM) bool { return sameID(r.ID, vm.ID) && sameID(r.VPG, c.VPGID) })
	switch {
	case row < 0:
		return Mountable{VM: vm, Reason: "the VM is no longer in the VPG"}, nil
	case inv.vms[row].FLREnabled != nil && !*inv.vms[row].FLREnabled:
		return Mountable{VM: vm, Reason: "the server says that file-level recovery is not possible for the VM now"}, nil
	}
	around := zvm.Window{From: c.Timestamp.Add(-windowMargin), To: c.Timestamp.Add(windowMargin)}
	points, err := s.zvm.ListPointsInTime(ctx, vm.ID, c.VPGID, around)
	if err != nil {
		return Mountable{}, fmt.Errorf("asking whether %s can be mounted: %w", vm.Name, err)
	}
	for _, p := range points {
		if p.Checkpoint.ID == c.CheckpointID && p.CanMount != nil && !*p.CanMount {
			return Mountable{VM: vm, Reason: cmp.Or(p.Reason, "the server does not say why")}, nil
		}
	}
	return Mountable{VM: vm, OK: true}, nil
}

// Horizon says until when a guard is of use.
type Horizon struct {
	ChangeID string `json:"changeId"`
	// Until is when the first checkpoint of the guard will have aged out, on the server's clock; zero when the server
	// tells too little to say. After it the guard is no longer whole.
	Until       time.Time           `json:"until"`
	Reason      string              `json:"reason"`
	Checkpoints []CheckpointHorizon `json:"checkpoints"`
}

// CheckpointHorizon says until when one checkpoint will stand.
type CheckpointHorizon struct {
	VPGID   zvm.VPGID `json:"vpgId"`
	VPGName string    `json:"vpgName"`
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
	// Warnings say what may end it earlier.
	Warnings []string `json:"warnings"`
}

// Horizon tells from the configured and the actual history, the earliest checkpoint, and the journals' use of their
// limits until when a guard is of use. A tag holds nothing: a checkpoint ages out like any other, and earlier when a
// journal has no room.
func (s *Session) Horizon(ctx context.Context, g *Guard) (*Horizon, error) {
	if !g.Proven() {
		return nil, ErrNotProven
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("horizon of change %s: %w", g.record.ChangeID, err)
	}
	h := &Horizon{ChangeID: g.record.ChangeID, Reason: "the server does not say how much history its VPGs keep"}
	for _, c := range g.record.Checkpoints {
		ch := horizonOf(c, inv, clock.now())
		h.Checkpoints = append(h.Checkpoints, ch)
		if !ch.Until.IsZero() && (h.Until.IsZero() || ch.Until.Before(h.Until)) {
			h.Until, h.Reason = ch.Until, ch.VPGName+": "+ch.Reason
		}
	}
	return h, nil
}

func horizonOf(c TaggedCheckpoint, inv inventory, now time.Time) CheckpointHorizon {
	h := CheckpointHorizon{VPGID: c.VPGID, VPGName: c.VPGName, Warnings: []string{}}
	vpg, listed := inv.vpgs[c.VPGID]
	switch {
	case !listed:
		h.Reason = "the ZVM does not list the VPG"
		return h
	case vpg.History.Configured <= 0:
		h.Reason = "the server does not say how much history the VPG keeps"
	default:
		h.Until = c.Timestamp.Add(vpg.History.Configured)
		h.Reason = fmt.Sprintf("the VPG is set to keep %v of history", vpg.History.Configured)
	}
	if threat := threatTo(vpg); threat != "" {
		h.Warnings = append(h.Warnings, threat)
	}
	if e := vpg.History.Earliest; e != nil && !e.Time.IsZero() {
		switch kept := now.Sub(e.Time.Time); {
		case e.Time.After(c.Timestamp):
			h.Until, h.Reason = now, "the journal begins after the checkpoint"
		case vpg.History.Actual > 0 && vpg.History.Configured > 0 && kept < vpg.History.Actual-historySlack:
			h.Warnings = append(h.Warnings, fmt.Sprintf("the journal reaches back %v, less than the %v it did: it is shrinking",
				kept.Round(time.Minute), vpg.History.Actual))
		}
	}
	if vpg.Status == zvm.StatusHistoryNotMeeting || vpg.Status == zvm.StatusNotMeetingSLA {
		h.Warnings = append(h.Warnings, "the server says that the VPG keeps less history than it is set to")
	}
	for _, row := range inv.vms {
		if sameID(row.VPG, c.VPGID) {
			h.Warnings = append(h.Warnings, journalWarnings(row)...)
		}
	}
	return h
}

// historySlack is how far the server's count of minutes may lag behind its list of checkpoints.
const historySlack = 10 * time.Minute

// journalWarnings say when a VM's journal has little room left: at its limit the server drops the oldest checkpoints.
func journalWarnings(row zvm.VM) []string {
	j := row.Journal
	switch {
	case j.HardLimitMB > 0 && j.UsedMB >= j.HardLimitMB*95/100:
		return []string{fmt.Sprintf("the journal of %s uses %d of %d MB: the oldest checkpoints go first", row.Name, j.UsedMB, j.HardLimitMB)}
	case j.WarnAtMB > 0 && j.UsedMB >= j.WarnAtMB:
		return []string{fmt.Sprintf("the journal of %s uses %d MB, and its warning is set at %d MB", row.Name, j.UsedMB, j.WarnAtMB)}
	}
	return nil
}
