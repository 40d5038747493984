package rewind_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

var stepsFlag = flag.Int("steps", 300, "how many guarded changes the property test makes")

// TestLaw1_WhateverHappensAGuardIsTrue makes random changes in random inventories, under random faults and cancellations,
// and holds what is promised: a guard's checkpoints stand in the journal and are not older than the call; an error names
// every tag that was inserted; and no VPG sees two inserts at once from one process.
func TestLaw1_WhateverHappensAGuardIsTrue(t *testing.T) {
	t.Parallel()
	const worlds = 20
	for i := range worlds {
		t.Run(fmt.Sprintf("world %d", i), func(t *testing.T) {
			t.Parallel()
			newRandomWorld(t, *seedFlag*worlds+uint64(i)).run(t, max(1, *stepsFlag/worlds))
		})
	}
}

type randomWorld struct {
	sim  *zvmtest.Server
	vpgs map[zvm.VPGID]*zvmtest.VPG
	vms  []string
	s    *rewind.Session

	mu   sync.Mutex
	rng  *rand.Rand
	told map[string][]string // by action: the tags that the caller was told of
}

func newRandomWorld(t *testing.T, seed uint64) *randomWorld {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	sim, err := zvmtest.New(zvmtest.WithSeed(seed),
		zvmtest.WithInsertTimes(func(n int) time.Duration { return time.Duration(n%4) * time.Millisecond }),
		zvmtest.WithListLag(time.Duration(rng.IntN(3))*time.Millisecond))
	must(t, err)
	t.Cleanup(sim.Close)
	w := &randomWorld{sim: sim, rng: rng, vpgs: map[zvm.VPGID]*zvmtest.VPG{}, told: map[string][]string{}}
	var vpgs []*zvmtest.VPG
	for i := range 1 + rng.IntN(5) {
		v := sim.AddVPG(fmt.Sprintf("vpg%d", i), zvmtest.VPGConfig{RecoverySite: sim.AddPeerSite(fmt.Sprintf("site%d", i))})
		vpgs = append(vpgs, v)
		w.vpgs[zvm.VPGID(v.ID())] = v
	}
	for i := range 1 + rng.IntN(8) {
		rng.Shuffle(len(vpgs), func(a, b int) { vpgs[a], vpgs[b] = vpgs[b], vpgs[a] })
		name := fmt.Sprintf("vm%d", i)
		sim.AddVM(name, vpgs[:1+rng.IntN(min(3, len(vpgs)))]...)
		w.vms = append(w.vms, name)
	}
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()),
		zvm.WithRetry(zvm.RetryPolicy{Max: 2, MinWait: time.Millisecond, MaxWait: 2 * time.Millisecond}))
	must(t, err)
	w.s, err = rewind.NewSession(client,
		rewind.WithSchedule(task.Schedule{Min: time.Millisecond, Max: 2 * time.Millisecond}),
		rewind.WithLimits(rewind.Limits{Listing: time.Second, Reconcile: time.Second, Settle: 10 * time.Millisecond}))
	must(t, err)
	return w
}

func (w *randomWorld) run(t *testing.T, steps int) {
	t.Helper()
	const callers = 3
	work := make(chan int)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for step := range work {
				w.step(t, step)
			}
		})
	}
	for step := range steps {
		w.fault()
		work <- step
	}
	close(work)
	wg.Wait()
	w.allTold(t)
	for _, v := range w.vpgs {
		if n := v.MaxInFlight(); n > 1 {
			t.Errorf("%s saw %d inserts at once", v.Name(), n)
		}
	}
}

