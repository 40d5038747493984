package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Getter looks at a task once. [github.com/zerto-rewind/zerto-rewind/zvm.Client] is one.
//
// An error that has a method NotFound() bool or Temporary() bool returning true, anywhere in its chain, is treated as
// [Wait] says; every other error ends the waiting.
type Getter interface {
	TaskStatus(ctx context.Context, id ID) (Status, error)
}

// Option changes how [Wait] and [Poll] look.
type Option func(*poller)

// WithSchedule sets the waits between looks. The default is the zero [Schedule].
func WithSchedule(s Schedule) Option { return func(p *poller) { p.schedule = s } }

// Since says when the job began, when that was before the call. Waits are proportional to the time since then.
func Since(start time.Time) Option { return func(p *poller) { p.start = start } }

// WithMaxTransient sets how many looks in a row may fail temporarily before the waiting ends. The default is 5.
func WithMaxTransient(n int) Option { return func(p *poller) { p.maxTransient = n } }

// WithNotFoundGrace sets how long after the start "not found" means "not yet": a server may show a task some seconds
// after it has answered with its id (zvm-wire 5.3). The default is 30 s.
func WithNotFoundGrace(d time.Duration) Option { return func(p *poller) { p.notFoundGrace = d } }

// OnProgress has f called, on the waiting goroutine, with each status that differs from the one before it. The last
// call shows the terminal status. [Poll] ignores it: what it looks at has no status.
func OnProgress(f func(Status)) Option { return func(p *poller) { p.progress = f } }

type poller struct {
	schedule      Schedule
	start         time.Time
	maxTransient  int
	notFoundGrace time.Duration
	progress      func(Status)
}

func newPoller(opts []Option) poller {
	p := poller{start: time.Now(), maxTransient: 5, notFoundGrace: 30 * time.Second}
	for _, o := range opts {
		o(&p)
	}
	return p
}

// Wait looks at a task until it has ended or ctx has. It looks once before it first sleeps.
//
// It returns the last status seen, and a nil error only for a Completed task. A task that ended otherwise gives an
// [*Error]. Everything else gives a [*WaitError]: the context ended, too many looks failed temporarily in a row, the
// task was still not found after the grace period, or a look failed for good. States this package does not know are
// waited for. When ctx ends the waiting ends; the task goes on.
func Wait(ctx context.Context, g Getter, id ID, opts ...Option) (Status, error) {
	p := newPoller(opts)
	var last Status
	err := p.poll(ctx, func(ctx context.Context) (bool, error) {
		st, err := g.TaskStatus(ctx, id)
		if err != nil {
			return false, err
		}
		st.ID = id
		if p.progress != nil && st != last {
			p.progress(st)
		}
		last = st
		return st.State.Terminal(), nil
	})
	if err != nil {
		return last, &WaitError{ID: id, Last: last, Err: err}
	}
	if last.State != Completed {
		return last, &Error{ID: id, State: last.State, Reason: last.Reason}
	}
	return last, nil
}

// Poll calls look until it reports true, it fails for good, or ctx ends. It is the loop under [Wait], for things that
// are not tasks: temporary failures and "not found" right after the start are tolerated alike.
func Poll(ctx context.Context, look func(context.Context) (done bool, err error), opts ...Option) error {
	p := newPoller(opts)
	return p.poll(ctx, look)
}

func (p *poller) poll(ctx context.Context, look func(context.Context) (bool, error)) error {
	var failure error
	for failures := 0; ; {
		if ctx.Err() != nil {
			return withLast(context.Cause(ctx), failure)
		}
		done, err := look(ctx)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			failures, failure = 0, nil
		case ctx.Err() != nil:
			cause := context.Cause(ctx)
			if failure == nil || !errors.Is(err, cause) && !errors.Is(err, ctx.Err()) {
				failure = err
			}
			return withLast(cause, failure) // a look that was cut off tells nothing that the one before did not
		case isNotFound(err) && time.Since(p.start) < p.notFoundGrace:
			failure = err
		case isTemporary(err) && failures < p.maxTransient:
			failures++
			failure = err
		default:
			return err
		}
		if err := pause(ctx, p.schedule.Wait(time.Since(p.start))); err != nil {
			return withLast(err, failure)
		}
	}
}

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

// withLast keeps the failure that was being waited out beside the reason the waiting ended.
func withLast(cause, failure error) error {
	if failure == nil || errors.Is(failure, cause) {
		return cause
	}
	return fmt.Errorf("%w (last failure: %w)", cause, failure)
}

func isNotFound(err error) bool {
	var e interface{ NotFound() bool }
	return errors.As(err, &e) && e.NotFound()
}

func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}
