package rewind

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// windowMargin is left around a moment when a journal is searched for it: stamps are whole seconds, servers disagree on
// whether bounds are inclusive, and the clock of the ZVM that stamps need not be exactly that of the one that lists.
const windowMargin = 2 * time.Minute

// errUnfinished is the failure of a VPG whose work ended without a word, as when a watcher ends the goroutine it is
// called on.
var errUnfinished = errors.New("the work at this VPG was cut short")

func (t target) failed(tag string, id zvm.TaskID, err error) *VPGFailure {
	return &VPGFailure{VPGID: t.vpg.VPGID, VPGName: t.vpg.VPGName, Tag: tag, TaskID: id, Err: err}
}

// tagVPG puts the change's tagged checkpoint into one VPG's journal and reads it back, or finds it standing there.
func (s *Session) tagVPG(ctx context.Context, p *plan, t target) outcome {
	fail := func(tag string, id zvm.TaskID, err error) outcome { return outcome{failure: t.failed(tag, id, err)} }
	mine := p.turns[t.vpg.VPGID]
	if mine == nil {
		var err error
		if mine, err = s.turns.take(ctx, t.vpg.VPGID); err != nil {
			return fail("", "", fmt.Errorf("waiting for this VPG's turn: %w", err))
		}
		defer mine.done()
	}
	if err := s.clear(ctx, mine, t.vpg.VPGID); err != nil {
		return fail("", "", fmt.Errorf("waiting for an earlier insert at this VPG: %w", err))
	}
	for attempt := 1; ; attempt++ {
		if p.known {
			switch standing, found, err := s.findOrAwaitStanding(ctx, p, t, attempt); {
			case err != nil:
				return fail("", "", fmt.Errorf("looking for a tag of this change: %w", err))
			case found:
				return outcome{pin: pinOf(t, standing, "", "")}
			}
		}
		if err := s.requireProtecting(ctx, t.vpg, false); err != nil {
			return fail("", "", err)
		}
		sent, sentHere := p.clock.now(), time.Now()
		pin, id, err := s.insert(ctx, p, t)
		mine.leave(id, lostInsert{tag: t.tag, sent: sentHere, stamp: sent}, err)
		if err == nil {
			return outcome{pin: pin}
		}
		var failed *task.Error
		if !errors.As(err, &failed) || failed.State != task.Failed {
			return fail(unlessNeverSent(t.tag, id, err), id, err)
		}
		// The insert is known to have failed, so another one is a new write and not a repetition.
		if retry := s.waitOutForeign(ctx, p, t, id, sent, attempt); retry != nil {
			return fail("", id, errors.Join(err, retry))
		}
		// What ours met may have been ours as well: a server that refuses a bearer after it has done the work gets the write
		// a second time.
		switch own, found, err := s.findOwn(ctx, t, sent); {
		case err != nil:
			return fail(t.tag, id, err)
		case found:
			return outcome{pin: pinOf(t, own, "", "")}
		}
	}
}

// findOwn looks for exactly the tag that ours was to make, and gives it time if an insert has ended whose tag is not
// listed yet.
func (s *Session) findOwn(ctx context.Context, t target, sent time.Time) (cp zvm.Checkpoint, found bool, err error) {
	since := sent.Add(-windowMargin)
	return s.findSettled(ctx, t.vpg.VPGID, since, func(ctx context.Context) (zvm.Checkpoint, bool, error) {
		return s.findTag(ctx, t.vpg.VPGID, t.tag, since)
	})
}

// findOrAwaitStanding looks for a tag of the change. An insert that still runs at the VPG, that ended lately, or that ours
// has just met, may be an earlier call's that was given up: it is waited for, and its tag is given time to be listed,
// before anything is inserted.
func (s *Session) findOrAwaitStanding(ctx context.Context, p *plan, t target, attempt int) (cp zvm.Checkpoint, found bool, err error) {
	if attempt == 1 {
		if cp, found, err = s.findStanding(ctx, p, t, time.Time{}); found || err != nil {
			return cp, found, err
		}
	}
	now := p.clock.now()
	return s.findSettled(ctx, t.vpg.VPGID, now.Add(-settleReach), func(ctx context.Context) (zvm.Checkpoint, bool, error) {
		return s.findStanding(ctx, p, t, now.Add(-foreignReach))
	})
}