// fault scripts something that goes wrong, every now and then.
func (w *randomWorld) fault() {
	w.mu.Lock()
	defer w.mu.Unlock()
	routes := []struct{ method, pattern string }{
		{"GET", "/v1/vms"},
		{"GET", "/v1/vpgs"},
		{"GET", "/v1/vpgs/*"},
		{"GET", "/v1/tasks/*"},
		{"GET", "/v1/tasks"},
		{"GET", "/v1/vpgs/*/checkpoints"},
		{"POST", "/v1/vpgs/*/checkpoints"},
		{"POST", "/v1/vpgs/*/checkpoints"},
	}
	actions := []func(*zvmtest.Fault){
		func(f *zvmtest.Fault) { f.CutBefore() },
		func(f *zvmtest.Fault) { f.CutAfter() },
		func(f *zvmtest.Fault) { f.Status(401, "") },
		func(f *zvmtest.Fault) { f.Status(403, `{"Message":"no"}`) },
		func(f *zvmtest.Fault) { f.Status(500, `{"Message":"no"}`) },
		func(f *zvmtest.Fault) { f.Status(503, "") },
		func(f *zvmtest.Fault) { f.StatusAfter(502, "<html>") },
		func(f *zvmtest.Fault) { f.StatusAfter(200, "") },
		func(f *zvmtest.Fault) { f.Truncate(3) },
		func(f *zvmtest.Fault) { f.Garbage("<html>log in", "text/html") },
		func(f *zvmtest.Fault) { f.Redirect("/elsewhere") },
	}
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		route := routes[w.rng.IntN(len(routes))]
		actions[w.rng.IntN(len(actions))](w.sim.On(route.method, route.pattern).Times(1))
	case 3:
		w.sim.ScriptTask("InsertTaggedCP", 4+w.rng.IntN(2), "scripted")
	}
}

func (w *randomWorld) step(t *testing.T, step int) {
	action := fmt.Sprintf("step-%d", step)
	ctx, cancel, vms, change := w.draw(t, action)
	defer cancel()
	began := w.sim.Now()
	g, err := w.s.ProtectAll(ctx, vms, change)
	var told []string
	if err == nil {
		for _, c := range g.Record().Checkpoints {
			told = append(told, c.Tag)
			w.holds(t, c, began, change.ID == "")
		}
	}
	var partial *rewind.PartialGuardError
	if errors.As(err, &partial) {
		for _, c := range partial.Tagged {
			told = append(told, c.Tag)
			w.holds(t, c, began, change.ID == "")
		}
		for _, f := range partial.Failed {
			told = append(told, f.Tag)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[action] = told
}

// draw decides what one caller does, and when it loses patience.
func (w *randomWorld) draw(t *testing.T, action string) (context.Context, context.CancelFunc, []string, rewind.Change) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	if w.rng.IntN(5) == 0 {
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), time.Duration(w.rng.IntN(15_000))*time.Microsecond)
	}
	vms := slices.Clone(w.vms)
	w.rng.Shuffle(len(vms), func(a, b int) { vms[a], vms[b] = vms[b], vms[a] })
	change := rewind.Change{Agent: "a", Action: action}
	if w.rng.IntN(8) == 0 {
		change.ID = fmt.Sprintf("change-%d", w.rng.IntN(6)) // now and then one that was guarded before
	}
	return ctx, cancel, vms[:1+w.rng.IntN(min(3, len(vms)))], change
}

// holds checks that a checkpoint of a guard stands in its journal, and, unless it may be an earlier one of the change,
// that it is not older than the call.
func (w *randomWorld) holds(t *testing.T, c rewind.TaggedCheckpoint, began time.Time, fresh bool) {
	t.Helper()
	standing := w.vpgs[c.VPGID].TaggedCheckpoints()
	i := slices.IndexFunc(standing, func(s zvmtest.Checkpoint) bool { return s.ID == string(c.CheckpointID) && s.Tag == c.Tag })
	if i < 0 {
		t.Errorf("checkpoint %s %q of a guard is not in the journal", c.CheckpointID, c.Tag)
		return
	}
	if fresh && c.Timestamp.Before(began.Truncate(time.Second)) {
		t.Errorf("checkpoint %s of %v is older than the call at %v", c.CheckpointID, c.Timestamp, began)
	}
}

// allTold waits until nothing runs any more, and checks that whoever asked for a tag was told of it.
func (w *randomWorld) allTold(t *testing.T) {
	t.Helper()
	running := func(x zvmtest.Task) bool { return !task.State(x.State).Terminal() }
	for began := time.Now(); slices.ContainsFunc(w.sim.Tasks(), running) && time.Since(began) < 10*time.Second; {
		<-time.After(time.Millisecond)
	}
	for _, v := range w.vpgs {
		for _, cp := range v.TaggedCheckpoints() {
			tag, ours := rewind.ParseTag(cp.Tag)
			if !ours {
				t.Errorf("the journal holds %q", cp.Tag)
				continue
			}
			if !slices.Contains(w.told[tag.Action], cp.Tag) {
				t.Errorf("%s: nobody was told of %q, only of %q", v.Name(), cp.Tag, strings.Join(w.told[tag.Action], ", "))
			}
		}
	}
}
