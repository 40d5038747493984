package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// mounted is an FLR session of ours that is open.
type mounted struct {
	zvm.FLRTarget

	at      *Session // on the ZVM that it is open at
	session zvm.SessionID
	vpgName string
	change  string
	meter   *meter // nil unless somebody is told of bytes
	// partition is where a guest path is looked for, empty for everywhere.
	partition string
}

// mounts are the FLR sessions that this Session has open. Mounting one target is asked for one at a time, so that two
// mounts whose answers are lost can be told from each other.
type mounts struct {
	mu    sync.Mutex
	turns map[zvm.FLRTarget]*semaphore.Weighted
	ours  map[zvm.SessionID]bool
}

func (m *mounts) take(ctx context.Context, target zvm.FLRTarget) (done func(), err error) {
	m.mu.Lock()
	if m.turns == nil {
		m.turns, m.ours = map[zvm.FLRTarget]*semaphore.Weighted{}, map[zvm.SessionID]bool{}
	}
	turn := m.turns[target]
	if turn == nil {
		turn = semaphore.NewWeighted(1)
		m.turns[target] = turn
	}
	m.mu.Unlock()
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { turn.Release(1) }, nil
}

func (m *mounts) opened(id zvm.SessionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ours[id] = true
}

func (m *mounts) closed(id zvm.SessionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ours, id)
}

func (m *mounts) isOurs(id zvm.SessionID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ours[id]
}

// withMount mounts the one VM of a checkpoint, calls use, and closes the session whatever happened, on a context of its
// own, all at the ZVM that was chosen for the checkpoint. The error of use comes first; a session that could not be closed
// is a [*LeftOpenError], alone or joined to it.
func (s *Session) withMount(
	ctx context.Context, from covered, use func(context.Context, mounted) error,
) (id zvm.SessionID, unmounted bool, err error) {
	s = from.at
	m := &mounted{
		at:        s,
		FLRTarget: zvm.FLRTarget{VPG: from.VPGID, VM: from.mountAs.ID, Checkpoint: from.CheckpointID},
		vpgName:   from.VPGName,
		change:    from.change,
		partition: from.partition,
	}
	returned := false
	closeNow := func() error {
		if m.session == "" {
			return nil
		}
		return s.unmount(ctx, *m)
	}
	defer func() {
		if !returned { // a panic, or the end of the goroutine, in what was called
			_ = closeNow()
		}
	}()
	if err = s.mount(ctx, m); err == nil {
		err = use(ctx, *m)
	}
	open := closeNow()
	returned = true
	return m.session, m.session != "" && open == nil, errors.Join(s.failedThere(explainRole(err)), open)
}

// mount opens a session that can be browsed. What has to be closed stands in m, with and without an error.
func (s *Session) mount(ctx context.Context, m *mounted) error {
	start := time.Now()
	s.progress(m.event(StageMounting))
	if err := s.openSession(ctx, m); err != nil {
		return fmt.Errorf("mounting checkpoint %s of %s: %w", m.Checkpoint, shown(m.vpgName), err)
	}
	if err := s.waitMounted(ctx, *m, start); err != nil {
		return fmt.Errorf("mounting checkpoint %s of %s: %w", m.Checkpoint, shown(m.vpgName), err)
	}
	s.mountPace.learn(time.Since(start))
	s.progress(m.event(StageMounted))
	return nil
}

func (s *Session) openSession(ctx context.Context, m *mounted) error {
	done, err := s.mounts.take(ctx, m.FLRTarget)
	if err != nil {
		return err
	}
	defer done()
	before, err := s.zvm.ListFLRSessions(ctx, "")
	if err != nil {
		return fmt.Errorf("listing FLR sessions: %w", err)
	}
	id, err := s.zvm.MountFLR(ctx, m.FLRTarget)
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		id, err = s.reconcileMount(ctx, *m, before, err)
	}
	switch {
	case err != nil:
		return err
	case isAmong(before, id):
		return fmt.Errorf("the server answered with FLR session %s, which was open before and is not ours to close", shown(string(id)))
	}
	m.session = id
	s.mounts.opened(id)
	s.tellOpened(m.opened().until(ctx))
	return nil
}

func isAmong(sessions []zvm.FLRSession, id zvm.SessionID) bool {
	return slices.ContainsFunc(sessions, func(f zvm.FLRSession) bool { return sameID(f.ID, id) })
}

func (m mounted) event(stage Stage) Event {
	return Event{Stage: stage, VPGName: m.vpgName, Checkpoint: m.Checkpoint, Session: m.session}
}

func (s *Session) waitMounted(ctx context.Context, m mounted, start time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Mount, fmt.Errorf("not mounted within %v", s.limits.Mount))
	defer cancel()
	schedule := s.schedule
	schedule.Expected = s.mountPace.expected()
	return task.Poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.zvm.GetFLRSession(ctx, m.session)
		switch {
		case err != nil:
			return false, err
		case now.Failed():
			return false, fmt.Errorf("the server says %s", shown(now.Status))
		case now.Ready() && !isOf(now, m.FLRTarget):
			return false, fmt.Errorf("the server mounted checkpoint %s of VM %s", now.Checkpoint, now.VM)
		}
		return now.Ready(), nil
	}, task.WithSchedule(schedule), task.Since(start))
}

// isOf reports whether a session is of a target, as far as the server says what it is of.
func isOf(f zvm.FLRSession, target zvm.FLRTarget) bool {
	return (f.VPG == "" || sameID(f.VPG, target.VPG)) && (f.VM == "" || sameID(f.VM, target.VM)) &&
		(f.Checkpoint == "" || f.Checkpoint == target.Checkpoint)
}

// sessionsOf returns the open sessions of exactly this VM, VPG and checkpoint.
func (s *Session) sessionsOf(ctx context.Context, target zvm.FLRTarget) ([]zvm.SessionID, error) {
	all, err := s.zvm.ListFLRSessions(ctx, target.VM)
	if err != nil {
		return nil, err
	}
	var ids []zvm.SessionID
	for _, f := range all {
		if f.VPG != "" && f.Checkpoint != "" && isOf(f, target) {
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// reconcileMount looks for the session that a mount whose answer was lost may have opened. Only a session that was not
// there before, and is the only such one, is taken for ours: closing somebody else's would be worse than leaving ours.
// What cannot be told is a [*LeftOpenError] beside the loss.
func (s *Session) reconcileMount(ctx context.Context, m mounted, before []zvm.FLRSession, lost error) (zvm.SessionID, error) {
	// Looked for after the caller has left as well: what was opened has to be closed.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Reconcile,
		fmt.Errorf("no trace of it within %v", s.limits.Reconcile))
	defer cancel()
	var opened []zvm.SessionID
	err := s.untilKnown(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.sessionsOf(ctx, m.FLRTarget)
		opened = slices.DeleteFunc(now, func(id zvm.SessionID) bool {
			return s.mounts.isOurs(id) || isAmong(before, id)
		})
		return len(opened) > 0, err
	})
	if err == nil && len(opened) == 1 {
		return opened[0], nil
	}
	if err == nil {
		err = fmt.Errorf("several sessions were opened meanwhile, any of which may be ours: %v", opened)
	}
	return "", &LeftOpenError{
		What: "an FLR session of checkpoint", ID: string(m.Checkpoint), MayBe: true, Command: s.sweepCommand(),
		Err: fmt.Errorf("%w; looked for its session: %w", lost, err),
	}
}
