package rewind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestLaw1_AGuardIsWhatTheJournalHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.sim.Now()
	r := w.guard(t, "web01").Record()
	if r.Proof != rewind.ProofTaskAndJournal || len(r.Checkpoints) != 2 || len(r.Skipped) != 0 {
		t.Fatalf("got proof %q, %d checkpoints, skipped %v", r.Proof, len(r.Checkpoints), r.Skipped)
	}
	for _, c := range r.Checkpoints {
		vpg := map[string]*zvmtest.VPG{"web-local": w.local, "web-dr": w.remote}[c.VPGName]
		standing := vpg.TaggedCheckpoints()
		if len(standing) != 1 {
			t.Fatalf("%s holds %d tagged checkpoints, want 1", c.VPGName, len(standing))
		}
		got := fmt.Sprint(c.CheckpointID, " ", c.Tag, " ", c.VPGID)
		if want := fmt.Sprint(standing[0].ID, " ", standing[0].Tag, " ", vpg.ID()); got != want {
			t.Errorf("%s: guard says %s, journal %s", c.VPGName, got, want)
		}
		if c.Timestamp.Before(before.Truncate(time.Second)) {
			t.Errorf("%s: checkpoint of %v is older than the call at %v", c.VPGName, c.Timestamp, before)
		}
		if c.TaskID == "" || c.TaskState != "Completed" || c.Local != (c.VPGName == "web-local") {
			t.Errorf("%s: %+v", c.VPGName, c)
		}
	}
}

func TestLaw1_NoGuardWithoutTheJournal(t *testing.T) {
	t.Parallel()
	t.Run("a completed task whose tag never shows is no guard and is not sent again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, zvmtest.WithSwitch(zvmtest.InsertSilentlyLost))
		w.local.SetStatus(1, 0)
		_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Listing: 100 * time.Millisecond}))
		w.sim.On("GET", "/v1/vpgs/*/checkpoints").Always().Garbage("[]", "application/json")
		g, err := s.Protect(t.Context(), "web01", rewind.Change{})
		var unlisted *rewind.CheckpointNotListedError
		if g != nil || !errors.As(err, &unlisted) || unlisted.TaskID == "" {
			t.Errorf("got %v, %v, want *CheckpointNotListedError with its task", g, err)
		}
		if n := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); n != 2 {
			t.Errorf("%d inserts sent, want one at each VPG", n)
		}
	})
	t.Run("a guard cannot be decoded, and the zero guard recovers nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		data, err := json.Marshal(w.guard(t, "web01"))
		must(t, err)
		var decoded rewind.Guard
		if err := json.Unmarshal(data, &decoded); err == nil {
			t.Error("a guard was decoded from JSON")
		}
		for name, g := range map[string]*rewind.Guard{"decoded": &decoded, "nil": nil, "zero": {}} {
			if _, err := w.Recover(t.Context(), g, "/etc/nginx/nginx.conf", rewind.ToWriter(&strings.Builder{})); !errors.Is(err, rewind.ErrNotProven) {
				t.Errorf("recovering from a %s guard gives %v", name, err)
			}
		}
		if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
			t.Errorf("%d mounts sent", n)
		}
	})
	t.Run("a record is a claim until its checkpoints are read", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		record := w.guard(t, "web01").Record()
		g, err := w.Reprove(t.Context(), record)
		must(t, err)
		if g.Record().Proof != rewind.ProofJournal || !g.Complete() {
			t.Errorf("reproven: %+v", g.Record())
		}
		forged := []struct {
			name string
			with func(*rewind.GuardRecord)
		}{
			{"no checkpoints", func(r *rewind.GuardRecord) { r.Checkpoints = nil }},
			{"no VM", func(r *rewind.GuardRecord) { r.VMs = nil }},
			{"another change", func(r *rewind.GuardRecord) { r.ChangeID = "other" }},
			{"another checkpoint", func(r *rewind.GuardRecord) { r.Checkpoints[0].CheckpointID = "1" }},
			{"another tag", func(r *rewind.GuardRecord) {
				r.Checkpoints[0].Tag = strings.Replace(r.Checkpoints[0].Tag, "web01", "web02", 1)
			}},
			{"no tag", func(r *rewind.GuardRecord) { r.Checkpoints[0].Tag = "" }},
			{"another time", func(r *rewind.GuardRecord) {
				r.Checkpoints[0].Timestamp = r.Checkpoints[0].Timestamp.Add(-time.Hour)
			}},
			{"another VM", func(r *rewind.GuardRecord) { r.VMs[0].ID = "other.vm-1" }},
		}
		for _, f := range forged {
			claim := w.guardRecordCopy(record)
			f.with(&claim)
			if g, err := w.Reprove(t.Context(), claim); err == nil {
				t.Errorf("%s: reproven as %+v", f.name, g.Record())
			}
		}
		hiding := w.guardRecordCopy(record)
		hiding.Checkpoints, hiding.Action = hiding.Checkpoints[:1], "another"
		g, err = w.Reprove(t.Context(), hiding)
		must(t, err)
		if r := g.Record(); g.Complete() || r.Action != "upgrade nginx" || len(r.Skipped) != 1 {
			t.Errorf("a record that hides a VPG was reproven as whole: %+v", r)
		}
		ghost := w.guardRecordCopy(record)
		ghost.VMs = append(ghost.VMs, rewind.VM{ID: "ghost.vm-1", Name: "ghost"})
		if g, err := w.Reprove(t.Context(), ghost); err == nil {
			t.Errorf("a VM that no checkpoint covers was reproven: %+v", g.Record())
		}
		w.local.Resync()
		w.local.SetStatus(1, 0)
		if _, err := w.Reprove(t.Context(), record); !errors.Is(err, rewind.ErrCheckpointGone) {
			t.Errorf("after the journal was lost: %v, want ErrCheckpointGone", err)
		}
	})
}

