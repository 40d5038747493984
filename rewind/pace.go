package rewind

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// turns lets one insert at a time at each VPG, in the order of arrival.
type turns struct {
	mu    sync.Mutex
	byVPG map[zvm.VPGID]*semaphore.Weighted
}

// take waits for the VPG's turn. A caller whose context ends leaves the queue.
func (t *turns) take(ctx context.Context, vpg zvm.VPGID) (done func(), err error) {
	t.mu.Lock()
	if t.byVPG == nil {
		t.byVPG = map[zvm.VPGID]*semaphore.Weighted{}
	}
	turn := t.byVPG[vpg]
	if turn == nil {
		turn = semaphore.NewWeighted(1)
		t.byVPG[vpg] = turn
	}
	t.mu.Unlock()
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { turn.Release(1) }, nil
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
