package rewind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// LeftoverKind says what was left open.
type LeftoverKind string

// The kinds of leftovers.
const (
	LeftFLR   LeftoverKind = "flr"
	LeftTest  LeftoverKind = "test"
	LeftClone LeftoverKind = "clone"
)

// startedBy is the type of the task that starts one.
func (k LeftoverKind) startedBy() string {
	switch k {
	case LeftTest:
		return zvm.TypeFailoverTest
	case LeftClone:
		return zvm.TypeClone
	}
	return zvm.TypeFLRMount
}

// Leftover is something open at the server that is ours, or may be: an FLR session, a failover test, or a clone.
type Leftover struct {
	Kind         LeftoverKind  `json:"kind"`
	FLRSessionID zvm.SessionID `json:"flrSessionId"` // of an FLR session alone
	TaskID       zvm.TaskID    `json:"taskId"`       // of what started a test or a clone, empty when not known
	VPGID        zvm.VPGID     `json:"vpgId"`
	VPGName      string        `json:"vpgName"`
	VMID         zvm.VMID      `json:"vmId"` // of an FLR session alone
	// VMNames are the VM that is mounted, or those of the VPG: which of them a test or a clone is of, the server does not say.
	VMNames      []string         `json:"vmNames"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	// RecoverySiteID names the site whose ZVM it is open at and knows the identifiers here, empty for the session's own.
	RecoverySiteID zvm.SiteID `json:"recoverySiteId,omitempty"`
	ChangeID       string     `json:"changeId"`
	OpenedAt       time.Time  `json:"openedAt"`          // server clock, zero when not given
	Deadline       time.Time  `json:"deadline,omitzero"` // server clock, zero when there is none; see [For]
	// Ours is true when the server's own records show that it was opened by whoever wrote its tag.
	Ours bool `json:"ours"`
	// InUse is true while the server counts work in an FLR session.
	InUse bool `json:"inUse"`
	// Reason says why Sweep with [Apply] leaves it alone, empty when it does not.
	Reason string `json:"reason"`
	// Closed is true once the server no longer lists the session, runs the test, or makes the clone.
	Closed bool `json:"closed"`
}

// SweepOption changes what [Session.Sweep] does.
type SweepOption func(*sweepOptions)

type sweepOptions struct {
	apply, all bool
	restricted bool
	only       []Leftover
}

// Apply has what is found closed: FLR sessions that are not in use, and tests and clones past their deadline.
func Apply() SweepOption { return func(o *sweepOptions) { o.apply = true } }

// All extends [Apply] to tests and clones of ours before their deadline or without one, and to FLR sessions on a checkpoint
// of ours that somebody else than the writer of its tag has mounted.
func All() SweepOption { return func(o *sweepOptions) { o.all = true } }

// Only restricts [Apply] to what an earlier Sweep listed, such as what a person agreed to: the same kind, VPG, FLR session,
// task and recovery site. Everything else is listed with a reason, and left alone. Only() has nothing closed; given several
// times, it restricts to all that was named.
func Only(left ...Leftover) SweepOption {
	return func(o *sweepOptions) { o.restricted, o.only = true, append(o.only, left...) }
}

func (l Leftover) same(as Leftover) bool {
	return l.Kind == as.Kind && sameID(l.VPGID, as.VPGID) && sameID(l.FLRSessionID, as.FLRSessionID) &&
		sameID(l.TaskID, as.TaskID) && sameID(l.RecoverySiteID, as.RecoverySiteID)
}

// Sweep finds what a crash left open, from the server's own truth, and closes it if [Apply] is given.
//
// An FLR session is ours when its checkpoint bears a tag of ours. A failover test or a clone is ours when the mark that
// [Session.StartTest] or [Session.Clone] left stands in the VPG's journal, its start is the only one there since, soon
// after, and whoever initiated it initiated the mark as well. What may be ours and cannot be shown to be is listed with
// the reason and never touched: an FLR session, say, whose checkpoint has left the journal, or whose VPG the ZVM does not
// list. So are an FLR session in use, and a finished clone, which Zerto never removes. Of everything else Sweep says
// nothing, such as an FLR session on a checkpoint that stands in the journal without a tag of ours.
//
// It cannot tell a leftover from what another process is at work on: an FLR session between two downloads, say.
//
// At the ZVM of each [WithRecoverySite] it looks for FLR sessions alone: tests and clones are started at the session's own.
//
// What could not be closed is a [*LeftOpenError], beside the list.
func (s *Session) Sweep(ctx context.Context, opts ...SweepOption) ([]Leftover, error) {
	var o sweepOptions
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("rewind: an option is nil")
		}
		opt(&o)
	}
	left, err := (&sweep{sweepOptions: o, s: s}).run(ctx)
	for _, r := range s.sites {
		at := s.at(r)
		there, failure := (&sweep{sweepOptions: o, s: at}).run(ctx)
		left, err = append(left, there...), errors.Join(err, at.failedThere(failure))
	}
	return left, err
}

// run sweeps at one ZVM.
func (w *sweep) run(ctx context.Context) ([]Leftover, error) {
	open, err := w.s.zvm.ListFLRSessions(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	var clones []zvm.Task
	if w.s.site == "" {
		if clones, err = w.s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeClone}); err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
	}
	inv, clock, err := w.s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	w.inv, w.clock = inv, clock
	left := []Leftover{}
	var failures []error
	for _, id := range slices.Sorted(maps.Keys(inv.vpgs)) {
		v := suspect{VPG: inv.vpgs[id]}
		if w.s.site != "" {
			v.FailoverTestStage = ""
		}
		v.sessions = slices.DeleteFunc(slices.Clone(open), func(f zvm.FLRSession) bool { return !sameID(f.VPG, id) })
		v.clones = slices.DeleteFunc(slices.Clone(clones), func(t zvm.Task) bool { return !concernsVPG(t, id) })
		if len(v.sessions) == 0 && len(v.clones) == 0 && v.FailoverTestStage == "" {
			continue
		}
		found, err := w.leftovers(ctx, v)
		if err != nil {
			failures = append(failures, fmt.Errorf("sweep: VPG %s: %w", shown(v.Name), err))
		}
		left = append(left, found...)
	}
	left = append(left, w.strays(open)...)
	slices.SortStableFunc(left, func(a, b Leftover) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), a.OpenedAt.Compare(b.OpenedAt))
	})
	return left, errors.Join(failures...)
}

// sweep is one run of [Session.Sweep].
type sweep struct {
	sweepOptions

	s     *Session
	inv   inventory
	clock serverClock
}

// strays lists the FLR sessions of VPGs that the server does not list: it has no journal that would tell whose they are.
func (w *sweep) strays(open []zvm.FLRSession) []Leftover {
	listed := slices.Collect(maps.Keys(w.inv.vpgs))
	var left []Leftover
	for _, f := range open {
		if slices.ContainsFunc(listed, func(id zvm.VPGID) bool { return sameID(id, f.VPG) }) {
			continue
		}
		l := leftSession(f)
		l.VPGID, l.RecoverySiteID, l.Reason = f.VPG, w.s.site, unproven("the ZVM does not list its VPG")
		l.VMNames = w.vmNames(func(row zvm.VM) bool { return sameID(row.ID, f.VM) })
		left = append(left, l)
	}
	return left
}

func leftSession(f zvm.FLRSession) Leftover {
	return Leftover{
		Kind: LeftFLR, FLRSessionID: f.ID, VMID: f.VM, CheckpointID: f.Checkpoint, OpenedAt: f.MountTime.Time, InUse: f.RunningTasks > 0,
	}
}

func (w *sweep) vmNames(of func(zvm.VM) bool) []string {
	names := []string{}
	for _, row := range w.inv.vms {
		if of(row) {
			names = append(names, row.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// suspect is a VPG with what is open there.
type suspect struct {
	zvm.VPG

	sessions []zvm.FLRSession
	clones   []zvm.Task
}

// leftovers tells by the journal of a VPG which of what is open there is ours, or looks like it, and closes it if that is
// asked for, each kind as soon as it is known: what is open changes. What was found before an error is returned beside it.
func (w *sweep) leftovers(ctx context.Context, v suspect) ([]Leftover, error) {
	j, err := w.s.readJournal(ctx, vpgProtection(v.VPG), w.clock.now(), v.sessions)
	if err != nil {
		return nil, err
	}
	finds := []func(context.Context, suspect, journal) ([]Leftover, error){w.sessions}
	if j.ours() {
		finds = append(finds, w.test, w.clones)
	}
	var left []Leftover
	var failures []error
	for _, find := range finds {
		found, err := find(ctx, v, j)
		failures = append(failures, err)
		for _, l := range found {
			l.VPGID, l.VPGName, l.RecoverySiteID = v.ID, v.Name, w.s.site
			l.VMNames = w.vmNames(func(row zvm.VM) bool {
				return sameID(row.VPG, v.ID) && (l.VMID == "" || sameID(row.ID, l.VMID))
			})
			if w.restricted && l.Reason == "" && !slices.ContainsFunc(w.only, l.same) {
				l.Reason = "it is none of those that alone were to be closed"
			}
			if w.apply && l.Reason == "" {
				err := w.close(ctx, l)
				l.Closed = err == nil
				failures = append(failures, err)
			}
			left = append(left, l)
		}
	}
	return left, errors.Join(failures...)
}

// sessions lists the FLR sessions on checkpoints of ours. A checkpoint that is not in the journal tells nothing: its session
// may be ours, and is not ours to close.
func (w *sweep) sessions(ctx context.Context, v suspect, j journal) ([]Leftover, error) {
	var left []Leftover
	for _, f := range v.sessions {
		l := leftSession(f)
		st, ours := j.tags[f.Checkpoint]
		switch {
		case j.theirs[f.Checkpoint]:
			continue
		case !ours:
			l.Reason = unproven("its checkpoint is no longer in the journal")
			left = append(left, l)
			continue
		}
		l.ChangeID = st.tag.Change
		other, err := w.s.mountedByAnother(ctx, v.ID, f.ID, st)
		l.Ours = err == nil && other == ""
		switch {
		case err != nil:
			l.Reason = unproven("who mounted it cannot be looked up")
			return append(left, l), err
		case l.InUse:
			l.Reason = "it is in use"
		case other != "" && !w.all:
			l.Reason = fmt.Sprintf("%s mounted it, who did not write the tag", shown(other))
		}
		left = append(left, l)
	}
	return left, nil
}

// test lists the failover test that runs at a VPG.
func (w *sweep) test(ctx context.Context, v suspect, j journal) ([]Leftover, error) {
	if v.FailoverTestStage == "" {
		return nil, nil
	}
	l := Leftover{Kind: LeftTest}
	marks := j.marks[LeftTest]
	if len(marks) == 0 {
		l.Reason = unproven(noMark)
		return []Leftover{l}, nil
	}
	last := marks[len(marks)-1]
	starts, err := w.s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeFailoverTest, StartedAfter: last.at})
	if err != nil {
		l.Reason = unproven("its start cannot be looked up")
		return []Leftover{l}, err
	}
	starts = slices.DeleteFunc(starts, func(t zvm.Task) bool { return !concernsVPG(t, v.ID) })
	start, doubt, err := w.s.startUnder(ctx, v.ID, last, starts)
	l.TaskID, l.OpenedAt = start.ID, start.Started
	if doubt != "" {
		l.Reason = unproven(doubt)
		return []Leftover{l}, err
	}
	return []Leftover{w.announced(l, last)}, nil
}

// clones lists the clones of ours, of which a server tells by their tasks alone.
func (w *sweep) clones(ctx context.Context, v suspect, j journal) ([]Leftover, error) {
	var left []Leftover
	var failures []error
	doubts, marks := map[zvm.TaskID]string{}, j.marks[LeftClone]
	for i, m := range marks {
		starts := slices.DeleteFunc(slices.Clone(v.clones), func(t zvm.Task) bool {
			return t.Started.Before(m.at) || i+1 < len(marks) && !t.Started.Before(marks[i+1].at)
		})
		start, doubt, err := w.s.startUnder(ctx, v.ID, m, starts)
		failures = append(failures, err)
		if doubt != "" {
			for _, t := range starts {
				doubts[t.ID] = doubt
			}
			continue
		}
		doubts[start.ID] = ""
		l := w.announced(Leftover{Kind: LeftClone, TaskID: start.ID, OpenedAt: start.Started}, m)
		switch {
		case start.State == task.Completed:
			l.Reason = "it is finished: " + cloneNote
		case start.State.Terminal():
			continue // it ended without a clone
		}
		left = append(left, l)
	}
	for _, t := range v.clones {
		doubt, known := doubts[t.ID]
		if !known {
			doubt = noMark
		}
		if !t.State.Terminal() && doubt != "" {
			left = append(left, Leftover{Kind: LeftClone, TaskID: t.ID, OpenedAt: t.Started, Reason: unproven(doubt)})
		}
	}
	return left, errors.Join(failures...)
}

const noMark = "no mark in the journal announces it"

func unproven(doubt string) string { return "it cannot be shown to be ours: " + doubt }

// announced completes what is ours with what its mark says of it.
func (w *sweep) announced(l Leftover, m mark) Leftover {
	l.Ours, l.ChangeID, l.CheckpointID, l.Deadline = true, m.change, m.checkpoint, m.until
	switch {
	case w.all:
	case m.until.IsZero():
		l.Reason = "it has no deadline"
	case w.clock.now().Before(m.until):
		l.Reason = "its deadline is not over"
	}
	return l
}

// close closes a leftover, or names what could not be closed.
func (w *sweep) close(ctx context.Context, l Leftover) error {
	switch l.Kind {
	case LeftTest:
		t := &Test{s: w.s, record: TestRecord{ChangeID: l.ChangeID, VPGID: l.VPGID, VPGName: l.VPGName, TaskID: l.TaskID}}
		return t.end(ctx, "left over, and ended by a sweep")
	case LeftClone:
		return w.s.abortClone(ctx, openedAt(LeftClone, l.ChangeID, l.VPGID, l.VPGName), l.TaskID)
	case LeftFLR:
	}
	target := zvm.FLRTarget{VPG: l.VPGID, VM: l.VMID, Checkpoint: l.CheckpointID}
	return w.s.unmount(ctx, mounted{FLRTarget: target, at: w.s, session: l.FLRSessionID, vpgName: l.VPGName, change: l.ChangeID})
}