// settleReach is how long ago an insert may have ended whose tag is not listed yet: longer than [Limits.Listing] is by
// default.
const settleReach = 5 * time.Minute

// findSettled waits for the inserts that run at a VPG, and looks until it finds, or until every insert that ended since a
// moment has its tag in the journal, or for as long as a tag is given to be listed.
func (s *Session) findSettled(
	ctx context.Context, vpg zvm.VPGID, since time.Time, find func(context.Context) (zvm.Checkpoint, bool, error),
) (cp zvm.Checkpoint, found bool, err error) {
	inserts, err := s.insertsAt(ctx, vpg, since.Add(-foreignReach))
	if err != nil {
		return cp, false, err
	}
	inserts = slices.DeleteFunc(inserts, func(x zvm.Task) bool { return x.State.Terminal() && x.Completed.Before(since) })
	for i := range inserts {
		if !inserts[i].State.Terminal() {
			if inserts[i].State, err = s.awaitEnd(ctx, inserts[i].ID); err != nil {
				return cp, false, err
			}
		}
	}
	looking, cancel := context.WithTimeout(ctx, s.limits.Settle)
	defer cancel()
	err = task.Poll(looking, func(ctx context.Context) (bool, error) {
		// In this order: what is listed when nothing is missing any more is found.
		unlisted, unlistedErr := s.anyUnlisted(ctx, vpg, inserts)
		if unlistedErr != nil {
			return false, unlistedErr
		}
		cp, found, err = find(ctx)
		return found || !unlisted, err
	}, task.WithSchedule(s.schedule))
	if looking.Err() != nil && ctx.Err() == nil {
		err = nil // what is not listed by now is taken for another's
	}
	return cp, found, err
}

// anyUnlisted reports whether one of these inserts, which have ended, may have a tag that the journal does not list yet: more
// completed than there are tags since the first of them began.
func (s *Session) anyUnlisted(ctx context.Context, vpg zvm.VPGID, inserts []zvm.Task) (bool, error) {
	var first time.Time
	completed := 0
	for _, x := range inserts {
		if x.State == task.Completed {
			completed++
			if first.IsZero() || x.Started.Before(first) {
				first = x.Started
			}
		}
	}
	if completed == 0 {
		return false, nil
	}
	listed := 0
	for cp, err := range s.zvm.ListCheckpoints(ctx, vpg, zvm.Window{From: first.Add(-stampSlack)}) {
		if err != nil {
			return false, err
		}
		if cp.Tag != "" {
			listed++
		}
	}
	return listed < completed, nil
}

// awaitEnd waits until a task has ended, however it does, and returns how. A task that the server no longer knows has ended
// as well, nobody knows how: it counts as Completed, which may have left something behind.
func (s *Session) awaitEnd(ctx context.Context, id zvm.TaskID) (task.State, error) {
	status, err := task.Wait(ctx, s.zvm, id, task.WithSchedule(s.schedule), task.WithNotFoundGrace(s.limits.Settle))
	var ended *task.Error
	var missing interface{ NotFound() bool }
	switch {
	case err == nil, errors.As(err, &ended):
		return status.State, nil
	case ctx.Err() == nil && errors.As(err, &missing) && missing.NotFound():
		return task.Completed, nil
	}
	return status.State, err
}

// unlessNeverSent returns the tag when a checkpoint of that name may come to stand.
func unlessNeverSent(tag string, id zvm.TaskID, err error) string {
	var failed *task.Error
	if errors.As(err, &failed) || id == "" && !errors.Is(err, zvm.ErrOutcomeUnknown) {
		return ""
	}
	return tag
}

