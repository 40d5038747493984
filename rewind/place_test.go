package rewind_test

import (
	"context"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// "Exactly the guarded VMs": a change of VMs in two VPGs is not tested by starting one of them.
func TestLaw3_ATestOfAChangeInTwoVPGsIsNotSilentlyATestOfOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	g, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{})
	must(t, err)
	test, err := w.StartTest(t.Context(), g)
	if err == nil && len(test.Record().VMs) != 2 {
		t.Errorf("2 VMs are guarded, and without a word only %+v was started", test.Record().VMs)
	}
}

// Several places that none of is local are several: the caller names one.
func TestLaw3_ATestAtOneOfTwoOtherSitesIsNotAGuess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	a := w.sim.AddVPG("to-a", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("A")})
	b := w.sim.AddVPG("to-b", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("B")})
	w.sim.AddVM("twice", a, b)
	test, err := w.StartTest(t.Context(), w.guard(t, "twice"))
	if err == nil {
		t.Errorf("sites A and B hold the checkpoint, and %s was taken", test.Record().VPGName)
	}
}

// A name that two guarded VMs bear is two VMs, for a failover test as for a mount.
func TestLaw3_FromVMOfANameThatTwoVMsBearIsAHardStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	vpg := w.sim.AddVPG("twins", zvmtest.VPGConfig{})
	one, two := w.sim.AddVM("twin", vpg), w.sim.AddVM("twin", vpg)
	g, err := w.ProtectAll(t.Context(), []string{one.ID(), two.ID()}, rewind.Change{})
	must(t, err)
	test, err := w.StartTest(t.Context(), g, rewind.FromVM("twin"))
	if err == nil {
		t.Errorf("FromVM names one VM, and %d were started", len(test.Record().VMs))
	}
}

// An earlier call may be given up when its insert is over and its tag not yet listed.
func TestLaw2_AKnownChangeIsNotTaggedAgainWhenItsInsertIsOverAndNotYetListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithListLag(lasting(400*time.Millisecond)))
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{})
	w.sim.AddVM("solo", solo)
	change := rewind.Change{ID: "change-1"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageTask && e.Task.State == task.Completed {
			cancel()
		}
	}))
	must(t, err)
	if _, err := s.Protect(ctx, "solo", change); err == nil {
		t.Fatal("the first call was to be given up")
	}
	_, err = w.Protect(t.Context(), "solo", change)
	must(t, err)
	if sent := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); sent != 1 {
		t.Errorf("%d inserts for one change, want 1", sent)
	}
}
