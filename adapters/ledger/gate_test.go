package ledger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// site is a simulated ZVM with web01 and db01, a ledger, and gates that use both.
type site struct {
	*zvmtest.Server

	t       *testing.T
	catalog *catalog.Catalog
	session *rewind.Session
	ledger  *ledger.Ledger
	dir     string
	clock   *clock
	vpg     *zvmtest.VPG
}

func newSite(t *testing.T, opts ...zvmtest.Option) *site {
	t.Helper()
	sim := zvmtest.Start(t, append([]zvmtest.Option{zvmtest.WithProfile(zvmtest.Quick), withinReach(t)}, opts...)...)
	s := &site{Server: sim, t: t, dir: filepath.Join(t.TempDir(), "state"), clock: &clock{time.Now()}}
	s.session = s.newSession()
	s.vpg = sim.AddVPG("web", zvmtest.VPGConfig{})
	sim.AddVM("web01", s.vpg)
	sim.AddVM("db01", s.vpg)
	s.ledger = open(t, s.dir, ledger.Options{ZVM: sim.URL(), Now: s.clock.now})
	base, err := catalog.Default()
	must(t, err)
	s.catalog, err = base.With(
		catalog.Entry{Server: "mine", Tool: "poke", Target: []string{"vm"}},
		catalog.Entry{Server: "mine", Tool: "stop", Class: catalog.Mutating, Target: []string{"vm"}},
		catalog.Entry{Server: "mine", Tool: "wipe", Class: catalog.Mutating, Kind: catalog.Undo, Target: []string{"vm"}},
		catalog.Entry{Server: "mine", Tool: "mark", Class: catalog.Mutating, Kind: catalog.Checkpoint, Target: []string{"vm"}},
		catalog.Entry{Server: "mine", Tool: "look", Class: catalog.ReadOnly},
	)
	must(t, err)
	return s
}

func (s *site) newSession() *rewind.Session {
	s.t.Helper()
	client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), zvm.WithRootCAs(s.CertPool()))
	must(s.t, err)
	session, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"))
	must(s.t, err)
	return session
}

// gate returns one as another process would make it, with the policy and the site's ledger.
func (s *site) gate(p gate.Policy) *gate.Gate {
	s.t.Helper()
	session := s.newSession()
	if p.Ledger == nil {
		p.Ledger = func(context.Context) (gate.Ledger, error) { return s.ledger, nil }
	}
	g, err := gate.New(s.catalog, func() (gate.Guards, error) { return session, nil }, p)
	must(s.t, err)
	return g
}

func (s *site) protect(vms ...string) rewind.GuardRecord {
	s.t.Helper()
	g, err := s.session.ProtectAll(s.t.Context(), vms, rewind.Change{Action: "power off"})
	must(s.t, err)
	return g.Record()
}

// expect has the gate judge a call of the server "mine".
func (s *site) expect(g *gate.Gate, behaviour, tool, vm string, want gate.Decision, reason string) gate.Verdict {
	s.t.Helper()
	v := g.Decide(s.t.Context(), mine(tool, vm))
	if v.Decision != want || !strings.Contains(v.Reason, reason) {
		s.t.Errorf("%s: %s (%s), want %s with %q", behaviour, v.Decision, v.Reason, want, reason)
	}
	return v
}

func mine(tool, vm string) gate.Call {
	return gate.Call{
		Name: catalog.Name{Server: "mine", Tool: tool}, Args: map[string]any{"vm": vm},
		Host: "claude", Session: "s1", CallID: tool + "-" + vm,
	}
}

func (s *site) claims(vm string) []gate.Claim {
	s.t.Helper()
	claims, err := s.ledger.Claims(s.t.Context(), vm)
	must(s.t, err)
	return claims
}