// confirm reads the state of every tagged VPG once more, and its checkpoint in the journal, when all are tagged: a sync
// that began meanwhile, and may be over again, may have deleted it.
func (s *Session) confirm(ctx context.Context, p *plan, outcomes []outcome) {
	g := newGroup()
	g.SetLimit(s.parallel)
	for i, t := range p.targets {
		o := &outcomes[i]
		if o.failure != nil {
			continue
		}
		g.Go(func() error {
			err := s.requireProtecting(ctx, t.vpg, true)
			if err == nil && len(p.targets) > 1 {
				_, err = s.readPin(ctx, o.pin.TaggedCheckpoint)
			}
			if err != nil {
				o.failure = t.failed(o.pin.Tag, o.pin.TaskID, err)
			}
			return nil
		})
	}
	_ = g.Wait()
}

func (s *Session) requireProtecting(ctx context.Context, v VPGProtection, late bool) error {
	now, err := s.zvm.GetVPG(ctx, v.VPGID)
	if err != nil {
		return fmt.Errorf("reading the state of %s: %w", v.VPGName, err)
	}
	if reason := whyNotProtecting(now); reason != "" {
		return &StateError{VPGName: v.VPGName, Reason: reason, Late: late}
	}
	return nil
}

// insert sends one insert and follows it to the tag in the journal.
func (s *Session) insert(ctx context.Context, p *plan, t target) (tagged, zvm.TaskID, error) {
	since := p.clock.now().Add(-windowMargin)
	start := time.Now()
	s.progress(Event{Stage: StageInserting, VPGName: t.vpg.VPGName, Tag: t.tag})
	id, err := s.zvm.InsertCheckpoint(ctx, t.vpg.VPGID, t.tag)
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		pin, err := s.reconcileInsert(ctx, t, since, err)
		return pin, "", err
	}
	if err != nil {
		return tagged{}, "", err
	}
	schedule := s.schedule
	schedule.Expected = s.inserts.expected()
	looks := []task.Option{task.WithSchedule(schedule), task.Since(start)}
	status, err := task.Wait(ctx, s.zvm, id, append(looks, task.OnProgress(func(st task.Status) {
		s.progress(Event{Stage: StageTask, VPGName: t.vpg.VPGName, Tag: t.tag, Task: st})
	}))...)
	if err != nil {
		return tagged{}, id, err
	}
	if p.quiesce != nil {
		p.quiesce.completed(ctx)
	}
	cp, err := s.waitListed(ctx, t, since, looks)
	if err != nil {
		return tagged{}, id, &CheckpointNotListedError{VPGName: t.vpg.VPGName, Tag: t.tag, TaskID: id, Err: err}
	}
	s.inserts.learn(time.Since(start))
	s.progress(Event{Stage: StageListed, VPGName: t.vpg.VPGName, Tag: t.tag, Checkpoint: cp.ID, Task: status})
	return pinOf(t, cp, id, status.State.String()), id, nil
}

// waitListed looks for the tag in a narrow window of the journal until it is there.
func (s *Session) waitListed(ctx context.Context, t target, since time.Time, looks []task.Option) (zvm.Checkpoint, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Listing,
		fmt.Errorf("not listed within %v of its task's completion", s.limits.Listing))
	defer cancel()
	var cp zvm.Checkpoint
	err := task.Poll(ctx, func(ctx context.Context) (found bool, err error) {
		cp, found, err = s.findTag(ctx, t.vpg.VPGID, t.tag, since)
		return found, err
	}, looks...)
	return cp, err
}

// findTag returns the checkpoint that bears exactly this tag, the latest one if several do.
func (s *Session) findTag(ctx context.Context, vpg zvm.VPGID, tag string, since time.Time) (latest zvm.Checkpoint, found bool, err error) {
	for cp, err := range s.zvm.ListCheckpoints(ctx, vpg, zvm.Window{From: since}) {
		if err != nil {
			return zvm.Checkpoint{}, false, err
		}
		if cp.Tag == tag && !cp.Time.IsZero() && (!found || compareCheckpoints(cp, latest) > 0) {
			latest, found = cp, true
		}
	}
	return latest, found, nil
}

