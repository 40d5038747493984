package rewind_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// orphan mounts a checkpoint as a process does that is killed then.
func (w *world) orphan(t *testing.T, checkpoint zvm.CheckpointID) zvm.SessionID {
	t.Helper()
	id, err := w.client.MountFLR(t.Context(), zvm.FLRTarget{
		VPG: zvm.VPGID(w.local.ID()), VM: zvm.VMID(w.web.ID()), Checkpoint: checkpoint,
	})
	must(t, err)
	return id
}

func localPin(g *rewind.Guard) rewind.TaggedCheckpoint {
	for _, c := range g.Record().Checkpoints {
		if c.Local {
			return c
		}
	}
	return rewind.TaggedCheckpoint{}
}

func TestLaw5_SweepClosesWhatACrashLeftAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	ours := w.orphan(t, localPin(g).CheckpointID)
	var automatic zvm.CheckpointID
	for cp, err := range w.client.ListCheckpoints(t.Context(), zvm.VPGID(w.local.ID()), zvm.Window{}) {
		must(t, err)
		if cp.Tag == "" {
			automatic = cp.ID
		}
	}
	theirs := w.orphan(t, automatic)

	left, err := w.Sweep(t.Context())
	must(t, err)
	if len(left) != 1 || left[0].FLRSessionID != ours || left[0].Closed || left[0].ChangeID != g.ChangeID() {
		t.Errorf("dry: %+v, want %s alone, open", left, ours)
	}
	if n := len(w.sim.LiveFLRSessions()); n != 2 {
		t.Errorf("a dry sweep left %d of 2 sessions", n)
	}
	left, err = w.Sweep(t.Context(), rewind.Apply())
	must(t, err)
	if len(left) != 1 || !left[0].Closed {
		t.Errorf("applied: %+v", left)
	}
	if live := w.sim.LiveFLRSessions(); len(live) != 1 || live[0].ID != string(theirs) {
		t.Errorf("%+v are mounted, want %s", live, theirs)
	}
}

// What may be ours is said and left alone, however much is asked for: the command that an error has named must not answer that
// nothing is open.
func TestLaw5_SweepSaysWhatItCannotShowToBeOurs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, reason string
		others       int // other changes that stand in the journal
		lose         func(*world, *rewind.Guard)
	}{
		{"its checkpoint has left the journal", "no longer in the journal", 1, func(w *world, g *rewind.Guard) {
			w.local.LoseCheckpoint(string(localPin(g).CheckpointID))
		}},
		{"and nothing of ours stands there any more", "no longer in the journal", 0, func(w *world, g *rewind.Guard) {
			w.local.LoseCheckpoint(string(localPin(g).CheckpointID))
		}},
		{"its VPG is not listed", "does not list its VPG", 1, func(w *world, _ *rewind.Guard) {
			w.sim.On("GET", "/v1/vpgs").Always().Status(200, "[]")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			for range tt.others {
				w.guard(t, "web01")
			}
			pin := localPin(g)
			id := w.orphan(t, pin.CheckpointID)
			tt.lose(w, g)
			if !tellsAll() && len(w.sim.LiveFLRSessions()) == 0 {
				return // this server closes a session whose checkpoint it loses
			}
			_, s := connect(t, w.sim)
			left, err := s.Sweep(t.Context(), rewind.Apply(), rewind.All())
			must(t, err)
			leftAlone(t, left, tt.reason)
			if len(w.sim.LiveFLRSessions()) != 1 {
				t.Error("it was closed")
			}
			want := rewind.Leftover{
				Kind: rewind.LeftFLR, FLRSessionID: id, VPGID: pin.VPGID, VMID: vmid(w.web), VMNames: []string{"web01"}, CheckpointID: pin.CheckpointID,
			}
			if diff := cmp.Diff([]rewind.Leftover{want}, left, cmpopts.IgnoreFields(rewind.Leftover{}, "VPGName", "OpenedAt", "Reason")); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if len(left) == 1 && left[0].OpenedAt.IsZero() {
				t.Error("nobody is told when it was opened")
			}
		})
	}
}

func TestLaw5_SweepClosesOnlyWhatItIsRestrictedTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pin := localPin(w.guard(t, "web01"))
	first := w.orphan(t, pin.CheckpointID)
	listed, err := w.Sweep(t.Context())
	must(t, err)
	second := w.orphan(t, pin.CheckpointID)
	mounted := func() (ids []zvm.SessionID) {
		for _, f := range w.sim.LiveFLRSessions() {
			ids = append(ids, zvm.SessionID(f.ID))
		}
		return ids
	}
	another := func(change func(*rewind.Leftover)) rewind.Leftover {
		l := listed[0]
		change(&l)
		return l
	}
	left, err := w.Sweep(t.Context(), rewind.Apply(), rewind.All(), rewind.Only(), rewind.Only(
		another(func(l *rewind.Leftover) { l.Kind = rewind.LeftTest }),
		another(func(l *rewind.Leftover) { l.VPGID = "another" }),
		another(func(l *rewind.Leftover) { l.FLRSessionID = "another" }),
		another(func(l *rewind.Leftover) { l.TaskID = "another" }),
		another(func(l *rewind.Leftover) { l.RecoverySiteID = "another" }),
	))
	must(t, err)
	if len(left) != 2 || left[0].Reason == "" || left[1].Reason == "" || len(mounted()) != 2 {
		t.Errorf("restricted to others: %+v, mounted %v", left, mounted())
	}
	left, err = w.Sweep(t.Context(), rewind.Apply(), rewind.Only(listed...))
	must(t, err)
	if diff := cmp.Diff([]zvm.SessionID{second}, mounted()); diff != "" {
		t.Errorf("mounted (-want +got):\n%s", diff)
	}
	for _, l := range left {
		if l.Closed != (l.FLRSessionID == first) || l.Closed != (l.Reason == "") {
			t.Errorf("swept %+v, want %s closed and a reason beside the other", l, first)
		}
	}
}

func TestLaw5_SweepSaysWhatItCouldNotClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	id := w.orphan(t, localPin(w.guard(t, "web01")).CheckpointID)
	left, err := w.Sweep(t.Context(), rewind.Apply())
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) || open.ID != string(id) || len(left) != 1 || left[0].Closed {
		t.Errorf("got %+v, %v", left, err)
	}
}

func TestAnEarlierCallThatWasGivenUpIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(time.Second)))
	ctx := w.untilSeen(t, "GET", "/v1/tasks/*")
	if _, err := w.Protect(ctx, "web01", rewind.Change{ID: "c1"}); err == nil {
		t.Fatal("the first call was not given up")
	}
	_, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "c1"})
	must(t, err)
	for _, v := range []*zvmtest.VPG{w.local, w.remote} {
		if tags := taggedIn(v); len(tags) != 1 {
			t.Errorf("%s holds %q, want one tag", v.Name(), tags)
		}
	}
}

func TestAPanicInAWatcherCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.With(rewind.WithProgress(func(rewind.Event) { panic("scripted") }))
	must(t, err)
	if _, err := s.Protect(t.Context(), "web01", rewind.Change{}); err != nil {
		t.Error(err)
	}
}
