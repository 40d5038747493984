package rewind

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// unmount closes a session and waits until the server no longer lists it. A close that was refused, whose task failed, or
// after which the session was seen to stay, is sent again until the limit. One after which nothing was seen is not.
func (s *Session) unmount(ctx context.Context, m mounted) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Unmount,
		fmt.Errorf("not closed within %v", s.limits.Unmount))
	defer cancel()
	if err := s.closeSession(ctx, m.session); err != nil {
		return &LeftOpenError{What: "FLR session", ID: string(m.session), Command: s.sweepCommand(), Err: err}
	}
	s.mounts.closed(m.session)
	s.tellClosed(m.opened())
	s.progress(m.event(StageUnmounted))
	return nil
}

func (s *Session) closeSession(ctx context.Context, id zvm.SessionID) error {
	start := time.Now()
	c := &closing{session: id}
	for {
		if err := s.sendClose(ctx, c); isRefusal(err) {
			return err
		}
		stays, err := s.watchClose(ctx, c)
		if err == nil && !stays {
			return nil
		}
		if err == nil {
			err = pause(ctx, s.schedule.Wait(time.Since(start)))
		}
		if err != nil {
			return c.explain(err)
		}
	}
}

// closing is what is known of a session that is being closed.
type closing struct {
	session zvm.SessionID
	sent    time.Time
	// patience is how long after that the session may be listed and nothing be wrong.
	patience time.Duration
	task     zvm.TaskID // empty when there is none to follow
	running  bool       // when the task was last seen
	listed   bool       // when the list was last seen
	reason   error      // why a close that was sent did not come about, as far as anybody said
}

// explain keeps what the server said of a close beside why the closing was given up.
func (c *closing) explain(err error) error {
	switch {
	case c.running:
		err = fmt.Errorf("%w; task %s, which closes it, goes on", err, c.task)
	case c.listed:
		err = fmt.Errorf("%w; the server still lists it", err)
	}
	if c.reason != nil {
		return fmt.Errorf("%w; %w", c.reason, err)
	}
	return err
}

// sendClose leaves half of the time for looking: a close whose answer never comes may have been carried out.
func (s *Session) sendClose(ctx context.Context, c *closing) error {
	sending, cancel := context.WithTimeout(ctx, s.limits.Unmount/2)
	defer cancel()
	id, err := s.zvm.UnmountFLR(sending, c.session)
	c.task, c.sent, c.patience = id, time.Now(), s.limits.Unmount/3
	if err != nil && !errors.Is(err, zvm.ErrOutcomeUnknown) {
		c.patience = 0 // servers refuse to close what is gone in ways of their own: the next look tells
	}
	var answered *zvm.Error
	if err != nil && (c.reason == nil || errors.As(err, &answered) && answered.Status != 0) {
		c.reason = err
	}
	return err
}

// watchClose looks at the server's list until a session is gone, or is seen to stay although its close should have come
// about. The list decides: servers differ in what they answer for a single session that is gone, and may show a task as
// completed before the session has left the list.
func (s *Session) watchClose(ctx context.Context, c *closing) (stays bool, err error) {
	err = s.untilKnown(ctx, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.limits.Unmount/6) // one answer that never comes is not the end
		defer cancel()
		gone, err := s.isGone(ctx, c.session)
		if err != nil || gone {
			return gone, err
		}
		c.listed = true
		failed := s.followClose(ctx, c)
		stays = failed || !c.running && time.Since(c.sent) >= c.patience
		return stays, nil
	})
	return stays, err
}

// followClose looks once at the task of a close and reports whether it failed. A task that cannot be read decides nothing.
func (s *Session) followClose(ctx context.Context, c *closing) (failed bool) {
	if c.task == "" {
		return false
	}
	status, err := s.zvm.TaskStatus(ctx, c.task)
	switch {
	case errors.Is(err, zvm.ErrNotFound):
		c.running = false
	case err == nil:
		c.running = !status.State.Terminal()
	}
	if err != nil || c.running {
		return false
	}
	if failed = status.State != task.Completed; failed {
		c.reason = &task.Error{ID: c.task, State: status.State, Reason: status.Reason}
	}
	c.task = ""
	return failed
}

func (s *Session) isGone(ctx context.Context, id zvm.SessionID) (bool, error) {
	all, err := s.zvm.ListFLRSessions(ctx, "")
	return err == nil && !slices.ContainsFunc(all, func(f zvm.FLRSession) bool { return sameID(f.ID, id) }), err
}

// untilKnown polls for what may be open at the server for as long as its context: one look that fails tells nothing, and
// the next may. Only a refusal of whoever asks ends it.
func (s *Session) untilKnown(ctx context.Context, look func(context.Context) (bool, error)) error {
	return task.Poll(ctx, func(ctx context.Context) (bool, error) {
		done, err := look(ctx)
		if err != nil && !isRefusal(err) {
			err = notKnown{err}
		}
		return done, err
	}, task.WithSchedule(s.schedule), task.WithMaxTransient(math.MaxInt))
}

// isRefusal reports whether the server knows who asks, or wants to, and will not do it for them.
func isRefusal(err error) bool {
	return errors.Is(err, zvm.ErrUnauthorized) || errors.Is(err, zvm.ErrForbidden)
}

// notKnown is an error of a look that is to be waited out.
type notKnown struct{ error }

func (notKnown) Temporary() bool { return true }
func (n notKnown) Unwrap() error { return n.error }