func TestGuardFoundInTheJournalsIsKeptAndReadAgainEachTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.gate(gate.Policy{})
	guard := s.protect("web01")
	s.expect(g, "made by another process", "stop", "WEB01", gate.Allow, "guarded")
	claims := s.claims("web01")
	if len(claims) != 1 || claims[0].Record.ChangeID != guard.ChangeID || len(s.claims(string(guard.VMs[0].ID))) != 1 {
		t.Fatalf("claims %+v, want the guard, by name and by id", claims)
	}
	before := len(s.Requests())
	s.expect(g, "again", "stop", "web01", gate.Allow, "guarded")
	if len(s.Requests()) == before {
		t.Error("the ledger's word was taken for a proof")
	}
	s.vpg.LoseCheckpoint(string(guard.Checkpoints[0].CheckpointID))
	s.expect(g, "the checkpoint is gone", "stop", "web01", gate.Deny, "no guard")
	if c := s.claims("web01"); c[0].Void == "" {
		t.Errorf("claim %+v, want it void", c[0])
	}
}

func TestLaw1ClaimThatWasWrittenIntoTheLedgerLetsNothingRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	forged := s.protect("web01")
	vms, err := s.session.FindProtection(t.Context(), "db01")
	must(t, err)
	forged.VMs = []rewind.VM{vms.VM}
	must(t, s.ledger.Keep(t.Context(), forged, "db01"))
	s.expect(s.gate(gate.Policy{}), "a forged claim", "stop", "db01", gate.Deny, "no guard")
}

func TestVoidAndClosedGuardsLetNothingRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for vm, end := range map[string]func(gate.Claim) error{
		"web01": func(c gate.Claim) error { return s.ledger.Void(t.Context(), c, "it was seen to be gone") },
		"db01":  func(c gate.Claim) error { _, err := s.ledger.CloseChange(t.Context(), c.Record.ChangeID); return err },
	} {
		for _, policy := range []gate.Policy{{}, {ProofAge: time.Hour}} {
			s.protect(vm)
			g := s.gate(policy)
			s.expect(g, "a guard", "stop", vm, gate.Allow, "guarded")
			for _, c := range s.claims(vm) {
				must(t, end(c))
			}
			s.expect(g, "its end", "stop", vm, gate.Deny, "")
		}
	}
}

// TestGuardThatIsOverIsSoByEveryNameOfItsVM covers the agent that was denied under one name and tries another.
func TestGuardThatIsOverIsSoByEveryNameOfItsVM(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.AddVM("app01", s.vpg).SetIPs("10.1.2.3")
	record := s.protect("app01")
	g := s.gate(gate.Policy{})
	s.expect(g, "its address", "stop", "10.1.2.3", gate.Allow, "guarded")
	closed, err := s.ledger.CloseChange(t.Context(), record.ChangeID)
	if must(t, err); !closed {
		t.Error("the change was not known")
	}
	s.expect(g, "its name", "stop", "app01", gate.Deny, "over")
	s.expect(g, "its address", "stop", "10.1.2.3", gate.Deny, "over")
	s.expect(g, "its id", "stop", string(record.VMs[0].ID), gate.Deny, "over")
}

func TestObjectionIsMetByAnApprovalOfExactlyThatCall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	g := s.gate(gate.Policy{})
	objected := mine("stop", "web01")
	objected.Objection = func() string { return "It may change the settings." }
	expect := func(behaviour string, want gate.Decision) {
		t.Helper()
		if v := g.Decide(t.Context(), objected); v.Decision != want || want == gate.Ask && (len(v.Guards) > 0 || v.Approval != "") {
			t.Errorf("%s: %+v, want %s", behaviour, v, want)
		}
	}
	expect("a guard", gate.Ask)
	approve(t, s.ledger, "stop", "web01")
	expect("an approval of the machine", gate.Ask)
	digest, err := s.ledger.Digest(t.Context(), objected.Args)
	must(t, err)
	_, err = s.ledger.Approve(t.Context(), gate.Approval{Server: "mine", Tool: "stop", Digest: digest, By: "kim"}, time.Minute)
	must(t, err)
	expect("an approval of the call", gate.Allow)
	expect("once", gate.Ask)
	must(t, s.ledger.Freeze(t.Context(), "kim", ""))
	expect("frozen", gate.Deny)
}

