package cli

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// kept is an app with a ledger and without a ZVM.
func kept(t *testing.T, state string) *app {
	t.Helper()
	a := &app{io: IO{Out: io.Discard, Err: io.Discard, Env: func(name string) (string, bool) {
		return state, name == setStateDir.variable
	}}, log: slog.New(slog.DiscardHandler)}
	a.settings.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	t.Cleanup(a.closeLedger)
	return a
}

func TestLaw6YesIsWorthNothingUnrecordedOrFrozen(t *testing.T) {
	t.Parallel()
	byProxy := proxyadapter.Answer{Call: gate.Call{Name: catalog.Name{Server: "mine", Tool: "poke"}}}
	byMCP := mcpadapter.HumanAnswer{Tool: "zerto_clone", VM: "web01", ChangeID: "c1", Answer: "confirm"}
	answer := func(a *app, want string) {
		t.Helper()
		for _, err := range []error{a.answeredProxy(t.Context(), byProxy), a.answeredMCP(t.Context(), byMCP)} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
	answer(kept(t, ""), setStateDir.variable)
	a := kept(t, filepath.Join(t.TempDir(), "state"))
	answer(a, "")
	l, err := a.ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Freeze(t.Context(), "kim", ""); err != nil {
		t.Fatal(err)
	}
	answer(a, "kim froze")
	if v, err := l.Verify(t.Context()); err != nil || v.Lines != 3 {
		t.Errorf("%+v, %v; want two answers and a freeze", v, err)
	}
}

func TestYesToAnUnknownToolHoldsForTheGuardMadeForIt(t *testing.T) {
	t.Parallel()
	a := kept(t, filepath.Join(t.TempDir(), "state"))
	call := gate.Call{Name: catalog.Name{Server: "mine", Tool: "poke"}}
	guard := &rewind.GuardRecord{ChangeID: "c1", VMs: []rewind.VM{{ID: "vm-1", Name: "web01"}}}
	if err := a.answeredProxy(t.Context(), proxyadapter.Answer{Call: call, Targets: []string{"web01"}, Guard: guard}); err != nil {
		t.Fatal(err)
	}
	l, err := a.ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"web01", "db01"} {
		consents, err := l.Consents(t.Context(), call, []string{target})
		if want := target == "web01"; err != nil || (len(consents) == 1) != want || want && (consents[0].ChangeID != "c1" || consents[0].VM != "vm-1") {
			t.Errorf("%s: %+v, %v", target, consents, err)
		}
	}
}
