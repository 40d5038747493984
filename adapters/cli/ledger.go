package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// notePatience is how long a command that has done its work may take to record it.
const notePatience = 3 * time.Second

// ledgerCache opens the ledger when it is first asked for. What failed is tried again.
type ledgerCache struct {
	mu   sync.Mutex
	open *ledger.Ledger
}

// ledger returns the ledger in the state folder.
func (a *app) ledger(ctx context.Context) (*ledger.Ledger, error) {
	a.ledgers.mu.Lock()
	defer a.ledgers.mu.Unlock()
	if a.ledgers.open != nil {
		return a.ledgers.open, nil
	}
	r := a.reader()
	dir, err := r.stateDir()
	if err != nil {
		return nil, &settingsError{err}
	}
	options := ledger.Options{ZVM: r.text(setURL), Agent: r.text(setAgent), Human: r.text(setHuman)}
	if err := r.err(); err != nil {
		return nil, err
	}
	a.ledgers.open, err = ledger.Open(ctx, dir, options)
	return a.ledgers.open, err
}

// gateLedger is ledger for a gate, to which a nil *Ledger would be one.
func (a *app) gateLedger(ctx context.Context) (gate.Ledger, error) {
	l, err := a.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// closeLedger leaves a ledger alone that is still being opened, by a verdict that came too late: the process is about to end.
func (a *app) closeLedger() {
	if !a.ledgers.mu.TryLock() {
		return
	}
	defer a.ledgers.mu.Unlock()
	_ = a.ledgers.open.Close() // everything was committed when it was written
}

// note records what a command has done. It stays done when that fails, which is only said; also when ctx has ended. Where
// nothing can be kept between runs, nothing is expected to be.
func (a *app) note(ctx context.Context, what string, write func(ctx context.Context, l *ledger.Ledger) error) {
	if _, err := a.reader().stateDir(); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notePatience)
	defer cancel()
	l, err := a.ledger(ctx)
	if err == nil {
		err = write(ctx, l)
	}
	if err != nil {
		a.log.Warn(what+" could not be recorded in the ledger", "error", err)
	}
}

// noteGuard records a guard that was proven now.
func (a *app) noteGuard(ctx context.Context, guard rewind.GuardRecord) {
	a.note(ctx, "the guard", func(ctx context.Context, l *ledger.Ledger) error { return l.Keep(ctx, guard) })
}

// noteMade records a guard that was made on the way to something else.
func (a *app) noteMade(ctx context.Context, session *rewind.Session, changeID string, vm zvm.VMID) {
	if _, err := a.reader().stateDir(); err != nil {
		return
	}
	guard, err := session.FindGuard(ctx, changeID, string(vm))
	if err != nil {
		a.log.Warn("the guard could not be recorded in the ledger", "error", err)
		return
	}
	a.noteGuard(ctx, guard.Record())
}

// noteVoid records that a change's guard does not stand any more.
func (a *app) noteVoid(ctx context.Context, changeID, why string) {
	a.note(ctx, "that the guard is void", func(ctx context.Context, l *ledger.Ledger) error {
		claims, err := l.AllClaims(ctx, time.Time{})
		for _, c := range claims {
			if c.Record.ChangeID == changeID && c.Void == "" {
				err = errors.Join(err, l.Void(ctx, c, why))
			}
		}
		return err
	})
}

// noteOpened records what has to be closed, and that it was.
func (a *app) noteOpened(o rewind.Opened) {
	kinds := map[rewind.LeftoverKind]string{rewind.LeftFLR: ledger.Mount, rewind.LeftTest: ledger.Test, rewind.LeftClone: ledger.Clone}
	a.note(context.Background(), "what is open", func(ctx context.Context, l *ledger.Ledger) error {
		if o.Closed {
			return l.Closed(ctx, kinds[o.Kind], o.ID)
		}
		return l.Opened(ctx, ledger.Opened{
			Kind: kinds[o.Kind], ID: o.ID, ChangeID: o.ChangeID, Command: o.Command, Deadline: o.Deadline,
		})
	})
}
