package rewind_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const otherPassword = "MARKER-password-of-somebody"

// newSharedWorld is one that a person works at too, whose clock only the test moves. Its ZVM says of each task what it
// concerns, whatever the profile: without that nothing is ever shown to be ours.
func newSharedWorld(t *testing.T, opts ...zvmtest.Option) (w *world, person *zvm.Client) {
	t.Helper()
	w = newWorldAt(t, zvmtest.Start(t, append(append(stopped(), withinReach(t),
		zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0), zvmtest.WithTestTime(0), zvmtest.WithCloneTime(0),
		zvmtest.WithUser("somebody", otherPassword, zvmtest.Admin)), opts...)...))
	person, err := zvm.New(w.sim.URL(), zvm.Password("somebody", otherPassword), zvm.WithRootCAs(w.sim.CertPool()))
	must(t, err)
	return w, person
}

func target(g *rewind.Guard) zvm.FLRTarget {
	pin := localPin(g)
	return zvm.FLRTarget{VPG: pin.VPGID, VM: g.Record().VMs[0].ID, Checkpoint: pin.CheckpointID}
}

// testAs starts a failover test as a program of its own does.
func testAs(t *testing.T, c *zvm.Client, at zvm.FLRTarget) {
	t.Helper()
	_, err := c.StartFailoverTest(t.Context(), at.VPG, at.Checkpoint, []zvm.VMID{at.VM})
	must(t, err)
}

// sweepAnew sweeps as a process does that has not seen anything yet.
func sweepAnew(t *testing.T, w *world, opts ...rewind.SweepOption) []rewind.Leftover {
	t.Helper()
	_, s := connect(t, w.sim)
	left, err := s.Sweep(t.Context(), opts...)
	must(t, err)
	return left
}

// leftAlone fails unless the sweep lists one leftover, as untouched, for a reason.
func leftAlone(t *testing.T, left []rewind.Leftover, reason string) {
	t.Helper()
	if len(left) != 1 || left[0].Closed || !strings.Contains(left[0].Reason, reason) {
		t.Errorf("swept %+v, want one leftover left alone, for %q", left, reason)
	}
}

func TestLaw5_AForgottenTestIsStoppedAfterItsDeadlineAndNotBefore(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	g := w.guard(t, "web01")
	running, err := w.StartTest(t.Context(), g, rewind.For(2*time.Hour))
	must(t, err)
	if want := tagMoment.Add(2 * time.Hour); !running.Record().Deadline.Equal(want) {
		t.Errorf("deadline %v, want %v", running.Record().Deadline, want)
	}
	w.sim.Advance(2*time.Hour - 10*time.Second)
	leftAlone(t, sweepAnew(t, w, rewind.Apply()), "its deadline is not over")
	w.sim.Advance(10 * time.Second)
	if dry := sweepAnew(t, w); len(dry) != 1 || dry[0].Reason != "" || dry[0].Closed || len(w.sim.LiveTests()) != 1 {
		t.Errorf("dry: %+v, %d tests", dry, len(w.sim.LiveTests()))
	}
	left := sweepAnew(t, w, rewind.Apply())
	if len(left) != 1 || !left[0].Closed || left[0].ChangeID != g.ChangeID() || left[0].CheckpointID != localPin(g).CheckpointID {
		t.Errorf("swept %+v", left)
	}
	tests := w.sim.Tests()
	if len(w.sim.LiveTests()) != 0 || !strings.Contains(tests[0].Summary, g.ChangeID()) {
		t.Errorf("the server has %+v", tests)
	}
	if again := sweepAnew(t, w, rewind.Apply()); len(again) != 0 {
		t.Errorf("swept again %+v", again)
	}
}

