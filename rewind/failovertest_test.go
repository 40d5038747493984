package rewind_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestAFailoverTestRunsTheGuardedVMsFromTheGuardedCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(lasting(10*time.Millisecond)))
	w.sim.AddVM("neighbour", w.local)
	g := w.guard(t, "web01")
	w.guard(t, "web01") // a later checkpoint must not be the one that is tested
	running, err := w.StartTest(t.Context(), g)
	must(t, err)
	tests := w.sim.LiveTests()
	if len(tests) != 1 || tests[0].CheckpointID != string(running.Record().CheckpointID) || len(tests[0].VMIDs) != 1 || tests[0].VMIDs[0] != w.web.ID() {
		t.Errorf("the server runs %+v, want %s alone from %s", tests, w.web.ID(), running.Record().CheckpointID)
	}
	if _, err := w.StartTest(t.Context(), g); !errors.Is(err, rewind.ErrTestRunning) {
		t.Errorf("a second test gives %v, want ErrTestRunning", err)
	}
	must(t, running.Stop(t.Context(), rewind.TestPassed, "nginx answers"))
	if left := w.sim.LiveTests(); len(left) != 0 {
		t.Errorf("left running: %+v", left)
	}
	stopped := w.sim.Tests()
	if got := stopped[len(stopped)-1].Summary; !strings.Contains(got, g.ChangeID()) || !strings.Contains(got, "nginx answers") {
		t.Errorf("summary %q does not carry the change and the words", got)
	}
	// A server that replaces the tag by its own mark leaves nothing to prove it by.
	if _, err := w.Reprove(t.Context(), g.Record()); err != nil && (tellsAll() || !errors.Is(err, rewind.ErrCheckpointGone)) {
		t.Errorf("a tested checkpoint is not found again: %v", err)
	}
}

func TestLaw5_ATestWhoseCallerLeftIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(lasting(time.Second)))
	ctx, cancel := context.WithCancel(t.Context())
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageTask && e.Task.Type == "FailOverTest" {
			cancel()
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	if _, err := s.StartTest(ctx, g); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	if left := w.sim.LiveTests(); len(left) != 0 {
		t.Errorf("left running: %+v", left)
	}
}

func TestACloneIsMadeFromTheGuardedCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithCloneTime(lasting(10*time.Millisecond)))
	w.sim.AddVM("neighbour", w.local)
	g := w.guard(t, "web01")
	w.guard(t, "web01")
	cloned, err := w.Clone(t.Context(), g, rewind.InVPG("web-dr"))
	must(t, err)
	clones := w.sim.Clones()
	if len(clones) != 1 || clones[0].CheckpointID != string(cloned.CheckpointID) || len(clones[0].VMs) != 1 {
		t.Errorf("the server made %+v, want one VM from %s", clones, cloned.CheckpointID)
	}
	if cloned.VPGName != "web-dr" || cloned.RecoverySite != "DR" {
		t.Errorf("cloned %+v", cloned)
	}
}

func TestLaw5_ACloneWhoseCallerLeftIsAborted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithCloneTime(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageTask && e.Task.Type == "Clone" {
			cancel()
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	if _, err := s.Clone(ctx, g); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/CloneAbort"); n != 1 || len(w.sim.Clones()) != 0 {
		t.Errorf("%d aborts sent, clones %+v", n, w.sim.Clones())
	}
}

func TestOneOfSeveralGuardedVMsIsTestedWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0), zvmtest.WithCloneTime(0))
	other := w.sim.AddVPG("db", zvmtest.VPGConfig{})
	db := w.sim.AddVM("db01", other)
	g, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{})
	must(t, err)
	running, err := w.StartTest(t.Context(), g, rewind.FromVM("db01"))
	must(t, err)
	if got := w.sim.LiveTests(); len(got) != 1 || got[0].VPGID != other.ID() || got[0].VMIDs[0] != db.ID() {
		t.Errorf("the server runs %+v, want db01 in its own VPG", got)
	}
	var missing *rewind.NotFoundError
	for _, opt := range []rewind.PlaceOption{rewind.FromVM("nobody"), rewind.InVPG("nowhere")} {
		if _, err := w.StartTest(t.Context(), g, opt); !errors.As(err, &missing) {
			t.Errorf("starting: got %v, want *NotFoundError", err)
		}
		if _, err := w.Browse(t.Context(), g, "/", opt); !errors.As(err, &missing) {
			t.Errorf("browsing: got %v, want *NotFoundError", err)
		}
	}
	found, err := w.FindTest(t.Context(), g, rewind.FromVM("db01"))
	must(t, err)
	if found.Record().VPGID != running.Record().VPGID {
		t.Errorf("found %+v", found.Record())
	}
	must(t, found.Stop(t.Context(), rewind.TestFailed, "enough"))
	// A stopped test may have taken the tag away.
	again, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{})
	must(t, err)
	cloned, err := w.Clone(t.Context(), again, rewind.FromVM("db01"))
	if err != nil || string(cloned.VPGID) != other.ID() {
		t.Errorf("cloned %+v, %v, want db01 in its own VPG", cloned, err)
	}
	if _, err := w.FindTest(t.Context(), g); !errors.Is(err, rewind.ErrNoTest) {
		t.Errorf("got %v, want ErrNoTest", err)
	}
	if err := (&rewind.Test{}).Stop(t.Context(), rewind.TestPassed, ""); !errors.Is(err, rewind.ErrNoTest) {
		t.Errorf("stopping nothing gives %v", err)
	}
}

func TestLaw5_ACloneThatCannotBeWatchedIsAborted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithCloneTime(time.Hour))
	g := w.guard(t, "web01")
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageListed { // the clone is announced, and its own task comes next
			w.sim.On("GET", "/v1/tasks/*").Status(403, `{"Message":"no"}`)
		}
	}))
	must(t, err)
	if _, err := s.Clone(t.Context(), g); err == nil {
		t.Error("a clone nobody saw was taken for made")
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/CloneAbort"); n != 1 || len(w.sim.Clones()) != 0 {
		t.Errorf("%d aborts sent, clones %+v", n, w.sim.Clones())
	}
}
