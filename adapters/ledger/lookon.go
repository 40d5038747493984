package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// LookingOn returns the ledger for a gate whose verdicts are not meant, such as one that explains: nothing is recorded, and
// an approval that fits is found and not used up.
func (l *Ledger) LookingOn() gate.Ledger { return lookingOn{l} }

type lookingOn struct{ *Ledger }

func (lookingOn) Keep(context.Context, rewind.GuardRecord, ...string) error { return nil }

func (lookingOn) Void(context.Context, gate.Claim, string) error { return nil }

func (lookingOn) Append(context.Context, gate.Event) error { return nil }

func (lookingOn) End(context.Context, string) error { return nil }

// Begin fails: nothing is tagged for a verdict that is not meant.
func (lookingOn) Begin(context.Context, []string, time.Duration, time.Time) (gate.Started, error) {
	return gate.Started{}, errors.New("ledger: looking on, nothing is begun")
}

// Spend finds what would be used up.
func (l lookingOn) Spend(ctx context.Context, call gate.Call, targets []string) (*gate.Approval, error) {
	digest, err := l.Digest(ctx, call.Args)
	if err != nil {
		return nil, err
	}
	open, err := l.approvals(ctx, call, targets, digest)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	return &open[0], nil
}
