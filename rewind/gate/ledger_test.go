package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// book is a ledger that knows nothing, and one of whose methods goes wrong.
type book struct {
	broken string
	fail   func() error
	events []gate.Event
	begun  gate.Started
}

func (b *book) do(method string) error {
	if b.broken == method {
		return b.fail()
	}
	return nil
}

func (b *book) Frozen(context.Context) (*gate.Freeze, error) { return nil, b.do("Frozen") }

func (b *book) Claims(context.Context, string) ([]gate.Claim, error) { return nil, b.do("Claims") }

func (b *book) Keep(context.Context, rewind.GuardRecord, ...string) error { return b.do("Keep") }

func (b *book) Void(context.Context, gate.Claim, string) error { return b.do("Void") }

func (b *book) Spend(context.Context, gate.Call, []string) (*gate.Approval, error) {
	return nil, b.do("Spend")
}

func (b *book) Consents(context.Context, gate.Call, []string) ([]gate.Consent, error) {
	return nil, b.do("Consents")
}

func (b *book) Digest(context.Context, map[string]any) (string, error) {
	return "d1", b.do("Digest")
}

func (b *book) Begin(context.Context, []string, time.Duration, time.Time) (gate.Started, error) {
	return b.begun, b.do("Begin")
}

func (b *book) End(context.Context, string) error { return b.do("End") }

func (b *book) Append(_ context.Context, e gate.Event) error {
	b.events = append(b.events, e)
	return b.do("Append")
}

// kept returns a policy with the ledger.
func (b *book) kept(onMutating catalog.OnMutating) gate.Policy {
	return gate.Policy{OnMutating: onMutating, Ledger: func(context.Context) (gate.Ledger, error) { return b, nil }}
}

// ways are how a method of a ledger goes wrong.
var ways = map[string]func() error{
	"fails":  func() error { return errors.New("disk full") },
	"panics": func() error { panic("MARKER-panic") },
}

func denied(t *testing.T, behaviour string, v gate.Verdict) {
	t.Helper()
	if v.Decision != gate.Deny || v.Guards != nil || strings.Contains(v.Reason, "MARKER-") || v.Reason == "" {
		t.Errorf("%s: %s (%s), want deny", behaviour, v.Decision, v.Reason)
	}
}

func TestLaw6LedgerThatGoesWrongAtAnyStepLetsNothingRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	guarded, unknown := stopVM("web01"), call("mine", "poke", map[string]any{"vm": "web01"})
	for method, needed := range map[string][]gate.Call{
		"Frozen": {guarded, unknown}, "Digest": {guarded, unknown}, "Append": {guarded, unknown},
		"Claims": {guarded}, "Keep": {guarded}, "Consents": {unknown}, "Spend": {unknown},
	} {
		for way, fail := range ways {
			b := &book{broken: method, fail: fail}
			g := newGate(t, func() (gate.Guards, error) { return s.session, nil }, b.kept(catalog.Require))
			for _, c := range needed {
				denied(t, method+" "+way+": "+c.String(), g.Decide(t.Context(), c))
			}
			for _, c := range []gate.Call{
				call("proxmox", "create_snapshot", map[string]any{"vmid": "100"}), call("proxmox", "get_vms", map[string]any{}),
			} {
				if v := g.Decide(t.Context(), c); v.Decision != gate.Allow {
					t.Errorf("%s %s: %s: %s (%s), want allow", method, way, c, v.Decision, v.Reason)
				}
			}
		}
	}
}

func TestLaw6GateThatCannotKeepWhatItTagsDenies(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Begin", "Keep", "End"} {
		for way, fail := range ways {
			s := newSite(t)
			b := &book{broken: method, fail: fail, begun: gate.Started{ChangeID: "c1"}}
			g := newGate(t, func() (gate.Guards, error) { return s.session, nil }, b.kept(catalog.GuardFirst))
			denied(t, method+" "+way, g.Decide(t.Context(), stopVM("web01")))
		}
	}
}

func TestTurnThatIsTakenIsWaitedForByTheAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := &book{begun: gate.Started{ChangeID: "c1", Taken: true}}
	g := newGate(t, func() (gate.Guards, error) { return s.session, nil }, b.kept(catalog.GuardFirst))
	v := g.Decide(t.Context(), stopVM("web01"))
	denied(t, "a turn that is taken", v)
	if v.RetrySeconds != 5 || !strings.Contains(v.Reason, "tagging of web01 is under way, as change c1. Try the same call again in 5 s") {
		t.Errorf("verdict %+v", v)
	}
	if n := s.Count("POST", "/v1/vpgs/*/checkpoints"); n > 0 {
		t.Errorf("%d inserts by whoever has not the turn", n)
	}
}

func TestSourceThatCannotProtectDenies(t *testing.T) {
	t.Parallel()
	b := &book{begun: gate.Started{ChangeID: "c1"}}
	g := newGate(t, func() (gate.Guards, error) { return guardsFunc(none), nil }, b.kept(catalog.GuardFirst))
	v := g.Decide(t.Context(), stopVM("web01"))
	denied(t, "guards that are found and cannot be made", v)
	if !strings.Contains(v.Reason, "cannot make any") {
		t.Errorf("reason %q", v.Reason)
	}
}

func TestNewTakesNoPolicyThatMakesNoSense(t *testing.T) {
	t.Parallel()
	source := func() (gate.Guards, error) { return guardsFunc(none), nil }
	for behaviour, p := range map[string]gate.Policy{
		"a proof age below 0": {ProofAge: -1}, "no known choice": {OnMutating: 9}, "guards made without a ledger": {OnMutating: catalog.GuardFirst},
	} {
		if g, err := gate.New(builtIn(t), source, p); err == nil || g != nil {
			t.Errorf("%s: %v, %v; want an error alone", behaviour, g, err)
		}
	}
}

func TestVerdictLeavesTimeToRecordIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		stuck := guardsFunc(func(ctx context.Context, _ string, _ time.Duration) ([]*rewind.Guard, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		g := newGate(t, func() (gate.Guards, error) { return stuck, nil }, b.kept(catalog.Require))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		v := g.Decide(ctx, stopVM("web01"))
		denied(t, "journals that do not answer", v)
		if ctx.Err() != nil || len(b.events) != 1 || !strings.Contains(v.Reason, "took too long") {
			t.Errorf("%v, events %+v, reason %q; want a record before the time is up", ctx.Err(), b.events, v.Reason)
		}
	})
}