func TestLaw5_ATestIsStoppedAfterTheDefaultDeadlineWhereNoneWasGiven(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	var book openings
	s, err := w.With(rewind.WithOpened(book.note))
	must(t, err)
	running, err := s.StartTest(t.Context(), w.guard(t, "web01"))
	must(t, err)
	if want := tagMoment.Add(rewind.DefaultTestDeadline); !running.Record().Deadline.Equal(want) {
		t.Errorf("deadline %v, want %v", running.Record().Deadline, want)
	}
	if len(book.all) != 1 || book.all[0].Deadline.IsZero() {
		t.Errorf("opened %+v, want one with a deadline", book.all)
	}
	w.sim.Advance(rewind.DefaultTestDeadline - 10*time.Second)
	leftAlone(t, sweepAnew(t, w, rewind.Apply()), "its deadline is not over")
	w.sim.Advance(10 * time.Second)
	if left := sweepAnew(t, w, rewind.Apply()); len(left) != 1 || !left[0].Closed {
		t.Errorf("swept %+v", left)
	}
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left", n)
	}
}

func TestLaw5_ATestThatWasMarkedWithoutADeadlineIsStoppedOnlyWithAll(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	at := target(w.guard(t, "web01"))
	name := "ai:patch-bot | test of " + string(at.Checkpoint) + " | until=- | change=c1 | " + tagMoment.Format(time.RFC3339)
	_, err := w.client.InsertCheckpoint(t.Context(), at.VPG, name)
	must(t, err)
	testAs(t, w.client, at)
	w.sim.Advance(12 * time.Hour)
	leftAlone(t, sweepAnew(t, w, rewind.Apply()), "it has no deadline")
	if left := sweepAnew(t, w, rewind.Apply(), rewind.All()); len(left) != 1 || !left[0].Closed {
		t.Errorf("swept %+v", left)
	}
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left", n)
	}
}

// Whatever stands in the journal, a test that somebody else has started is never stopped.
func TestLaw5_SweepNeverStopsTheTestOfAnother(t *testing.T) {
	t.Parallel()
	ourTest := func(t *testing.T, w *world, g *rewind.Guard) {
		t.Helper()
		running, err := w.StartTest(t.Context(), g, rewind.For(time.Minute))
		must(t, err)
		must(t, running.Stop(t.Context(), rewind.TestPassed, ""))
	}
	// meanwhile starts another's test between the announcement of ours and its start.
	meanwhile := func(t *testing.T, w *world, g *rewind.Guard, another *zvm.Client) {
		t.Helper()
		s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
			if e.Stage == rewind.StageListed && len(w.sim.LiveTests()) == 0 {
				testAs(t, another, target(g))
			}
		}))
		must(t, err)
		if _, err := s.StartTest(t.Context(), g, rewind.For(time.Minute)); err == nil {
			t.Error("two tests run at one VPG")
		}
	}
	forged := "ai:patch-bot | test of 1 | until=2026-11-29T10:00:00Z | change=c1 | " + tagMoment.Format(time.RFC3339)
	for _, tt := range []struct {
		name   string
		start  func(t *testing.T, w *world, g *rewind.Guard, person *zvm.Client)
		reason string
	}{
		{"at a guarded VPG", func(t *testing.T, _ *world, g *rewind.Guard, person *zvm.Client) {
			t.Helper()
			testAs(t, person, target(g))
		}, "no mark"},
		{"after ours", func(t *testing.T, w *world, g *rewind.Guard, person *zvm.Client) {
			t.Helper()
			ourTest(t, w, g)
			testAs(t, person, target(g))
		}, "several were started"},
		{"after ours, as the same user", func(t *testing.T, w *world, g *rewind.Guard, _ *zvm.Client) {
			t.Helper()
			ourTest(t, w, g)
			testAs(t, w.client, target(g))
		}, "several were started"},
		{"while ours is being started", func(t *testing.T, w *world, g *rewind.Guard, person *zvm.Client) {
			t.Helper()
			meanwhile(t, w, g, person)
		}, "did not start"},
		{"while ours is being started, as the same user", func(t *testing.T, w *world, g *rewind.Guard, _ *zvm.Client) {
			t.Helper()
			meanwhile(t, w, g, w.client)
		}, "did not start"},
		{"under a mark that was forged by yet another", func(t *testing.T, w *world, g *rewind.Guard, person *zvm.Client) {
			t.Helper()
			_, err := person.InsertCheckpoint(t.Context(), target(g).VPG, forged)
			must(t, err)
			testAs(t, w.client, target(g))
		}, "others inserted checkpoints"},
		{"under an old mark", func(t *testing.T, w *world, g *rewind.Guard, _ *zvm.Client) {
			t.Helper()
			_, err := w.client.InsertCheckpoint(t.Context(), target(g).VPG, forged)
			must(t, err)
			w.sim.Advance(time.Hour)
			testAs(t, w.client, target(g))
		}, "long after"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, person := newSharedWorld(t)
			tt.start(t, w, w.guard(t, "web01"), person)
			w.sim.Advance(12 * time.Hour)
			leftAlone(t, sweepAnew(t, w, rewind.Apply(), rewind.All()), tt.reason)
			if n := len(w.sim.LiveTests()); n != 1 {
				t.Errorf("%d tests run, want the other's", n)
			}
		})
	}
}