// TestLeaveThatNamesNoArgumentsMeetsNoObjection covers calls that are not allowed by themselves: what else would let them run
// was given by somebody who did not know what they are about to do.
func TestLeaveThatNamesNoArgumentsMeetsNoObjection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		behaviour, tool, vm string
		leave               func(*site)
		want                gate.Decision
	}{
		{"an approval of a machine without a guard", "stop", "db01", func(s *site) { approve(t, s.ledger, "stop", "db01") }, gate.Deny},
		{"an approval of an unknown tool", "poke", "db01", func(s *site) { approve(t, s.ledger, "poke", "db01") }, gate.Ask},
		{"an approval of a tool that rolls back", "wipe", "db01", func(s *site) { approve(t, s.ledger, "wipe", "db01") }, gate.Ask},
		{"a consent to an unknown tool", "poke", "web01", func(s *site) {
			must(t, s.ledger.Consent(t.Context(), gate.Consent{
				ChangeID: s.protect("web01").ChangeID, VM: "web01", Server: "mine", Tool: "poke", Targets: []string{"web01"}, Source: gate.ClientRelayed,
			}))
		}, gate.Ask},
	} {
		s := newSite(t)
		tt.leave(s)
		g := s.gate(gate.Policy{})
		objected := mine(tt.tool, tt.vm)
		objected.Objection = func() string { return "It may change the settings." }
		v := g.Decide(t.Context(), objected)
		if v.Decision != tt.want || len(v.Guards) > 0 || v.Approval != "" || v.ApproveCommand == "" {
			t.Errorf("%s, with an objection: %+v, want %s", tt.behaviour, v, tt.want)
		}
		if v.Decision == gate.Ask && !strings.Contains(v.Reason, "may change the settings") {
			t.Errorf("%s: the question does not tell of the objection: %q", tt.behaviour, v.Reason)
		}
		s.expect(g, tt.behaviour+", without one", tt.tool, tt.vm, gate.Allow, "")
	}
}

func TestProofAgeSparesTheJournalsForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	g := s.gate(gate.Policy{ProofAge: time.Minute})
	s.expect(g, "the first call", "stop", "web01", gate.Allow, "guarded")
	for _, tt := range []struct {
		behaviour string
		passed    time.Duration
		reads     bool
	}{
		{"at once", 0, false},
		{"59 s later", 59 * time.Second, false},
		{"2 min later", 2 * time.Minute, true},
		{"the clock set back", -time.Hour, true},
	} {
		s.clock.at = s.clock.at.Add(tt.passed)
		before := len(s.Requests())
		s.expect(g, tt.behaviour, "stop", "web01", gate.Allow, "guarded")
		if reads := len(s.Requests()) > before; reads != tt.reads {
			t.Errorf("%s: the journals were read: %t, want %t", tt.behaviour, reads, tt.reads)
		}
	}
}

func TestGuardOfAnotherZVMIsNoneHere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	elsewhere := open(t, s.dir, ledger.Options{ZVM: "https://elsewhere", Now: s.clock.now})
	must(t, elsewhere.Keep(t.Context(), s.protect("web01")))
	s.vpg.Resync()
	s.expect(s.gate(gate.Policy{ProofAge: time.Hour}), "a claim about another ZVM", "stop", "web01", gate.Deny, "no guard")
	if c, err := elsewhere.Claims(t.Context(), "web01"); err != nil || c[0].Void != "" {
		t.Errorf("claim %+v, %v: what this ZVM lists says nothing of another's", c, err)
	}
}

func TestAliasNamesItsVM(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	g := s.gate(gate.Policy{Aliases: map[string]string{"Frontend": "web01", "db01": "web01"}})
	s.expect(g, "an alias", "stop", "frontend", gate.Allow, "guarded")
	s.expect(g, "an alias that a VM bears as its name", "stop", "db01", gate.Allow, "guarded")
	if len(s.claims("frontend")) != 1 {
		t.Error("the ledger does not know the VM by its alias")
	}
}

