package rewind

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// hands is how many things a tree does at once: enough to hide the time that a request and the syncing of a file take, and
// few enough for an appliance.
const hands = 8

// crew does things at once, as many in all as it has hands, however deep one leads to more.
type crew struct {
	spare *semaphore.Weighted // hands beside the caller's own
}

func newCrew() crew { return crew{spare: semaphore.NewWeighted(hands - 1)} }

// each does n things and waits for them. Whoever finds no hand free does the thing itself, so that things that lead to more
// never wait for each other. The first error ends the rest and is returned. A panic is
// one: nobody else could close what is open.
func (c crew) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu      sync.Mutex
		first   error
		working sync.WaitGroup
	)
	end := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
		cancel()
	}
	one := func(i int) {
		defer func() {
			if p := recover(); p != nil {
				end(fmt.Errorf("rewind: bringing a folder back panicked: %v", p))
			}
		}()
		if err := do(ctx, i); err != nil {
			end(err)
		}
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		if i+1 == n || !c.spare.TryAcquire(1) {
			one(i)
			continue
		}
		working.Go(func() {
			defer c.spare.Release(1)
			one(i)
		})
	}
	working.Wait()
	if first != nil {
		return first
	}
	return context.Cause(ctx)
}

// company lets downloads run beside each other until a server turns out to allow one at a time. It may refuse the second one
// in any words, so what is refused in company is asked for once more alone.
type company struct {
	room  *semaphore.Weighted // for as many as there are hands
	alone atomic.Bool
}

func newCompany() company { return company{room: semaphore.NewWeighted(hands)} }

func (c *company) do(ctx context.Context, download func() error) error {
	if !c.alone.Load() {
		if err := c.taking(ctx, 1, download); !refusedByServer(err) {
			return err
		}
	}
	err := c.taking(ctx, hands, download)
	if err == nil {
		c.alone.Store(true)
	}
	return err
}

func (c *company) taking(ctx context.Context, room int64, download func() error) error {
	if err := c.room.Acquire(ctx, room); err != nil {
		return context.Cause(ctx)
	}
	defer c.room.Release(room)
	return download()
}
