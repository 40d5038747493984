package rewind_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		with               func(*world, *rewind.Guard)
		valid, recoverable bool
	}{
		{"nothing happened", func(*world, *rewind.Guard) {}, true, true},
		{"a checkpoint aged out", func(w *world, g *rewind.Guard) { w.local.LoseCheckpoint(string(localPin(g).CheckpointID)) }, false, false},
		{"a sync runs at the local VPG", func(w *world, _ *rewind.Guard) { w.local.SetStatus(1, 6) }, false, true},
		{"a bitmap sync adds none and deletes none", func(w *world, _ *rewind.Guard) { w.local.SetStatus(1, 23) }, true, true},
		{"the VPG is being deleted", func(w *world, _ *rewind.Guard) { w.remote.SetStatus(7, 0) }, false, true},
		{"FLR is off", func(w *world, _ *rewind.Guard) { w.web.SetFLREnabled(false) }, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			tt.with(w, g)
			v, err := w.Verify(t.Context(), g)
			must(t, err)
			recoverable := v.Recoverable
			if tt.name == "FLR is off" && !tellsAll() {
				recoverable = false // a server that leaves the field out says nothing
			}
			if tt.name == "a sync runs at the local VPG" {
				recoverable = tt.recoverable // a server may or may not mount then
			}
			if v.Valid != tt.valid || recoverable != tt.recoverable || len(v.Checkpoints) != 2 {
				t.Errorf("valid %t, recoverable %t: %+v", v.Valid, v.Recoverable, v.Checkpoints)
			}
		})
	}
	if _, err := newWorld(t).Verify(t.Context(), &rewind.Guard{}); !errors.Is(err, rewind.ErrNotProven) {
		t.Errorf("the zero guard gives %v", err)
	}
}

func TestHorizon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := w.sim.AddVPG("short", zvmtest.VPGConfig{History: 2 * time.Hour, RecoverySite: w.sim.AddPeerSite("Archive")})
	w.sim.AddVM("both", w.local, short)
	g := w.guard(t, "both")
	h, err := w.Horizon(t.Context(), g)
	must(t, err)
	var at time.Time
	for _, c := range g.Record().Checkpoints {
		if c.VPGName == "short" {
			at = c.Timestamp
		}
	}
	if !tellsAll() && h.Until.IsZero() {
		return // the server did not say how much history it keeps
	}
	if !h.Until.Equal(at.Add(2*time.Hour)) || !strings.HasPrefix(h.Reason, "short: ") || len(h.Checkpoints) != 2 {
		t.Errorf("until %v (%s), want two hours after %v: %+v", h.Until, h.Reason, at, h.Checkpoints)
	}
	w.local.SetStatus(4, 0)
	h, err = w.Horizon(t.Context(), g)
	must(t, err)
	warned := false
	for _, c := range h.Checkpoints {
		warned = warned || c.VPGName == "web-local" && len(c.Warnings) > 0
	}
	if !warned {
		t.Errorf("a history that is not met is not warned about: %+v", h.Checkpoints)
	}
}

func TestAGuardSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("dr01", w.remote)
	here, there := w.guard(t, "web01"), w.guard(t, "dr01")
	if got := strings.Join(here.Record().Recoveries, " "); !here.Local() || got != "file test clone" {
		t.Errorf("local %t, recoveries %q", here.Local(), got)
	}
	if got := strings.Join(there.Record().Recoveries, " "); there.Local() || got != "test clone" || !there.Complete() {
		t.Errorf("local %t, recoveries %q", there.Local(), got)
	}
	if here.Record().Consistency != rewind.CrashConsistent || here.Skew() < 0 || here.Skew() > lasting(time.Minute) {
		t.Errorf("consistency %q, skew %v", here.Record().Consistency, here.Skew())
	}
}

func TestSkewIsTheSpreadOfTheCheckpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, append(stopped(), zvmtest.WithSwitch(zvmtest.TimestampsInMilliseconds))...)
	_, s := connect(t, w.sim, rewind.WithParallel(1), rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageListed && e.VPGName == "web-dr" {
			w.sim.Advance(90 * time.Second)
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	if g.Skew() != 90*time.Second {
		t.Errorf("skew %v, want 1m30s", g.Skew())
	}
}