func TestFreezeStopsAllButReadsUntilItIsLifted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	g := s.gate(gate.Policy{ProofAge: time.Hour})
	approve(t, s.ledger, "stop", "db01")
	must(t, s.ledger.Freeze(t.Context(), "kim", "an odd night"))
	for _, tool := range []string{"stop", "poke", "wipe", "mark", "nobody-knows"} {
		v := s.expect(g, tool, tool, "web01", gate.Deny, "kim froze")
		if !strings.Contains(v.Reason, "an odd night") || !strings.Contains(v.Reason, "zerto-rewind thaw") || v.ApproveCommand != "" {
			t.Errorf("%s: %+v, want who, why and what lifts it", tool, v)
		}
	}
	s.expect(g, "an approved call", "stop", "db01", gate.Deny, "kim froze")
	s.expect(g, "a read", "look", "web01", gate.Allow, "")
	_, err := s.ledger.Thaw(t.Context(), "kim")
	must(t, err)
	s.expect(g, "thawed", "stop", "web01", gate.Allow, "guarded")
	s.expect(g, "the approval is still there", "stop", "db01", gate.Allow, "approved")
}

func approve(t *testing.T, l *ledger.Ledger, tool, vm string) {
	t.Helper()
	_, err := l.Approve(t.Context(), gate.Approval{Server: "mine", Tool: tool, Targets: []string{vm}, By: "kim"}, time.Hour)
	must(t, err)
}

func TestApprovedCallRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.gate(gate.Policy{})
	for tool, before := range map[string]gate.Decision{"stop": gate.Deny, "poke": gate.Ask, "wipe": gate.Ask, "nobody-knows": gate.Ask} {
		v := s.expect(g, tool+" before", tool, "web01", before, "")
		_, digest, ok := strings.Cut(v.ApproveCommand, fmt.Sprintf("zerto-rewind approve --server mine --tool %s --call ", tool))
		if !ok {
			t.Fatalf("%s: approved by %q", tool, v.ApproveCommand)
		}
		_, err := s.ledger.Approve(t.Context(), gate.Approval{Server: "mine", Tool: tool, Digest: digest, By: "kim"}, time.Hour)
		must(t, err)
		s.expect(g, tool+" with other arguments", tool, "db01", before, "")
		if v := s.expect(g, tool+" approved", tool, "web01", gate.Allow, "kim approved"); v.Approval == "" {
			t.Errorf("%s: verdict %+v does not name its approval", tool, v)
		}
		s.expect(g, tool+" again", tool, "web01", before, "")
	}
}

func TestApprovalIsNotUsedUpWhereAGuardStands(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	approve(t, s.ledger, "stop", "web01")
	g := s.gate(gate.Policy{})
	s.expect(g, "guarded", "stop", "web01", gate.Allow, "guarded")
	s.vpg.Resync()
	s.expect(g, "the guard is gone", "stop", "web01", gate.Allow, "approved")
}

func TestApprovalHelpsWhenTheJournalsCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.On("GET", "/v1/vms").Always().Status(500, `{"Message":"no"}`)
	g := s.gate(gate.Policy{})
	s.expect(g, "nothing can be known", "stop", "web01", gate.Deny, "could not be found out")
	approve(t, s.ledger, "stop", "web01")
	s.expect(g, "a person said so", "stop", "web01", gate.Allow, "approved")
}

func TestPersonIsAskedOncePerChange(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	g := s.gate(gate.Policy{})
	guard := s.protect("web01")
	s.expect(g, "the ledger learns of the guard", "stop", "web01", gate.Allow, "")
	for range 3 {
		s.expect(g, "nobody has answered", "poke", "web01", gate.Ask, "")
	}
	ran := func(callID string, want bool) {
		t.Helper()
		if consented, err := s.ledger.Ran(ctx, "s1", callID); consented != want || err != nil {
			t.Errorf("%s ran: consented %t, %v; want %t", callID, consented, err, want)
		}
	}
	ran("never-asked", false)
	ran("stop-web01", false)
	s.expect(g, "still nobody", "poke", "web01", gate.Ask, "")
	ran("poke-web01", true)
	ran("poke-web01", false)
	v := s.expect(g, "a person said yes", "poke", "web01", gate.Allow, "host-relayed")
	if len(v.Guards) != 1 || v.Guards[0].ChangeID != guard.ChangeID {
		t.Errorf("guards %+v, want the one the consent depends on", v.Guards)
	}
	s.expect(g, "another machine", "poke", "db01", gate.Ask, "")
	s.expect(g, "what deletes recovery points is asked about each time", "wipe", "web01", gate.Ask, "")
	ran("wipe-web01", false)
	s.expect(g, "even so", "wipe", "web01", gate.Ask, "")
	s.vpg.Resync()
	s.expect(g, "the guard is gone", "poke", "web01", gate.Ask, "")
}