// A server that makes a task of a start that it refuses shows the failure there. What runs is still not ours.
func TestLaw5_ATestThatFailedToStartStopsNoOther(t *testing.T) {
	t.Parallel()
	w, person := newSharedWorld(t, zvmtest.WithSwitch(zvmtest.SecondTestFailsAsTask))
	g := w.guard(t, "web01")
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageListed {
			testAs(t, person, target(g))
		}
	}))
	must(t, err)
	var open *rewind.LeftOpenError
	if _, err := s.StartTest(t.Context(), g); !errors.As(err, &open) || !open.MayBe {
		t.Errorf("got %v, want a *LeftOpenError that may be", err)
	}
	if n := len(w.sim.LiveTests()); n != 1 {
		t.Errorf("%d tests run, want the other's", n)
	}
}

// A VPG that takes no checkpoint can be tested all the same; nobody can tell afterwards whose the test is.
func TestATestIsStartedWhereTheJournalTakesNoMark(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	g := w.guard(t, "web01")
	w.local.SetStatus(1, 23) // bitmap sync: recovery works, a checkpoint does not
	running, err := w.StartTest(t.Context(), g)
	must(t, err)
	if id := running.Record().MarkID; id != "" {
		t.Errorf("marked by %s", id)
	}
	leftAlone(t, sweepAnew(t, w, rewind.Apply(), rewind.All()), "no mark")
}

func TestSweepKeepsToItsOwnClones(t *testing.T) {
	t.Parallel()
	t.Run("a finished one is listed and stays", func(t *testing.T) {
		t.Parallel()
		w, _ := newSharedWorld(t)
		g := w.guard(t, "web01")
		cloned, err := w.Clone(t.Context(), g)
		must(t, err)
		left := sweepAnew(t, w, rewind.Apply(), rewind.All())
		leftAlone(t, left, "Zerto never removes it")
		if len(left) == 1 && (left[0].TaskID != cloned.TaskID || left[0].ChangeID != g.ChangeID()) {
			t.Errorf("listed %+v, want task %s of change %s", left[0], cloned.TaskID, g.ChangeID())
		}
	})
	t.Run("one of another is not aborted", func(t *testing.T) {
		t.Parallel()
		w, person := newSharedWorld(t, zvmtest.WithCloneTime(time.Hour))
		at := target(w.guard(t, "web01"))
		_, err := person.StartClone(t.Context(), at.VPG, at.Checkpoint, []zvm.VMID{at.VM})
		must(t, err)
		leftAlone(t, sweepAnew(t, w, rewind.Apply(), rewind.All()), "no mark")
		if n := w.sim.Count("POST", "/v1/vpgs/*/CloneAbort"); n != 0 {
			t.Errorf("%d aborts sent", n)
		}
	})
}

