package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// gateThat returns the gate over a catalogue that is changed first.
func (a *app) gateThat(change func(*catalog.Catalog) (*catalog.Catalog, error)) (*gate.Gate, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	if rules.catalog, err = change(rules.catalog); err != nil {
		return nil, err
	}
	return a.gateOf(rules, rules.policy.OnMutating, a.gateLedger)
}

// gate returns the gate, which opens a session only for a verdict that needs guards, and the ledger only for one on more
// than a read.
func (a *app) gate() (*gate.Gate, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	return a.gateOf(rules, rules.policy.OnMutating, a.gateLedger)
}

// gateLookingOn returns a gate whose verdicts are not meant: it tags, records and uses up nothing.
func (a *app) gateLookingOn() (*gate.Gate, error) {
	rules, err := a.rules()
	if err != nil {
		return nil, err
	}
	return a.gateOf(rules, catalog.Require, func(ctx context.Context) (gate.Ledger, error) {
		l, err := a.ledger(ctx)
		if err != nil {
			return nil, err
		}
		return l.LookingOn(), nil
	})
}

func (a *app) gateOf(
	rules *rulebook, onMutating catalog.OnMutating, ledger func(context.Context) (gate.Ledger, error),
) (*gate.Gate, error) {
	return gate.New(rules.catalog, func() (gate.Guards, error) {
		session, err := a.lastingSession()
		if err != nil {
			return nil, err
		}
		return explained{session, session, a}, nil
	}, gate.Policy{
		MaxAge:     rules.policy.MaxAge,
		OnMutating: onMutating,
		Aliases:    rules.vmAliases,
		Commands:   shell.Reader{LocalVM: rules.policy.LocalVM},
		LocalVM:    rules.policy.LocalVM,
		Ledger:     ledger,
	})
}

// explained are guards whose look-up, when it fails, says where and why.
type explained struct {
	gate.Protector

	journals gate.Guards
	app      *app
}

// Guards adds the ZVM's address to an error, and why it gave no answer.
func (e explained) Guards(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error) {
	found, err := e.journals.Guards(ctx, vm, since)
	if err == nil {
		return found, nil
	}
	if why := e.app.unreachable(err); why != "" {
		return nil, fmt.Errorf("%s: %w", why, err)
	}
	return nil, fmt.Errorf("the ZVM at %s: %w", e.app.zvm.BaseURL(), err)
}

// lastingSession returns the session of a command that judges call after call, so that it logs in once.
func (a *app) lastingSession() (*rewind.Session, error) {
	a.lasting.mu.Lock()
	defer a.lasting.mu.Unlock()
	if a.lasting.session != nil {
		return a.lasting.session, nil
	}
	session, _, err := a.session()
	if err == nil {
		a.lasting.session = session
	}
	return session, err
}
