package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func (s *site) client() *zvm.Client {
	s.t.Helper()
	client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), zvm.WithRootCAs(s.CertPool()))
	must(s.t, err)
	return client
}

// differences returns the kinds of what reconcile finds, with the change that each is about.
func (s *site) differences(ago time.Duration) []string {
	s.t.Helper()
	found, err := s.ledger.Reconcile(s.t.Context(), s.client(), ago)
	must(s.t, err)
	got := []string{}
	for _, d := range found {
		if d.What == "" || d.At.IsZero() {
			s.t.Errorf("difference %+v says too little", d)
		}
		got = append(got, string(d.Kind)+" "+d.ChangeID)
	}
	slices.Sort(got) // what happened within one second is in no order
	return got
}

func TestReconcileTellsEveryWayInWhichLedgerAndServerDiffer(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newSite(t)
	expect := func(behaviour string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if diff := cmp.Diff(append([]string{}, want...), s.differences(time.Hour)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", behaviour, diff)
		}
	}
	expect("nothing happened")
	g := s.gate(gate.Policy{})
	used := s.protect("web01")
	s.expect(g, "guarded", "stop", "web01", gate.Allow, "")
	expect("a guard and its change")
	foreign := s.protect("db01")
	expect("a guard that the ledger has not seen", "foreign_tag "+foreign.ChangeID)
	must(t, s.ledger.Keep(ctx, foreign))
	expect("one that it has", "guard_without_change "+foreign.ChangeID)
	s.vpg.LoseCheckpoint(string(used.Checkpoints[0].CheckpointID))
	expect("a checkpoint is gone", "guard_without_change "+foreign.ChangeID, "missing_tags ", "vanished_checkpoint "+used.ChangeID)
	approve(t, s.ledger, "stop", "db01")
	s.vpg.Resync()
	s.expect(g, "approved", "stop", "db01", gate.Allow, "approved")
	expect("a call without a guard", "change_without_guard ", "guard_without_change "+foreign.ChangeID, "missing_tags ",
		"vanished_checkpoint "+foreign.ChangeID, "vanished_checkpoint "+used.ChangeID)
	s.Advance(2 * time.Hour)
	s.clock.at = s.clock.at.Add(2 * time.Hour)
	expect("it was long ago")
}

func TestReconcileTellsTagsThatOnlyLookLikeOursAndInsertsThatFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.client()
	_, err := client.InsertCheckpoint(t.Context(), zvm.VPGID(s.vpg.ID()), "ai:somebody was here")
	must(t, err)
	s.Advance(time.Minute)
	_, err = client.InsertCheckpoint(t.Context(), zvm.VPGID(s.vpg.ID()), "before the upgrade")
	must(t, err)
	s.Advance(time.Minute)
	if diff := cmp.Diff([]string{"foreign_tag "}, s.differences(time.Hour)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	failing := newSite(t)
	failing.ScriptTask("InsertTaggedCP", 4, "no room")
	_, err = failing.client().InsertCheckpoint(t.Context(), zvm.VPGID(failing.vpg.ID()), "whatever")
	must(t, err)
	failing.Advance(time.Minute)
	if diff := cmp.Diff([]string{"failed_insert "}, failing.differences(time.Hour)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReconcileReadsInEventsOfInsertsWhoseTasksAreForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.ScriptTask("InsertTaggedCP", 4, "no room")
	_, err := s.client().InsertCheckpoint(t.Context(), zvm.VPGID(s.vpg.ID()), "whatever")
	must(t, err)
	s.Advance(time.Minute)
	s.On("GET", "/v1/tasks").Always().Answer(200, "[]", "application/json")
	if diff := cmp.Diff([]string{"failed_insert "}, s.differences(time.Hour)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.On("GET", "/v1/events").Always().Status(500, `{"Message":"no"}`)
	if found, err := s.ledger.Reconcile(t.Context(), s.client(), time.Hour); err == nil || found != nil {
		t.Errorf("%+v, %v; want an error alone", found, err)
	}
}

func TestReconcileConcludesNothingFromHalfOfTheJournals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	must(t, s.ledger.Keep(t.Context(), s.protect("web01")))
	s.On("GET", "/v1/vpgs/*/checkpoints").Always().Status(500, `{"Message":"no"}`)
	if found, err := s.ledger.Reconcile(t.Context(), s.client(), time.Hour); err == nil || found != nil {
		t.Errorf("%+v, %v; want an error alone", found, err)
	}
}

func TestReconcileKnowsTheMarksOfItsOwnTests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	guard := s.protect("web01")
	must(t, s.ledger.Keep(t.Context(), guard))
	for _, change := range []string{guard.ChangeID, "another-change"} {
		_, err := s.client().InsertCheckpoint(t.Context(), zvm.VPGID(s.vpg.ID()), "ai:patch-bot | test of 1 | until=- | change="+change+" | 2026-11-29T10:00:00Z")
		must(t, err)
		s.Advance(time.Minute)
	}
	if diff := cmp.Diff([]string{"foreign_tag ", "guard_without_change " + guard.ChangeID}, s.differences(time.Hour)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
