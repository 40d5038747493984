package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// site is a simulated ZVM, a session on it and a gate that reads its journals.
type site struct {
	*zvmtest.Server
	session *rewind.Session
	gate    *gate.Gate
	vpg     *zvmtest.VPG // holds web01 and db01
	dr      *zvmtest.VPG // holds web01 too
}

func newSite(t *testing.T, opts ...zvmtest.Option) *site {
	t.Helper()
	sim := zvmtest.Start(t, append([]zvmtest.Option{zvmtest.WithProfile(zvmtest.Quick), withinReach(t)}, opts...)...)
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	session, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: sim, session: session}
	s.vpg = sim.AddVPG("web", zvmtest.VPGConfig{})
	s.dr = sim.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: sim.AddPeerSite("Elsewhere")})
	sim.AddVM("web01", s.vpg, s.dr)
	sim.AddVM("db01", s.vpg)
	sim.AddVM("twin", s.vpg)
	sim.AddVM("twin", s.vpg)
	s.gate = newGate(t, func() (gate.Guards, error) { return session, nil }, gate.Policy{})
	return s
}

func (s *site) protect(t *testing.T, vms ...string) *rewind.Guard {
	t.Helper()
	g, err := s.session.ProtectAll(t.Context(), vms, rewind.Change{Action: "power off"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (s *site) expect(t *testing.T, behaviour string, want gate.Decision, reason string, vms ...any) gate.Verdict {
	t.Helper()
	v := s.gate.Decide(t.Context(), stopVM(vms...))
	if v.Decision != want || !strings.Contains(v.Reason, reason) {
		t.Errorf("%s: %s (%s), want %s with %q", behaviour, v.Decision, v.Reason, want, reason)
	}
	return v
}

func TestMutatingToolRunsOnlyWithAFreshGuardOfEveryMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expect(t, "no guard", gate.Deny, "no guard in the last 30m", "web01")
	guard := s.protect(t, "web01")
	v := s.expect(t, "a guard", gate.Allow, "guarded", "web01")
	if len(v.Guards) != 1 || v.Guards[0].ChangeID != guard.ChangeID() || len(v.Guards[0].Checkpoints) != 2 {
		t.Errorf("guards %+v, want the one of change %s", v.Guards, guard.ChangeID())
	}
	s.expect(t, "the machine in another case", gate.Allow, "guarded", "WEB01")
	s.expect(t, "another machine of the same VPG", gate.Deny, "no guard", "db01")
	v = s.expect(t, "one machine of two", gate.Deny, `"db01": no guard`, "web01", "db01")
	if strings.Contains(v.Next, "web01") || !strings.Contains(v.Next, "db01") || v.Guards != nil {
		t.Errorf("next %q and guards %v, want what guards db01 alone", v.Next, v.Guards)
	}
	s.protect(t, "db01")
	s.expect(t, "both machines", gate.Allow, "guarded", "web01", "db01")

	s.Advance(29 * time.Minute)
	s.expect(t, "a guard of 29 minutes", gate.Allow, "guarded", "web01")
	s.Advance(2 * time.Minute)
	s.expect(t, "a guard of 31 minutes", gate.Deny, "", "web01")
	s.protect(t, "web01")
	s.expect(t, "a new guard beside an old one", gate.Allow, "guarded", "web01")
}

func TestVerdictChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	before := len(s.Requests())
	s.expect(t, "a guard", gate.Allow, "guarded", "web01")
	for _, r := range s.Requests()[before:] {
		if r.Method != "GET" && !strings.HasSuffix(r.Path, "/token") {
			t.Errorf("the gate sent %s %s", r.Method, r.Path)
		}
	}
}

func TestGuardThatLostACheckpointIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	s.dr.Resync()
	s.expect(t, "one journal is empty", gate.Deny, "lacks the checkpoint of a VPG", "web01")
	s.dr.SetStatus(0, 0)
	s.expect(t, "the VPG does not protect any more", gate.Allow, "guarded", "web01")
	s.vpg.Resync()
	s.expect(t, "both journals are empty", gate.Deny, "no guard", "web01")
}

func TestNameThatMeansNoneOrSeveralIsAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	s.expect(t, "no such VM", gate.Ask, "nobody", "nobody")
	s.expect(t, "two such VMs", gate.Ask, "means 2 VMs", "twin")
	s.expect(t, "a guarded VM and no VM", gate.Ask, "nobody", "web01", "nobody")
	s.expect(t, "an unguarded VM and no VM", gate.Deny, "db01", "db01", "nobody")
}

func TestJournalThatCannotBeReadDenies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	s.On("GET", "/v1/vpgs/*/checkpoints").Always().Status(500, `{"Message":"no"}`)
	s.expect(t, "a journal that fails", gate.Deny, "could not be found out", "web01")
	s.expect(t, "what to do then", gate.Deny, "zerto-rewind find web01", "web01")
}

func TestGuardIsAsOldAsItsOldestCheckpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	change := rewind.Change{ID: "c1", Action: "power off"}
	protect := func() {
		t.Helper()
		if _, err := s.session.Protect(t.Context(), "web01", change); err != nil {
			t.Fatal(err)
		}
	}
	s.dr.SetStatus(0, 0)
	protect()
	// Beyond the greatest age, and still within what a journal is asked for to be sure.
	s.Advance(30*time.Minute + time.Second)
	s.dr.SetStatus(1, 0)
	protect()
	s.expect(t, "one checkpoint is too old", gate.Deny, "old, more than 30m", "web01")
}

func TestCheckpointFromTheFutureIsNoGuard(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pin := s.protect(t, "web01").Record().Checkpoints[0]
	s.expect(t, "checkpoints of now", gate.Allow, "guarded", "web01")
	s.On("GET", "/v1/vpgs/"+string(pin.VPGID)+"/checkpoints").Garbage(fmt.Sprintf(
		`[{"CheckpointIdentifier":"786","TimeStamp":%q,"Tag":%q,"Vss":false}]`,
		s.Now().Add(2*time.Minute).Format(time.RFC3339), pin.Tag), "application/json")
	s.expect(t, "one checkpoint of a time to come", gate.Deny, "from the future", "web01")
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
