package rewind

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// reader is a coalescer whose readings end when they are told to.
type reader struct {
	coalescer[int]
	started atomic.Int32
	release chan struct{}
	ended   chan error // of a reading's context, when it ended before the release
}

func newReader() *reader {
	r := &reader{release: make(chan struct{}), ended: make(chan error, 10)}
	r.fetch = func(ctx context.Context) (int, error) {
		n := r.started.Add(1)
		select {
		case <-r.release:
			return int(n), nil
		case <-ctx.Done():
			r.ended <- ctx.Err()
			return 0, ctx.Err()
		}
	}
	return r
}

func (r *reader) ask(ctx context.Context) <-chan int {
	got := make(chan int, 1)
	go func() {
		n, err := r.get(ctx)
		if err != nil {
			n = -1
		}
		got <- n
	}()
	synctest.Wait()
	return got
}

func TestAReadingIsNeverOlderThanItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReader()
		first := r.ask(t.Context())
		late, later := r.ask(t.Context()), r.ask(t.Context())
		if n := r.started.Load(); n != 1 {
			t.Errorf("%d readings run at once", n)
		}
		r.release <- struct{}{}
		synctest.Wait()
		r.release <- struct{}{}
		if a, b, c := <-first, <-late, <-later; a != 1 || b != 2 || c != 2 {
			t.Errorf("got readings %d, %d and %d, want the first alone to have the first", a, b, c)
		}
	})
}

func TestAReadingEndsWithItsLastCallerAndSpoilsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReader()
		ctx, leave := context.WithCancel(t.Context())
		one, two := r.ask(ctx), r.ask(ctx)
		stays := r.ask(t.Context())
		leave()
		synctest.Wait()
		if a, b := <-one, <-two; a != -1 || b != -1 {
			t.Errorf("callers that left got %d and %d", a, b)
		}
		if err := <-r.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the reading nobody waits for ended with %v", err)
		}
		r.release <- struct{}{}
		if n := <-stays; n != 2 {
			t.Errorf("the caller that stayed got %d, want the second reading", n)
		}
	})
}

func TestAPanicInAReadingIsAnError(t *testing.T) {
	t.Parallel()
	c := coalescer[int]{fetch: func(context.Context) (int, error) { panic("scripted") }}
	if _, err := c.get(t.Context()); err == nil {
		t.Error("no error")
	}
}