// compareCheckpoints orders by time, and by number where times are equal, which whole seconds often are.
func compareCheckpoints(a, b zvm.Checkpoint) int {
	if c := a.Time.Compare(b.Time.Time); c != 0 {
		return c
	}
	return a.ID.Compare(b.ID)
}

// reconcileInsert looks for the effect of an insert whose answer was lost: the tag in the journal proves it. Nothing
// found is the loss itself, with what was seen; the insert is never sent again.
func (s *Session) reconcileInsert(ctx context.Context, t target, since time.Time, lost error) (tagged, error) {
	looking, cancel := context.WithTimeoutCause(ctx, s.limits.Reconcile,
		fmt.Errorf("no trace of it within %v", s.limits.Reconcile))
	defer cancel()
	var cp zvm.Checkpoint
	err := task.Poll(looking, func(ctx context.Context) (found bool, err error) {
		cp, found, err = s.findTag(ctx, t.vpg.VPGID, t.tag, since)
		return found, err
	}, task.WithSchedule(s.schedule))
	if err == nil {
		s.progress(Event{Stage: StageListed, VPGName: t.vpg.VPGName, Tag: t.tag, Checkpoint: cp.ID})
		return pinOf(t, cp, "", ""), nil
	}
	return tagged{}, fmt.Errorf("%w; looked for its tag in the journal: %w%s", lost, err, s.seenInserts(ctx, t, since))
}

// seenInserts names the inserts that ran at a VPG, any of which may be the one whose answer was lost. A caller that has
// left is not kept for it.
func (s *Session) seenInserts(ctx context.Context, t target, since time.Time) string {
	tasks, err := s.insertsAt(ctx, t.vpg.VPGID, since)
	if err != nil || len(tasks) == 0 {
		return ""
	}
	text := "; inserts seen at this VPG since:"
	for _, seen := range tasks {
		text += fmt.Sprintf(" %s (%s)", seen.ID, seen.State)
	}
	return text
}

// insertsAt lists the inserts at a VPG, with those of which the server does not say where they ran.
func (s *Session) insertsAt(ctx context.Context, vpg zvm.VPGID, since time.Time) ([]zvm.Task, error) {
	tasks, err := s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeInsertTaggedCP, StartedAfter: since})
	return slices.DeleteFunc(tasks, func(t zvm.Task) bool { return len(t.VPGs) > 0 && !concernsVPG(t, vpg) }), err
}

// waitOutForeign returns nil when the insert that failed met another one at the same VPG, which has ended now, so that it
// is worth inserting again; otherwise it returns why not. An insert that failed itself kept no other from succeeding.
func (s *Session) waitOutForeign(ctx context.Context, p *plan, t target, ours zvm.TaskID, sent time.Time, attempt int) error {
	tasks, err := s.insertsAt(ctx, t.vpg.VPGID, p.clock.now().Add(-foreignReach))
	if err != nil {
		return fmt.Errorf("looking for another insert at this VPG: %w", err)
	}
	met := false
	for _, other := range tasks {
		failed := other.State == task.Failed || other.State == task.Stopped
		over := other.State.Terminal() && other.Completed.Before(sent.Add(-stampSlack))
		if sameID(other.ID, ours) || failed || over {
			continue
		}
		met = true
		if _, err := s.awaitEnd(ctx, other.ID); err != nil {
			return fmt.Errorf("waiting for another insert at this VPG: %w", err)
		}
	}
	if !met {
		return errors.New("no other insert ran at this VPG meanwhile, so it is not sent again")
	}
	return pause(ctx, rand.N(time.Duration(min(attempt, 8))*retryPause))
}

const (
	// foreignReach is how far back an insert may have started that still ran when ours failed.
	foreignReach = 10 * time.Minute
	// stampSlack is how much earlier than it ended a task may be stamped, in whole seconds.
	stampSlack = time.Second
	// retryPause is the most that the first of several callers who met waits before it tries again.
	retryPause = 250 * time.Millisecond
)

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
