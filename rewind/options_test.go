package rewind_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestADrillIsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().WriteZeros("/big", 1<<30))
	sum := sha256.Sum256([]byte(goodConfig))
	g, err := w.Protect(t.Context(), "web01", rewind.Change{}, rewind.Drill(nginxConf))
	must(t, err)
	d := g.Record().Drill
	if d == nil || d.Error != "" || d.Bytes == nil || *d.Bytes != int64(len(goodConfig)) || d.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("drilled %+v", d)
	}
	g, err = w.Protect(t.Context(), "web01", rewind.Change{}, rewind.Drill("/big"))
	must(t, err)
	if d := g.Record().Drill; d.Error != "" || d.SHA256 != "" || *d.Bytes != 1<<30 {
		t.Errorf("a large file was read whole: %+v", d)
	}
	g, err = w.Protect(t.Context(), "web01", rewind.Change{}, rewind.Drill("/nothing"))
	must(t, err)
	if d := g.Record().Drill; d.Error == "" || !g.Complete() {
		t.Errorf("a failed drill: %+v", d)
	}
	_, err = w.Protect(t.Context(), "web01", rewind.Change{}, rewind.Drill("/nothing"), rewind.DrillRequired())
	var failed *rewind.DrillError
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &failed) || !errors.As(err, &missing) || len(failed.Record.Checkpoints) != 2 {
		t.Errorf("got %v, want *DrillError that names the tags", err)
	}
	w.nothingMounted(t)
}

// application counts how often it was frozen and thawed, and what it was when each insert ended.
type application struct{ frozen, freezes, thaws atomic.Int32 }

func (a *application) freeze(context.Context) error {
	a.freezes.Add(1)
	a.frozen.Store(1)
	return nil
}

func (a *application) thaw(context.Context) error {
	a.thaws.Add(1)
	a.frozen.Store(0)
	return nil
}

func TestQuiesceHoldsUntilTheLastInsertCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var app application
	var early atomic.Int32
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageTask && e.Task.State == task.Completed && app.frozen.Load() == 0 {
			early.Add(1)
		}
	}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{}, rewind.Quiesce(app.freeze, app.thaw))
	must(t, err)
	q := g.Record().Quiesced
	if q == nil || !q.Held || q.ThawedAt.Before(q.FrozenAt) || g.Record().Consistency != rewind.ApplicationConsistent {
		t.Errorf("quiesced %+v, consistency %q", q, g.Record().Consistency)
	}
	if app.freezes.Load() != 1 || app.thaws.Load() != 1 || early.Load() != 0 {
		t.Errorf("%d freezes, %d thaws, %d inserts completed after the thaw", app.freezes.Load(), app.thaws.Load(), early.Load())
	}
}

func TestThawIsCalledOnEveryPath(t *testing.T) {
	t.Parallel()
	failing := errors.New("scripted")
	for _, tt := range []struct {
		name   string
		fault  func(*world)
		freeze func(*application, context.CancelFunc) func(context.Context) error
	}{
		{"freeze fails", nil, func(a *application, _ context.CancelFunc) func(context.Context) error {
			return func(ctx context.Context) error { _ = a.freeze(ctx); return failing }
		}},
		{"freeze panics", nil, func(a *application, _ context.CancelFunc) func(context.Context) error {
			return func(ctx context.Context) error { _ = a.freeze(ctx); panic("scripted") }
		}},
		{"the caller leaves", nil, func(a *application, cancel context.CancelFunc) func(context.Context) error {
			return func(ctx context.Context) error { cancel(); return a.freeze(ctx) }
		}},
		{"an insert is refused", func(w *world) {
			w.sim.On("POST", "/v1/vpgs/*/checkpoints").Always().Status(500, `{"Message":"no"}`)
		}, func(a *application, _ context.CancelFunc) func(context.Context) error { return a.freeze }},
		{"a task fails", func(w *world) {
			w.sim.ScriptTask("InsertTaggedCP", int(task.Stopped), "scripted")
		}, func(a *application, _ context.CancelFunc) func(context.Context) error { return a.freeze }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.fault != nil {
				tt.fault(w)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var app application
			if _, err := w.Protect(ctx, "web01", rewind.Change{}, rewind.Quiesce(tt.freeze(&app, cancel), app.thaw)); err == nil {
				t.Error("a guard was made")
			}
			if app.freezes.Load() != 1 || app.thaws.Load() != 1 {
				t.Errorf("%d freezes, %d thaws, want one of each", app.freezes.Load(), app.thaws.Load())
			}
			if tt.fault == nil && tt.name != "the caller leaves" && w.sim.Count("POST", "/v1/vpgs/*/checkpoints") != 0 {
				t.Error("inserted although freeze failed")
			}
		})
	}
}

func TestAThawThatFailsIsSaidAndClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var app application
	g, err := w.Protect(t.Context(), "web01", rewind.Change{}, rewind.Quiesce(app.freeze, func(context.Context) error {
		return errors.New("scripted")
	}))
	must(t, err)
	if q := g.Record().Quiesced; q.Error == "" || !q.Held {
		t.Errorf("quiesced %+v", q)
	}
	_, err = w.Protect(t.Context(), "web01", rewind.Change{ID: "again"})
	must(t, err)
	g, err = w.Protect(t.Context(), "web01", rewind.Change{ID: "again"}, rewind.Quiesce(app.freeze, app.thaw))
	must(t, err)
	if r := g.Record(); r.Quiesced.Held || r.Consistency != rewind.CrashConsistent {
		t.Errorf("a checkpoint from before is called application-consistent: %+v", r)
	}
}

func TestSeveralQuiescedChangesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(lasting(10*time.Millisecond)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	results := make(chan error)
	const callers = 6
	for range callers {
		go func() {
			var app application
			_, err := w.Protect(ctx, "web01", rewind.Change{}, rewind.Quiesce(app.freeze, app.thaw))
			results <- err
		}()
	}
	for range callers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
