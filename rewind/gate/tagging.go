package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

const (
	// patience is how long a verdict waits for tags where its context sets no limit.
	patience = time.Minute
	// retryAfter is when tagging that is under way is worth another look: an insert takes a ZVM seconds.
	retryAfter = 5 * time.Second
	// turnMargin is how much longer than its owner's patience a turn is held, for an owner that is slow to give up.
	turnMargin = 2 * time.Second
	// changeReach is how long one change is gone on with.
	changeReach = 10 * time.Minute
)

// tag guards machines on behalf of a call, under one change however many calls and processes it takes: one that was
// begun is gone on with, which inserts no second tag where the first stands or is still being inserted.
func (g *Gate) tag(ctx context.Context, ledger Ledger, call Call, vms []string) Verdict {
	broken := func(err error) Verdict {
		return Verdict{Reason: fmt.Sprintf("%s did not run: its machines could not be guarded (%v).", call, err)}
	}
	guards, err := g.guards()
	if err != nil {
		return broken(err)
	}
	protector, able := guards.(Protector)
	if !able {
		return broken(errors.New("what finds the guards cannot make any"))
	}
	wanted := make([]string, len(vms))
	for i, vm := range vms {
		wanted[i] = g.vmOf(vm)
	}
	tagging, cancel := withRoom(ctx)
	defer cancel()
	until, set := tagging.Deadline()
	if !set {
		until = time.Now().Add(patience)
		tagging, cancel = context.WithDeadline(tagging, until)
		defer cancel()
	}
	started, err := ledger.Begin(ctx, wanted, min(changeReach, g.policy.MaxAge/2), until.Add(turnMargin))
	switch {
	case err != nil:
		return broken(fmt.Errorf("the ledger: %w", err))
	case started.Taken:
		return call.underWay(vms, started)
	}
	guard, err := protector.ProtectAll(tagging, wanted, rewind.Change{ID: started.ChangeID, Action: call.Name.String()})
	if err == nil {
		if lacking := g.lacking(guard); lacking != "" {
			err = errors.New(lacking)
		}
	}
	if err == nil {
		err = ledger.Keep(ctx, guard.Record())
	}
	err = errors.Join(err, ledger.End(context.WithoutCancel(ctx), started.ChangeID))
	switch {
	case err == nil:
		return Verdict{Decision: Allow, Guards: slices.Repeat([]rewind.GuardRecord{guard.Record()}, len(vms))}
	case pending(tagging, err):
		return call.underWay(vms, started)
	}
	return broken(err)
}

func (c Call) underWay(vms []string, started Started) Verdict {
	return Verdict{
		RetrySeconds: int(retryAfter.Seconds()),
		Reason: fmt.Sprintf("%s did not run: tagging of %s is under way, as change %s. Try the same call again in %d s.",
			c, strings.Join(vms, ", "), started.ChangeID, int(retryAfter.Seconds())),
	}
}

// pending reports whether what was begun may still come to its end.
func pending(ctx context.Context, err error) bool {
	var waiting *task.WaitError
	var unlisted *rewind.CheckpointNotListedError
	return ctx.Err() != nil || errors.As(err, &waiting) || errors.As(err, &unlisted) || errors.Is(err, zvm.ErrOutcomeUnknown)
}
