package zvm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestEventsTellOfInsertsThatEnded(t *testing.T) {
	t.Parallel()
	sim := zvmtest.Start(t, zvmtest.WithManualClock(time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)), zvmtest.WithInsertTime(time.Second))
	vpg := sim.AddVPG("web", zvmtest.VPGConfig{})
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	list := func(filter zvm.EventFilter) []bool {
		t.Helper()
		events, err := client.ListEvents(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		succeeded := []bool{}
		for _, e := range events {
			if e.Type != zvm.EventInsertTaggedCP || len(e.VPGs) != 1 || e.VPGs[0] != zvm.VPGID(vpg.ID()) || e.Occurred.IsZero() || e.User == "" {
				t.Errorf("%+v", e)
			}
			succeeded = append(succeeded, e.Succeeded)
		}
		return succeeded
	}
	for i := range 2 {
		if i == 1 {
			sim.ScriptTask("InsertTaggedCP", 4, "no room")
		}
		if _, err := client.InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "tag"); err != nil {
			t.Fatal(err)
		}
		sim.Advance(time.Minute)
	}
	if diff := cmp.Diff([]bool{true, false}, list(zvm.EventFilter{Type: zvm.EventInsertTaggedCP})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := list(zvm.EventFilter{After: sim.Now()}); len(got) != 0 {
		t.Errorf("%v are from the future", got)
	}
	if got := list(zvm.EventFilter{Type: 30}); len(got) != 0 {
		t.Errorf("%v are of no clone", got)
	}
}
