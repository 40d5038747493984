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
	// known are the latest tasks that are not that of a lost insert.
	known []zvm.TaskID
	// givenUp are inserts that were no longer waited for: they may still run.
	givenUp []zvm.TaskID
	// lost is an insert whose answer was lost: it may run, or even arrive, later.
	lost *lostInsert
}

type lostInsert struct {
	tag   string
	sent  time.Time // by our clock
	stamp time.Time // by that of the ZVM
}

// knownTasks is more inserts than begin at one VPG in a second, which is how fine tasks are stamped.
const knownTasks = 100

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

func (t *turn) know(ids ...zvm.TaskID) {
	t.known = append(t.known, ids...)
	t.known = t.known[max(0, len(t.known)-knownTasks):]
}

// leave notes what became of the holder's insert: its task, and whether it may still run.
func (t *turn) leave(id zvm.TaskID, sent lostInsert, err error) {
	if id != "" {
		t.know(id)
	}
	var waiting *task.WaitError
	switch {
	case errors.As(err, &waiting):
		t.givenUp = append(t.givenUp, id)
	case errors.Is(err, zvm.ErrOutcomeUnknown):
		t.lost = &sent
	}
}

// clear waits until nothing runs any more of what earlier holders of the turn have left.
func (s *Session) clear(ctx context.Context, t *turn, vpg zvm.VPGID) error {
	if t.lost != nil {
		arrived, err := s.awaitArrival(ctx, t, vpg)
		if err != nil {
			return err
		}
		t.know(arrived...)
		t.givenUp = append(t.givenUp, arrived...)
		t.lost = nil
	}
	for len(t.givenUp) > 0 {
		if _, err := s.awaitEnd(ctx, t.givenUp[0]); err != nil {
			return err
		}
		t.givenUp = t.givenUp[1:]
	}
	return nil
}

// awaitArrival waits until an insert whose answer was lost has left its tag, or until a task is there that may be its own
// and has not completed, which it returns; or else until [Limits.Reconcile] has passed since it was sent: a request may
// still be on its way when its sender has given up.
func (s *Session) awaitArrival(ctx context.Context, t *turn, vpg zvm.VPGID) (candidates []zvm.TaskID, err error) {
	deadline := t.lost.sent.Add(s.limits.Reconcile)
	err = task.Poll(ctx, func(ctx context.Context) (bool, error) {
		last := !time.Now().Before(deadline)
		tasks, err := s.insertsAt(ctx, vpg, t.lost.stamp.Add(-windowMargin))
		if err != nil {
			return false, err
		}
		for _, x := range tasks {
			isKnown := slices.ContainsFunc(t.known, func(id zvm.TaskID) bool { return sameID(id, x.ID) })
			if x.State != task.Completed && !isKnown && !x.Started.Before(t.lost.stamp.Add(-stampSlack)) {
				candidates = append(candidates, x.ID)
			}
		}
		if last || len(candidates) > 0 {
			return true, nil
		}
		_, found, err := s.findTag(ctx, vpg, t.lost.tag, t.lost.stamp.Add(-windowMargin))
		return found, err
	}, task.WithSchedule(s.schedule))
	return candidates, err
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