func TestConsentWithoutAGuardIsRefusedOrWorthNothing(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	for behaviour, c := range map[string]gate.Consent{
		"no change":      {VM: "web01", Server: "mine", Tool: "poke", Source: gate.ClientRelayed},
		"no VM":          {ChangeID: "c1", Server: "mine", Tool: "poke", Source: gate.ClientRelayed},
		"no source":      {ChangeID: "c1", VM: "web01", Server: "mine", Tool: "poke"},
		"a host's shell": {ChangeID: "c1", VM: "web01", Server: "-", Tool: "Bash", Source: gate.ClientRelayed},
	} {
		if err := s.ledger.Consent(ctx, c); err == nil {
			t.Errorf("%s: recorded", behaviour)
		}
	}
	consent := gate.Consent{ChangeID: "never", VM: "web01", Server: "mine", Tool: "poke", Targets: []string{"web01"}, Source: gate.ClientRelayed}
	must(t, s.ledger.Consent(ctx, consent))
	g := s.gate(gate.Policy{})
	s.expect(g, "a change that has no guard", "poke", "web01", gate.Ask, "")
	consent.ChangeID, consent.Targets = s.protect("web01").ChangeID, nil
	consent.Tool = "nobody-knows"
	must(t, s.ledger.Consent(ctx, consent))
	s.expect(g, "a tool whose machines cannot be told", "nobody-knows", "web01", gate.Allow, "client-relayed")
}

func TestHostsOwnShellIsAskedAboutEachTimeAndApprovedOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	s.protect("web01")
	g := s.gate(gate.Policy{})
	bash := gate.Call{
		Name: catalog.Name{Tool: "Bash", BuiltIn: true}, Args: map[string]any{"command": "./deploy MARKER-secret"}, Session: "s1", CallID: "b1",
	}
	v := g.Decide(ctx, bash)
	if _, err := s.ledger.Ran(ctx, "s1", "b1"); err != nil {
		t.Error(err)
	}
	again := g.Decide(ctx, bash)
	if v.Decision != gate.Ask || again.Decision != gate.Ask {
		t.Errorf("%s, and once it ran %s; want ask", v.Decision, again.Decision)
	}
	_, digest, ok := strings.Cut(v.ApproveCommand, "zerto-rewind approve --server - --tool Bash --call ")
	if !ok || strings.Contains(v.ApproveCommand+v.Reason, "MARKER-") {
		t.Fatalf("approved by %q", v.ApproveCommand)
	}
	_, err := s.ledger.Approve(ctx, gate.Approval{Server: "-", Tool: "Bash", Digest: digest, By: "kim"}, time.Hour)
	must(t, err)
	for i, want := range []gate.Decision{gate.Allow, gate.Ask} {
		if v := g.Decide(ctx, bash); v.Decision != want {
			t.Errorf("call %d: %+v, want %s", i, v, want)
		}
	}
}

func TestLookingOnUsesNothingUpAndRecordsNothing(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	approve(t, s.ledger, "stop", "db01")
	s.protect("web01")
	before, err := s.ledger.Verify(ctx)
	must(t, err)
	g := s.gate(gate.Policy{Ledger: func(context.Context) (gate.Ledger, error) { return s.ledger.LookingOn(), nil }})
	for range 2 {
		s.expect(g, "approved", "stop", "db01", gate.Allow, "kim approved")
		s.expect(g, "guarded", "stop", "web01", gate.Allow, "guarded")
		s.expect(g, "unknown", "poke", "web01", gate.Ask, "")
	}
	after, err := s.ledger.Verify(ctx)
	if err != nil || after.Head != before.Head || len(s.claims("web01")) > 0 {
		t.Errorf("%d lines before, %d after, claims %+v, %v", before.Lines, after.Lines, s.claims("web01"), err)
	}
	s.expect(s.gate(gate.Policy{}), "the approval is still there", "stop", "db01", gate.Allow, "kim approved")
}