// At a VPG where nothing of ours stands, what runs is nobody's business.
func TestSweepSaysNothingOfWhatRunsWhereNothingIsOurs(t *testing.T) {
	t.Parallel()
	w, person := newSharedWorld(t, zvmtest.WithCloneTime(time.Hour))
	_, err := person.InsertCheckpoint(t.Context(), vpgid(w.local), "nightly")
	must(t, err)
	at := zvm.FLRTarget{VPG: vpgid(w.local), VM: vmid(w.web), Checkpoint: zvm.CheckpointID(w.local.TaggedCheckpoints()[0].ID)}
	testAs(t, person, at)
	_, err = person.StartClone(t.Context(), at.VPG, at.Checkpoint, []zvm.VMID{at.VM})
	must(t, err)
	if left := sweepAnew(t, w); len(left) != 0 {
		t.Errorf("listed %+v", left)
	}
}

func TestLaw5_SweepLeavesTheMountsOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("on a checkpoint of ours", func(t *testing.T) {
		t.Parallel()
		w, person := newSharedWorld(t)
		_, err := person.MountFLR(t.Context(), target(w.guard(t, "web01")))
		must(t, err)
		leftAlone(t, sweepAnew(t, w, rewind.Apply()), "somebody mounted it")
		if left := sweepAnew(t, w, rewind.Apply(), rewind.All()); len(left) != 1 || !left[0].Closed {
			t.Errorf("swept with All: %+v", left)
		}
	})
	t.Run("on one whose name begins like ours", func(t *testing.T) {
		t.Parallel()
		w, person := newSharedWorld(t)
		w.guard(t, "web01")
		for _, name := range []string{"ai: nightly", "ai:bot | x | vm=web01 | change=c1", " | vm=web01 | change=c1 | 2026-11-29T10:00:00Z"} {
			_, err := person.InsertCheckpoint(t.Context(), zvm.VPGID(w.local.ID()), name)
			must(t, err)
		}
		for _, cp := range w.local.TaggedCheckpoints()[1:] {
			w.orphan(t, zvm.CheckpointID(cp.ID))
		}
		if left := sweepAnew(t, w, rewind.Apply(), rewind.All()); len(left) != 0 || len(w.sim.LiveFLRSessions()) != 3 {
			t.Errorf("swept %+v", left)
		}
	})
}

func TestLaw5_SweepLeavesAMountInUse(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	must(t, w.web.Guest().WriteFile("/big", make([]byte, 32<<20))) // more than connections buffer
	g := w.guard(t, "web01")
	session := w.orphan(t, localPin(g).CheckpointID)
	data, err := w.client.DownloadFLR(t.Context(), session, bigFile(t, w, session))
	must(t, err)
	leftAlone(t, sweepAnew(t, w, rewind.Apply(), rewind.All()), "in use")
	must(t, data.Body.Close())
}

// bigFile finds the one file at the top of a partition.
func bigFile(t *testing.T, w *world, session zvm.SessionID) string {
	t.Helper()
	roots, err := w.client.BrowseFLR(t.Context(), session, "")
	must(t, err)
	for _, root := range roots.Items {
		items, err := w.client.BrowseFLR(t.Context(), session, root.Path)
		must(t, err)
		for _, item := range items.Items {
			if item.Name() == "big" {
				return item.Path
			}
		}
	}
	t.Fatal("there is no such file")
	return ""
}

func TestForIsForStartsAlone(t *testing.T) {
	t.Parallel()
	w, _ := newSharedWorld(t)
	g := w.guard(t, "web01")
	if _, err := w.Browse(t.Context(), g, "/", rewind.For(time.Hour)); err == nil {
		t.Error("a mount took For")
	}
	for _, d := range []time.Duration{0, -time.Second} {
		if _, err := w.StartTest(t.Context(), g, rewind.For(d)); err == nil {
			t.Errorf("For(%v) was taken", d)
		}
	}
	if n := w.sim.Count("POST", "/v1/flrs") + w.sim.Count("POST", "/v1/vpgs/*/FailoverTest"); n != 0 {
		t.Errorf("%d writes sent", n)
	}
}
