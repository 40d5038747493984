package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// mounted is an FLR session of ours that is open.
type mounted struct {
	zvm.FLRTarget

	session zvm.SessionID
	vpgName string
}

// withMount mounts the one VM of a checkpoint, calls use, and closes the session whatever happened, on a context of its
// own. The error of use comes first; a session that could not be closed is a [*LeftOpenError], alone or joined to it.
func (s *Session) withMount(
	ctx context.Context, from covered, use func(context.Context, mounted) error,
) (id zvm.SessionID, unmounted bool, err error) {
	target := zvm.FLRTarget{VPG: from.VPGID, VM: from.vms[0].ID, Checkpoint: from.CheckpointID}
	m, err := s.mount(ctx, target, from.VPGName)
	if m.session == "" {
		return "", false, err
	}
	closed := false
	closeNow := func() error {
		closed = true
		return s.unmount(ctx, m)
	}
	defer func() {
		if !closed { // use panicked
			_ = closeNow()
		}
	}()
	if err == nil {
		err = use(ctx, m)
	}
	if open := closeNow(); open != nil {
		return m.session, false, errors.Join(err, open)
	}
	return m.session, true, err
}

// mount returns a session that can be browsed. With an error it returns what has to be closed, if anything is open.
func (s *Session) mount(ctx context.Context, target zvm.FLRTarget, vpgName string) (mounted, error) {
	start := time.Now()
	m := mounted{FLRTarget: target, vpgName: vpgName}
	s.progress(Event{Stage: StageMounting, VPGName: vpgName, Checkpoint: target.Checkpoint})
	before, err := s.sessionsOf(ctx, target)
	if err != nil {
		return m, fmt.Errorf("listing FLR sessions: %w", err)
	}
	m.session, err = s.zvm.MountFLR(ctx, target)
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		m.session, err = s.reconcileMount(ctx, target, before, err)
	}
	if err != nil {
		return m, fmt.Errorf("mounting checkpoint %s of %s: %w", target.Checkpoint, vpgName, err)
	}
	if err := s.waitMounted(ctx, m, start); err != nil {
		return m, fmt.Errorf("mounting checkpoint %s of %s: %w", target.Checkpoint, vpgName, err)
	}
	s.mounts.learn(time.Since(start))
	s.progress(Event{Stage: StageMounted, VPGName: vpgName, Checkpoint: target.Checkpoint, Session: m.session})
	return m, nil
}

func (s *Session) waitMounted(ctx context.Context, m mounted, start time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Mount, fmt.Errorf("not mounted within %v", s.limits.Mount))
	defer cancel()
	schedule := s.schedule
	schedule.Expected = s.mounts.expected()
	return task.Poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.zvm.GetFLRSession(ctx, m.session)
		switch {
		case err != nil:
			return false, err
		case now.Failed():
			return false, fmt.Errorf("the server says %s", now.Status)
		}
		return now.Ready(), nil
	}, task.WithSchedule(schedule), task.Since(start))
}

// sessionsOf returns the open sessions of exactly this VM, VPG and checkpoint.
func (s *Session) sessionsOf(ctx context.Context, target zvm.FLRTarget) ([]zvm.SessionID, error) {
	all, err := s.zvm.ListFLRSessions(ctx, target.VM)
	if err != nil {
		return nil, err
	}
	var ids []zvm.SessionID
	for _, f := range all {
		if sameID(f.VPG, target.VPG) && sameID(f.VM, target.VM) && f.Checkpoint == target.Checkpoint {
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// reconcileMount looks for the session that a mount whose answer was lost may have opened. Only a session that was not
// there before, and is the only such one, is taken for ours: closing somebody else's would be worse than leaving ours.
func (s *Session) reconcileMount(ctx context.Context, target zvm.FLRTarget, before []zvm.SessionID, lost error) (zvm.SessionID, error) {
	// Looked for after the caller has left as well: what was opened has to be closed.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Reconcile,
		fmt.Errorf("no trace of it within %v", s.limits.Reconcile))
	defer cancel()
	var opened []zvm.SessionID
	err := task.Poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.sessionsOf(ctx, target)
		opened = slices.DeleteFunc(now, func(id zvm.SessionID) bool {
			return slices.ContainsFunc(before, func(b zvm.SessionID) bool { return sameID(b, id) })
		})
		return len(opened) > 0, err
	}, task.WithSchedule(s.schedule))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; looked for its session: %w", lost, err)
	case len(opened) > 1:
		return "", fmt.Errorf("%w; several sessions were opened meanwhile, any of which may be ours: %v", lost, opened)
	}
	return opened[0], nil
}

// unmount closes a session and waits until the server no longer lists it. Closing is tried again until the limit, but a
// close whose answer was lost is first looked for: it is sent again only when the session is seen to stay.
func (s *Session) unmount(ctx context.Context, m mounted) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Unmount,
		fmt.Errorf("not closed within %v", s.limits.Unmount))
	defer cancel()
	var refusal error
	err := task.Poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := s.zvm.UnmountFLR(ctx, m.session)
		switch {
		case err == nil:
			return true, s.waitGone(ctx, m.session, s.limits.Unmount)
		case errors.Is(err, zvm.ErrOutcomeUnknown):
			return s.waitGone(ctx, m.session, s.limits.Unmount/3) == nil, nil
		case errors.Is(err, zvm.ErrUnauthorized), errors.Is(err, zvm.ErrForbidden):
			return false, err
		}
		// A session in use is refused until it is not, and servers refuse to close what is gone in ways of their own.
		refusal = err
		return s.isGone(ctx, m.session)
	}, task.WithSchedule(s.schedule))
	if err != nil {
		err = errors.Join(err, refusal)
		return &LeftOpenError{
			What: "FLR session", ID: string(m.session), Command: "zerto-rewind sweep --apply", Err: err,
		}
	}
	s.progress(Event{Stage: StageUnmounted, VPGName: m.vpgName, Checkpoint: m.Checkpoint, Session: m.session})
	return nil
}

// waitGone waits until the server no longer lists a session.
func (s *Session) waitGone(ctx context.Context, id zvm.SessionID, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return task.Poll(ctx, func(ctx context.Context) (bool, error) { return s.isGone(ctx, id) }, task.WithSchedule(s.schedule))
}

// isGone asks the list of sessions, which decides: servers differ in what they answer for a single session that is gone.
func (s *Session) isGone(ctx context.Context, id zvm.SessionID) (bool, error) {
	all, err := s.zvm.ListFLRSessions(ctx, "")
	return err == nil && !slices.ContainsFunc(all, func(f zvm.FLRSession) bool { return sameID(f.ID, id) }), err
}