func TestVerdictsAreRecorded(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	g := s.gate(gate.Policy{})
	guard := s.protect("web01")
	s.expect(g, "a read", "look", "web01", gate.Allow, "")
	s.expect(g, "guarded", "stop", "web01", gate.Allow, "")
	s.expect(g, "unknown", "poke", "MARKER-argument", gate.Ask, "")
	var got []gate.Event
	must(t, s.ledger.Lines(ctx, time.Time{}, func(l ledger.Line) error {
		if l.Digest == "" && l.Kind == gate.EventVerdict || l.Reason == "" && l.Kind == gate.EventVerdict {
			t.Errorf("line %+v lacks the digest or the reason", l)
		}
		l.Digest, l.Reason = "", ""
		got = append(got, l.Event)
		return nil
	}))
	want := []gate.Event{
		{Kind: gate.EventGuarded, Agent: "patch-bot", Targets: []string{"web01"}, Changes: []string{guard.ChangeID}, Evidence: gate.Evidence(guard)},
		{
			Kind: gate.EventVerdict, Host: "claude", Session: "s1", CallID: "stop-web01", Server: "mine", Tool: "stop", Class: "mutating",
			Decision: "allow", Targets: []string{"web01"}, Changes: []string{guard.ChangeID}, Evidence: gate.Evidence(guard),
		},
		{
			Kind: gate.EventVerdict, Host: "claude", Session: "s1", CallID: "poke-MARKER-argument", Server: "mine", Tool: "poke", Class: "unknown",
			Decision: "ask", Targets: []string{"MARKER-argument"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLaw6LedgerThatCannotBeUsedStopsChangesAndNeverReads(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect("web01")
	damaged := filepath.Join(t.TempDir(), "state")
	must(t, open(t, damaged, ledger.Options{}).Close(), damage(filepath.Join(damaged, "ledger.db"), 0, 4096))
	held := filepath.Join(t.TempDir(), "state")
	holder := raw(t, open(t, held, ledger.Options{}).Path())
	holder.SetMaxOpenConns(1)
	run(t, holder, "BEGIN IMMEDIATE")
	newer := filepath.Join(t.TempDir(), "state")
	must(t, open(t, newer, ledger.Options{}).Close(), rawExec(filepath.Join(newer, "ledger.db"), "PRAGMA user_version = 99"))
	file := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(file, nil, 0o600))
	for behaviour, open := range map[string]func(context.Context) (gate.Ledger, error){
		"damaged": opener(damaged, ledger.Options{}), "held": opener(held, ledger.Options{Patience: short}),
		"of a newer version": opener(newer, ledger.Options{}), "no folder": opener(file, ledger.Options{}),
		"full":      opener(filepath.Join(t.TempDir(), "state"), ledger.Options{}.WithPragmas("max_page_count(1)")),
		"none":      func(context.Context) (gate.Ledger, error) { return nil, nil },
		"panicking": func(context.Context) (gate.Ledger, error) { panic("MARKER-panic") },
	} {
		g := s.gate(gate.Policy{Ledger: open})
		for _, tool := range []string{"stop", "poke", "wipe", "nobody-knows"} {
			s.expect(g, behaviour, tool, "web01", gate.Deny, "ledger")
		}
		s.expect(g, behaviour, "look", "web01", gate.Allow, "")
		s.expect(g, behaviour, "mark", "web01", gate.Allow, "")
		local := g.Decide(t.Context(), gate.Call{Name: catalog.Name{Tool: "Write", BuiltIn: true}, Args: map[string]any{"file_path": "/x"}})
		if local.Decision != gate.NoOpinion {
			t.Errorf("%s: a local call: %+v", behaviour, local)
		}
	}
}

func opener(dir string, o ledger.Options) func(context.Context) (gate.Ledger, error) {
	return func(ctx context.Context) (gate.Ledger, error) {
		l, err := ledger.Open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

func TestReadsOpenNoLedger(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.gate(gate.Policy{Ledger: func(context.Context) (gate.Ledger, error) {
		t.Error("the ledger was opened")
		return nil, nil
	}})
	s.expect(g, "a read", "look", "web01", gate.Allow, "")
	if n := len(s.Requests()); n > 0 {
		t.Errorf("%d requests for a read", n)
	}
}

func (s *site) inserts() int { return len(s.vpg.TaggedCheckpoints()) }

func TestGateGuardsByItselfWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.gate(gate.Policy{OnMutating: catalog.GuardFirst})
	v := s.expect(g, "unguarded", "stop", "web01", gate.Allow, "guarded")
	if len(v.Guards) != 1 || s.inserts() != 1 || len(s.claims("web01")) != 1 {
		t.Errorf("guards %+v, %d tags, want one of each", v.Guards, s.inserts())
	}
	s.expect(g, "guarded by now", "stop", "web01", gate.Allow, "guarded")
	if s.inserts() != 1 {
		t.Errorf("%d tags, want one", s.inserts())
	}
	s.expect(g, "a VM that nobody knows", "stop", "nobody", gate.Ask, "nobody")
	s.vpg.SetStatus(0, 0)
	s.expect(g, "a VM that cannot be guarded", "stop", "db01", gate.Deny, "could not be guarded")
}

func TestProcessesThatGuardAtOnceInsertOneTag(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var wg sync.WaitGroup
	for range 6 {
		g := s.gate(gate.Policy{OnMutating: catalog.GuardFirst, Ledger: opener(s.dir, ledger.Options{ZVM: s.URL(), Patience: waitForTurns})})
		wg.Go(func() {
			v := g.Decide(t.Context(), mine("stop", "web01"))
			if v.Decision != gate.Allow && v.RetrySeconds == 0 {
				t.Errorf("verdict %+v, want allow or under way", v)
			}
		})
	}
	wg.Wait()
	if s.inserts() != 1 {
		t.Errorf("%d tags, want one", s.inserts())
	}
}

func TestTaggingThatOutlastsTheVerdictIsGoneOnWith(t *testing.T) {
	t.Parallel()
	running := make(chan struct{}, 1)
	s := newSite(t, zvmtest.WithInsertTime(time.Hour), zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/checkpoints") {
			running <- struct{}{}
		}
	}))
	g := s.gate(gate.Policy{OnMutating: catalog.GuardFirst})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-running; cancel() }()
	v := g.Decide(ctx, mine("stop", "web01"))
	if v.Decision != gate.Deny {
		t.Errorf("verdict %+v, want a denial", v)
	}
	s.Advance(time.Hour)
	s.expect(g, "later", "stop", "web01", gate.Allow, "guarded")
	if s.inserts() != 1 {
		t.Errorf("%d tags, want the one that was begun", s.inserts())
	}
}

