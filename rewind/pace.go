package rewind

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// turns lets one insert at a time at each VPG, in the order of arrival.
type turns struct {
	mu    sync.Mutex
	byVPG map[zvm.VPGID]*turn
}

// turn is the right to insert at one VPG. Whoever holds it may read and write what a holder before left behind.
type turn struct {
	sem *semaphore.Weighted
	// givenUp are inserts that were no longer waited for: they may still run.
	givenUp []zvm.TaskID
	// unsure is true when an insert may run whose task nobody knows.
	unsure bool
}

// take waits for the VPG's turn. A caller whose context ends leaves the queue.
func (t *turns) take(ctx context.Context, vpg zvm.VPGID) (*turn, error) {
	t.mu.Lock()
	if t.byVPG == nil {
		t.byVPG = map[zvm.VPGID]*turn{}
	}
	mine := t.byVPG[vpg]
	if mine == nil {
		mine = &turn{sem: semaphore.NewWeighted(1)}
		t.byVPG[vpg] = mine
	}
	t.mu.Unlock()
	if err := mine.sem.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return mine, nil
}

func (t *turn) done() { t.sem.Release(1) }

// leave notes that the holder's insert is not waited for to its end.
func (t *turn) leave(id zvm.TaskID, err error) {
	var waiting *task.WaitError
	switch {
	case errors.As(err, &waiting):
		t.givenUp = append(t.givenUp, id)
	case errors.Is(err, zvm.ErrOutcomeUnknown):
		t.unsure = true
	}
}

// clear waits until nothing runs any more of what earlier holders of the turn have left.
func (s *Session) clear(ctx context.Context, t *turn, vpg zvm.VPGID, since time.Time) error {
	if t.unsure {
		running, err := s.insertsAt(ctx, vpg, since)
		if err != nil {
			return err
		}
		for _, x := range running {
			if !x.State.Terminal() {
				t.givenUp = append(t.givenUp, x.ID)
			}
		}
		t.unsure = false
	}
	for len(t.givenUp) > 0 {
		if _, err := s.awaitEnd(ctx, t.givenUp[0]); err != nil {
			return err
		}
		t.givenUp = t.givenUp[1:]
	}
	return nil
}

// pace remembers how long the last few jobs of one kind took at this ZVM.
type pace struct {
	mu   sync.Mutex
	last []time.Duration
}

const paceMemory = 5

func (p *pace) learn(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, took)
	if len(p.last) > paceMemory {
		p.last = p.last[1:]
	}
}

// expected returns the median, which one odd job does not move.
func (p *pace) expected() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(p.last))
	return sorted[len(sorted)/2]
}