func (w *world) guardRecordCopy(r rewind.GuardRecord) rewind.GuardRecord {
	r.Checkpoints, r.VMs = slices.Clone(r.Checkpoints), slices.Clone(r.VMs)
	return r
}

func TestGuardRecordJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remote.SetStatus(1, 23)
	data, err := json.Marshal(w.guard(t, "web01"))
	must(t, err)
	if diff := cmp.Diff(
		"action agent changeId checkpoints consistency human proof provenAt recoveries skewSeconds skipped startedAt vms", strings.Join(keys(t, data), " ")); diff != "" {
		t.Errorf("guard fields (-want +got):\n%s", diff)
	}
	var parts struct{ Checkpoints, Skipped, VMs []json.RawMessage }
	must(t, json.Unmarshal(data, &parts))
	for _, part := range []struct {
		data json.RawMessage
		want string
	}{
		{parts.Checkpoints[0], "checkpointId local protectedSite recoverySite tag taskId taskState timestamp vpgId vpgName"},
		{parts.Skipped[0], "protecting reason vpgId vpgName"},
		{parts.VMs[0], "id name"},
	} {
		if diff := cmp.Diff(part.want, strings.Join(keys(t, part.data), " ")); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	}
}

func keys(t *testing.T, object []byte) []string {
	t.Helper()
	var m map[string]json.RawMessage
	must(t, json.Unmarshal(object, &m))
	var names []string
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func TestOnlyProtectingVPGsAreTagged(t *testing.T) {
	t.Parallel()
	for sub := -1; sub <= 45; sub++ {
		for status := range 11 {
			if sub != 0 && sub != 28 && status != 1 && status != 4 {
				continue // every status with a fitting substatus, every substatus with two fitting statuses
			}
			t.Run(fmt.Sprintf("status %d, substatus %d", status, sub), func(t *testing.T) {
				t.Parallel()
				sim := start(t)
				vpg := sim.AddVPG("v", zvmtest.VPGConfig{})
				sim.AddVM("web01", vpg)
				vpg.SetStatus(status, sub)
				_, s := connect(t, sim)
				p, err := s.FindProtection(t.Context(), "web01")
				must(t, err)
				want := status >= 1 && status <= 4 && (sub == 0 || sub == 28)
				if got := p.VPGs[0]; got.Protecting != want || (got.Reason == "") != want {
					t.Errorf("protecting %t because %q, want %t", got.Protecting, got.Reason, want)
				}
			})
		}
	}
}

func TestNotProtectedSaysWhyAndInsertsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.local.SetStatus(1, 23)
	w.remote.SetStatus(0, 1)
	_, err := w.Protect(t.Context(), "web01", rewind.Change{})
	var unprotected *rewind.NotProtectedError
	if !errors.As(err, &unprotected) {
		t.Fatalf("got %v, want *NotProtectedError", err)
	}
	var reasons []string
	for _, v := range unprotected.VPGs {
		reasons = append(reasons, v.Reason)
	}
	if diff := cmp.Diff([]string{
		"Initializing: the first sync is not over, no checkpoint can be added yet",
		"BitmapSync: no new checkpoints are added while it runs",
	}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); n != 0 {
		t.Errorf("%d inserts sent", n)
	}
}