func TestTurnOfAProcessThatDiedIsTakenOverUnderTheSameChange(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	died, err := s.ledger.Begin(ctx, []string{"web01"}, time.Hour, s.clock.at.Add(10*time.Second))
	must(t, err)
	_, err = s.session.Protect(ctx, "web01", rewind.Change{ID: died.ChangeID, Action: "mine/stop"})
	must(t, err)
	s.vpg.SetStatus(1, 0)
	other, err := s.ledger.Begin(ctx, []string{"WEB01"}, time.Hour, s.clock.at.Add(time.Minute))
	if err != nil || !other.Taken || other.ChangeID != died.ChangeID {
		t.Errorf("begun %+v, %v; want the same change, whose turn is taken", other, err)
	}
	s.clock.at = s.clock.at.Add(11 * time.Second)
	s.expect(s.gate(gate.Policy{OnMutating: catalog.GuardFirst}), "after the turn has ended", "stop", "web01", gate.Allow, "guarded")
	if s.inserts() != 1 {
		t.Errorf("%d tags, want one", s.inserts())
	}
	_, err = s.ledger.CloseChange(ctx, died.ChangeID)
	must(t, err)
	if next, err := s.ledger.Begin(ctx, []string{"web01"}, time.Hour, s.clock.at); err != nil || next.ChangeID == died.ChangeID {
		t.Errorf("begun %+v, %v; want a new change after the end of the old one", next, err)
	}
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}
