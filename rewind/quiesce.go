package rewind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Quiesce has the application held still around the inserts: freeze is called before the first one is sent, and thaw
// when the task of the last one is Completed, or after [QuiesceLimit], whichever comes first. Thaw is called exactly once
// if freeze was called, on every path, panics and cancellation included, on a context of its own. When freeze fails
// nothing is inserted.
//
// The guard says what happened. It is application-consistent within each VPG only if every task completed before thaw
// was called, and only as far as freeze does what it promises.
func Quiesce(freeze, thaw func(context.Context) error) ProtectOption {
	return func(o *protectOptions) { o.quiesce = &quiesce{freeze: freeze, thaw: thaw} }
}

// QuiesceLimit is how long an application is held still at most.
const QuiesceLimit = 30 * time.Second

// Quiesced is what a [Quiesce] did. Times are the server's clock.
type Quiesced struct {
	FrozenAt time.Time `json:"frozenAt"`
	ThawedAt time.Time `json:"thawedAt"`
	// Held is true when the application was still frozen when the last insert's task was seen Completed: only then is the
	// guard application-consistent.
	Held bool `json:"held"`
	// Error is what thaw said, empty when it went well.
	Error string `json:"error"`
}

type quiesce struct {
	freeze, thaw func(context.Context) error

	mu       sync.Mutex
	clock    serverClock
	pending  int // inserts not yet completed
	thawed   bool
	thawErr  error
	record   Quiesced
	deadline *time.Timer
}

// begin freezes the application for a number of inserts.
func (q *quiesce) begin(ctx context.Context, clock serverClock, inserts int) error {
	if q.freeze == nil || q.thaw == nil {
		return errors.New("rewind: Quiesce needs both freeze and thaw")
	}
	q.clock, q.pending = clock, inserts
	err := guardedCall(ctx, "freeze", q.freeze)
	q.record.FrozenAt = clock.now()
	if err != nil {
		q.end(ctx)
		return fmt.Errorf("nothing was inserted: %w", err)
	}
	q.deadline = time.AfterFunc(QuiesceLimit, func() { q.end(ctx) })
	return nil
}

// completed notes that one insert's task was seen Completed, and thaws after the last.
func (q *quiesce) completed(ctx context.Context) {
	q.mu.Lock()
	q.pending--
	last := q.pending == 0
	if last && !q.thawed {
		q.record.Held = true
	}
	q.mu.Unlock()
	if last {
		q.end(ctx)
	}
}

// end thaws the application, once, whatever has become of the caller.
func (q *quiesce) end(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.thawed {
		return
	}
	q.thawed = true
	if q.deadline != nil {
		q.deadline.Stop()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), QuiesceLimit)
	defer cancel()
	q.thawErr = guardedCall(ctx, "thaw", q.thaw)
	q.record.ThawedAt = q.clock.now()
	if q.thawErr != nil {
		q.record.Error = q.thawErr.Error()
	}
}

func (q *quiesce) result() Quiesced {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.record
}

// guardedCall makes a panic of the caller's function an error.
func guardedCall(ctx context.Context, name string, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v", name, p)
		}
	}()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