func TestAVPGThatStopsProtectingFailsTheGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(150*time.Millisecond)))
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageListed && e.VPGName == "web-local" {
			w.local.SetStatus(1, 6)
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	var state *rewind.StateError
	var partial *rewind.PartialGuardError
	if g != nil || !errors.As(err, &state) || !state.Late || !errors.As(err, &partial) {
		t.Fatalf("got %v, %v, want a late *StateError in a *PartialGuardError", g, err)
	}
	if len(partial.Tagged) != 1 || partial.Tagged[0].VPGName != "web-dr" || partial.Failed[0].Tag == "" {
		t.Errorf("the error does not name every tag: %+v", partial)
	}
}

func TestPartialGuardNamesEveryTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.On("POST", "/v1/vpgs/"+w.remote.ID()+"/checkpoints").Status(500, `{"Message":"Valid License is not provided "}`)
	g, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "c1"})
	var partial *rewind.PartialGuardError
	if g != nil || !errors.As(err, &partial) {
		t.Fatalf("got %v, %v, want *PartialGuardError", g, err)
	}
	if len(partial.Tagged) != 1 || partial.Tagged[0].Tag != taggedIn(w.local)[0] {
		t.Errorf("tagged %+v, the journal holds %q", partial.Tagged, taggedIn(w.local))
	}
	for _, part := range []string{"c1 is not guarded", "Valid License is not provided", "cannot be undone"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestTheSameChangeIsTaggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "CHG0012345", Action: "a"})
	must(t, err)
	_, other := connect(t, w.sim)
	again, err := other.Protect(t.Context(), "web01", rewind.Change{ID: "CHG0012345", Action: "b"})
	must(t, err)
	for i, c := range again.Record().Checkpoints {
		if c.CheckpointID != first.Record().Checkpoints[i].CheckpointID {
			t.Errorf("%s: checkpoint %s, want %s", c.VPGName, c.CheckpointID, first.Record().Checkpoints[i].CheckpointID)
		}
	}
	if again.Record().Proof != rewind.ProofJournal {
		t.Errorf("found again, but proof is %q", again.Record().Proof)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); n != 2 {
		t.Errorf("%d inserts sent, want 2", n)
	}
}

func TestAnotherChangesTagThatIsListedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard(t, "web01")
	settle := time.Hour
	if !tellsAll() {
		settle = 100 * time.Millisecond // the server does not say at which VPG an insert ran, so that it may be one here
	}
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Settle: settle}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := s.Protect(ctx, "web01", rewind.Change{ID: "c2"})
	must(t, err)
}

func TestTheSameChangeForAnotherVMOfTheVPGIsTaggedForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("db01", w.local)
	_, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "c1"})
	must(t, err)
	_, err = w.Protect(t.Context(), "db01", rewind.Change{ID: "c1"})
	must(t, err)
	if tags := taggedIn(w.local); len(tags) != 2 {
		t.Errorf("the journal holds %q, want a tag for each VM", tags)
	}
}

func TestProtectAllMakesOneTagPerVPG(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("db01", w.local)
	g, err := w.ProtectAll(t.Context(), []string{"web01", "db01", "WEB01"}, rewind.Change{Action: "both"})
	must(t, err)
	r := g.Record()
	if len(r.VMs) != 2 || len(r.Checkpoints) != 2 {
		t.Errorf("guard of %v with %d checkpoints, want two of each", r.VMs, len(r.Checkpoints))
	}
	for vpg, want := range map[*zvmtest.VPG]string{w.local: "vm=web01,db01 ", w.remote: "vm=web01 "} {
		if tags := taggedIn(vpg); len(tags) != 1 || !strings.Contains(tags[0], want) {
			t.Errorf("%s holds %q, want one with %q", vpg.Name(), tags, want)
		}
	}
}

