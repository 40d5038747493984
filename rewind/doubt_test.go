package rewind_test

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// A progress callback that ends its goroutine (t.FailNow, runtime.Goexit) must not make a guard of nothing.
func TestLaw1_ACallbackThatEndsItsGoroutineMakesNoGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageInserting {
			runtime.Goexit() // what t.FailNow does
		}
	}))
	must(t, err)
	g, err := s.Protect(t.Context(), "web01", rewind.Change{Action: "upgrade nginx"})
	if err == nil && g.Proven() {
		t.Errorf("proven guard without one insert (%d tags stand): %+v", len(taggedIn(w.local)), g.Record().Checkpoints)
	}
}

// The same while a checkpoint is mounted: what is open has to be closed.
func TestLaw5_ACallbackThatEndsItsGoroutineLeavesNothingMounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageMounted {
			runtime.Goexit()
		}
	}))
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	}()
	<-ended
	w.nothingMounted(t)
}

// A record is a claim: a VM that no checkpoint covers is not proven by reproving the others.
func TestLaw1_ReproveProvesNoVMThatNoCheckpointCovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	record := w.guard(t, "web01").Record()
	record.VMs = append(record.VMs, rewind.VM{ID: vmid(db), Name: "db01"})
	g, err := w.Reprove(t.Context(), record)
	if err == nil && g.Proven() && slices.ContainsFunc(g.Record().VMs, func(v rewind.VM) bool { return v.Name == "db01" }) {
		t.Errorf("a proven guard names db01, of which no checkpoint was ever made: complete %v, %+v", g.Complete(), g.Record().VMs)
	}
}

// A record that leaves a protecting VPG out is not a complete guard.
func TestLaw1_ReproveSeesAProtectingVPGThatTheRecordLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := w.guard(t, "web01").Record()
	record.Checkpoints = record.Checkpoints[:1]
	g, err := w.Reprove(t.Context(), record)
	if err == nil && g.Complete() {
		t.Errorf("complete with %d of 2 protecting VPGs: skipped %+v", len(g.Record().Checkpoints), g.Record().Skipped)
	}
}

// What the tag says is what a reproven guard says, whatever the record claims.
func TestLaw1_ReproveTakesNoClaimOverTheTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := w.guard(t, "web01").Record()
	record.Agent, record.Action, record.VMs[0].Name = "someone-else", "read a file", "forged-name"
	record.StartedAt = record.StartedAt.Add(-240 * time.Hour)
	g, err := w.Reprove(t.Context(), record)
	if err != nil {
		return
	}
	got := g.Record()
	if got.Agent != "patch-bot" || got.Action != "upgrade nginx" || got.VMs[0].Name != "web01" {
		t.Errorf("the proven guard says agent %q, action %q, VM %q, started %v; its tag says %q",
			got.Agent, got.Action, got.VMs[0].Name, got.StartedAt, got.Checkpoints[0].Tag)
	}
}

// An earlier insert that runs and cannot be read is no reason to insert again.
func TestLaw2_AKnownChangeIsNotTaggedAgainWhileItsTaskCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(time.Second)))
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{})
	w.sim.AddVM("solo", solo)
	change := rewind.Change{ID: "change-1"}
	ctx := w.untilSeen(t, "GET", "/v1/tasks/*")
	if _, err := w.Protect(ctx, "solo", change); err == nil {
		t.Fatal("the first call was to be given up")
	}
	w.sim.On("GET", "/v1/tasks/*").Status(403, `{"Message":"scripted"}`)
	_, err := w.Protect(t.Context(), "solo", change)
	if sent := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); sent != 1 {
		t.Errorf("%d inserts for one change, want 1 (%v)", sent, err)
	}
}

// Inserts that fail for good are not a reason to insert again for each other.
func TestLaw2_TwoInsertsThatFailForGoodDoNotKeepEachOtherGoing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{})
	w.sim.AddVM("solo", solo)
	const scripted = 40
	for range scripted {
		w.sim.ScriptTask("InsertTaggedCP", zvmtest.TaskFailed, "the journal volume is full")
	}
	ended := make(chan struct{}, 3)
	for range 3 {
		go func() {
			_, _ = w.Protect(t.Context(), "solo", rewind.Change{})
			ended <- struct{}{}
		}()
	}
	for range 3 {
		<-ended
	}
	sent := w.sim.Count("POST", "/v1/vpgs/*/checkpoints")
	if sent > 3 {
		t.Errorf("3 callers sent %d inserts, none of which met a foreign one", sent)
	}
	for range scripted - sent { // use up the script
		_, _ = w.client.InsertCheckpoint(t.Context(), vpgid(solo), "x")
	}
}

// A session whose unmount was accepted is not unmounted again because the list of sessions cannot be read.
func TestLaw2_AnAcceptedUnmountIsNotSentAgainWhenTheListFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("GET", "/v1/flrs").After(1).Times(24).Status(503, "")
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != 1 {
		t.Errorf("%d unmounts sent, the first of which was accepted (%+v, %v)", sent, r, err)
	}
}

// A lost unmount is sent again only when the session is seen to stay, not when nobody can tell.
func TestLaw2_ALostUnmountIsNotSentAgainWhenNobodyCanTell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("DELETE", "/v1/flrs/*").CutAfter()
	w.sim.On("GET", "/v1/flrs").After(1).Times(24).Status(503, "")
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != 1 {
		t.Errorf("%d unmounts sent though the list never showed that the session stays (%+v, %v)", sent, r, err)
	}
}

// An earlier call that was given up leaves a tag that is about to be listed. The next call under its id waits for it.
func TestLaw2_AKnownChangeIsNotTaggedAgainWhileItsTagIsAboutToBeListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(time.Second)), zvmtest.WithListLag(lasting(time.Second)))
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{})
	w.sim.AddVM("solo", solo)
	change := rewind.Change{ID: "change-1"}
	ctx := w.untilSeen(t, "GET", "/v1/tasks/*")
	if _, err := w.Protect(ctx, "solo", change); err == nil {
		t.Fatal("the first call was to be given up")
	}
	g, err := w.Protect(t.Context(), "solo", change)
	must(t, err)
	if sent := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); sent != 1 {
		t.Errorf("%d inserts for one change, want 1; guard is on %s", sent, g.Record().Checkpoints[0].CheckpointID)
	}
}
