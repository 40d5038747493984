package rewind

import (
	"context"
	"fmt"
	"sync"
)

// coalescer lets callers that wait at the same moment share one reading, and never hands out a reading that began
// before its caller asked: a caller that arrives while one runs shares the next one.
//
// A reading runs on a context of its own, which ends when the last caller that waits for it has left.
type coalescer[T any] struct {
	fetch func(context.Context) (T, error)

	mu      sync.Mutex
	running bool
	next    *reading[T] // what callers arriving now will share; nil when none waits
}

type reading[T any] struct {
	ctx     context.Context //nolint:containedctx // of the first caller, without its end: the reading begins later
	done    chan struct{}
	value   T
	err     error
	waiting int
	cancel  context.CancelFunc
}

func (c *coalescer[T]) get(ctx context.Context) (T, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &reading[T]{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	}
	r := c.next
	r.waiting++
	if !c.running {
		c.start() //nolint:contextcheck // the reading carries the context it runs on
	}
	c.mu.Unlock()

	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		c.leave(r)
		var none T
		return none, context.Cause(ctx)
	}
}

func (c *coalescer[T]) leave(r *reading[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.waiting--
	switch {
	case r.waiting > 0:
	case r == c.next:
		c.next = nil
	case r.cancel != nil:
		r.cancel()
	}
}

// start runs the next reading. The caller holds the lock.
func (c *coalescer[T]) start() {
	r := c.next
	c.next, c.running = nil, true
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(r.ctx)
	go func() {
		defer r.cancel()
		r.value, r.err = c.guarded(ctx)
		close(r.done)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = false
		if c.next != nil {
			c.start() //nolint:contextcheck // the reading carries the context it runs on
		}
	}()
}

func (c *coalescer[T]) guarded(ctx context.Context) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rewind: reading panicked: %v", p)
		}
	}()
	return c.fetch(ctx)
}