func TestProtectAllTagsNothingWhenOneVMIsUnprotected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	syncing := w.sim.AddVPG("db", zvmtest.VPGConfig{SubStatus: 6})
	w.sim.AddVM("db01", syncing)
	var unprotected *rewind.NotProtectedError
	if _, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{}); !errors.As(err, &unprotected) {
		t.Errorf("got %v, want *NotProtectedError", err)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); n != 0 {
		t.Errorf("%d inserts sent", n)
	}
}

func TestOneInsertAtATimePerVPG(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(5*time.Millisecond)))
	const callers = 20
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if _, err := w.Protect(t.Context(), "web01", rewind.Change{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, v := range []*zvmtest.VPG{w.local, w.remote} {
		if v.MaxInFlight() != 1 || len(v.TaggedCheckpoints()) != callers {
			t.Errorf("%s saw %d inserts at once and holds %d tags", v.Name(), v.MaxInFlight(), len(v.TaggedCheckpoints()))
		}
	}
	if n := w.sim.TokenRequests(); n != 1 && *profileFlag != "realistic" {
		t.Errorf("%d token requests, want 1", n)
	}
}

func TestAForeignInsertIsWaitedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(time.Second)))
	var once sync.Once
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageInserting && e.VPGName == "web-local" {
			once.Do(func() { w.local.RunForeignInsert("nightly") })
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	if !g.Complete() {
		t.Errorf("guard %+v", g.Record())
	}
	failed := slices.ContainsFunc(w.sim.Tasks(), func(x zvmtest.Task) bool { return task.State(x.State) == task.Failed })
	if !failed {
		t.Error("the foreign insert was never met: this test shows nothing")
	}
}

func TestAFailedInsertWithoutAForeignOneIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("solo", w.sim.AddVPG("solo", zvmtest.VPGConfig{}))
	w.sim.ScriptTask("InsertTaggedCP", int(task.Failed), "journal is full")
	_, err := w.Protect(t.Context(), "solo", rewind.Change{})
	var failed *task.Error
	if !errors.As(err, &failed) || failed.Reason != "journal is full" {
		t.Errorf("got %v, want the task's failure", err)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/checkpoints"); n != 1 {
		t.Errorf("%d inserts sent, want 1", n)
	}
}

func TestLaw2_ALostInsertIsLookedForNotRepeated(t *testing.T) {
	t.Parallel()
	insert := func(v *zvmtest.VPG) string { return "/v1/vpgs/" + v.ID() + "/checkpoints" }
	for _, tt := range []struct {
		name  string
		fault func(*zvmtest.Fault) *zvmtest.Fault
		found bool
	}{
		{"cut after it was done", (*zvmtest.Fault).CutAfter, true},
		{"502 after it was done", func(f *zvmtest.Fault) *zvmtest.Fault { return f.StatusAfter(502, "<html>bad gateway</html>") }, true},
		{"empty answer after it was done", func(f *zvmtest.Fault) *zvmtest.Fault { return f.StatusAfter(200, "") }, true},
		{"truncated answer", func(f *zvmtest.Fault) *zvmtest.Fault { return f.Truncate(5) }, true},
		{"cut before it was done", (*zvmtest.Fault).CutBefore, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.fault(w.sim.On("POST", insert(w.local)))
			g, err := w.Protect(t.Context(), "web01", rewind.Change{})
			switch {
			case tt.found && err != nil:
				t.Fatal(err)
			case tt.found && (g.Record().Proof != rewind.ProofJournal || len(g.Record().Checkpoints) != 2):
				t.Errorf("found in the journal, but the guard is %+v", g.Record())
			case !tt.found && (g != nil || !errors.Is(err, zvm.ErrOutcomeUnknown)):
				t.Errorf("got %v, %v, want ErrOutcomeUnknown", g, err)
			}
			if n := w.sim.Count("POST", insert(w.local)); n != 1 {
				t.Errorf("%d inserts sent, want 1", n)
			}
		})
	}
}

func TestCancellingAProtectNamesWhatMayStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageTask {
			cancel()
		}
	}))
	_, err := s.Protect(ctx, "web01", rewind.Change{})
	var partial *rewind.PartialGuardError
	if !errors.As(err, &partial) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled *PartialGuardError", err)
	}
	for _, f := range partial.Failed {
		sent := w.sim.Count("POST", "/v1/vpgs/"+string(f.VPGID)+"/checkpoints") > 0
		if sent && f.Tag == "" {
			t.Errorf("%s: an insert was sent, and the error does not name its tag", f.VPGName)
		}
	}
}

func TestAWrongLocalClockDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-7 * time.Hour, 7 * time.Hour} {
		w := newWorld(t, zvmtest.WithClock(func() time.Time { return time.Now().Add(skew) }), zvmtest.WithInsertTime(20*time.Millisecond))
		r := w.guard(t, "web01").Record()
		if d := r.StartedAt.Sub(time.Now().Add(skew)); d < -time.Minute || d > time.Minute {
			t.Errorf("skew %v: started at %v, want the server's time", skew, r.StartedAt)
		}
	}
}

func TestAListThatLagsIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithListLag(lasting(200*time.Millisecond)))
	if g := w.guard(t, "web01"); g.Record().Proof != rewind.ProofTaskAndJournal {
		t.Errorf("guard %+v", g.Record())
	}
}

func TestLaw9_TwoSessionsKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t, zvmtest.WithSeed(1)), newWorld(t, zvmtest.WithSeed(1))
	_, err := a.Protect(t.Context(), "web01", rewind.Change{ID: "c"})
	must(t, err)
	if tags := taggedIn(b.local); len(tags) != 0 {
		t.Errorf("the other ZVM holds %q", tags)
	}
	if n := len(b.sim.Requests()); n != 0 {
		t.Errorf("the other ZVM saw %d requests", n)
	}
}

func TestTwoHundredCallersTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(time.Millisecond)))
	solo := w.sim.AddVPG("busy", zvmtest.VPGConfig{})
	w.sim.AddVM("busy01", solo)
	const callers = 200
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%10 == 0 {
				cancel() // leaves the queue, and frees its place
			}
			if _, err := w.Protect(ctx, "busy01", rewind.Change{}); (err != nil) != (i%10 == 0) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if n := solo.MaxInFlight(); n != 1 {
		t.Errorf("%d inserts at once", n)
	}
	if n := len(solo.TaggedCheckpoints()); n != callers*9/10 {
		t.Errorf("%d tags, want %d", n, callers*9/10)
	}
	if n := w.sim.Count("GET", "/v1/vms"); n > 10 {
		t.Errorf("the inventory was listed %d times for %d callers at once", n, callers)
	}
}

func TestAnInsertThatArrivesAfterItsCallerLeftMeetsNoOther(t *testing.T) {
	t.Parallel()
	arrival := make(chan struct{})
	lookedFor := make(chan struct{}, 100)
	w := newWorld(t, zvmtest.WithInsertTime(lasting(20*time.Millisecond)), zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if r.Method == http.MethodGet && r.Path == "/v1/tasks" {
			select {
			case lookedFor <- struct{}{}:
			default:
			}
		}
	}))
	alone := w.sim.AddVPG("alone", zvmtest.VPGConfig{})
	w.sim.AddVM("db01", alone)
	w.sim.On("POST", "/v1/vpgs/*/checkpoints").Late(arrival)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		defer leave()
		for len(w.sim.Unused()) > 0 { // the insert is on its way
			<-time.After(time.Millisecond)
		}
	}()
	if _, err := w.Protect(ctx, "db01", rewind.Change{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancellation", err)
	}
	for len(lookedFor) > 0 {
		<-lookedFor
	}
	go func() {
		defer close(arrival)
		<-lookedFor // the second caller has seen no insert by now
	}()
	if _, err := w.Protect(t.Context(), "db01", rewind.Change{}); err != nil {
		t.Fatal(err)
	}
	if n := alone.MaxInFlight(); n != 1 {
		t.Errorf("%d inserts at once", n)
	}
	if n := len(alone.TaggedCheckpoints()); n != 2 {
		t.Errorf("%d tags, want that of the caller who left as well", n)
	}
}
