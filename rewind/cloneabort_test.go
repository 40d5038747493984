package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// A clone is aborted when its task was seen to end without one, whatever the abort was answered, and of nothing else the book
// is told that it is closed.
func TestLaw10_AnAbortIsBelievedWhenTheTaskHasEnded(t *testing.T) {
	t.Parallel()
	const abort = "/v1/vpgs/*/CloneAbort"
	start := func(t *testing.T, w *world, at zvm.FLRTarget) {
		t.Helper()
		_, err := w.client.StartClone(t.Context(), at.VPG, at.Checkpoint, []zvm.VMID{at.VM})
		must(t, err)
	}
	tasks := func(rows ...string) func(*testing.T, *world, zvm.FLRTarget) {
		return func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			list := "["
			for i, related := range rows {
				if i > 0 {
					list += ","
				}
				list += fmt.Sprintf(`{"TaskIdentifier":"1.%d","Type":"Clone","Status":{"State":1,"Progress":0},"Started":%q,"RelatedEntities":%s}`,
					i, tagMoment.Format(time.RFC3339), fmt.Sprintf(related, at.VPG))
			}
			w.sim.On("GET", "/v1/tasks").Status(200, list+"]")
		}
	}
	const here, somewhere = `{"Vpgs":[{"identifier":"%s"}]}`, `{"Vpgs":null,"was":"%s"}`
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, *world, zvm.FLRTarget)
		open    bool  // a *LeftOpenError is to be returned
		is      error // and what is to be matched, nil for nothing
		sent    int
		running bool
		limits  rewind.Limits
	}{
		{name: "it is being made", prepare: start, sent: 1},
		{name: "the abort does nothing", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.On("POST", abort).Status(200, "")
		}, open: true, sent: 1, running: true, limits: rewind.Limits{Abandon: time.Second}},
		{name: "the abort comes too late", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.On("POST", abort).Status(200, "")
			aborting := w.untilSeen(t, "POST", abort)
			context.AfterFunc(aborting, func() { w.sim.Advance(time.Hour) })
		}, open: true, is: rewind.ErrCloneComplete, sent: 1},
		{name: "the abort is refused", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.On("POST", abort).Status(403, `{"Message":"no"}`)
		}, open: true, is: zvm.ErrForbidden, sent: 1, running: true},
		{name: "the answer is lost after it was done", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.On("POST", abort).CutAfter()
		}, sent: 1},
		{name: "the answer is lost before it was done", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.On("POST", abort).CutBefore()
		}, open: true, is: zvm.ErrOutcomeUnknown, sent: 1, running: true, limits: rewind.Limits{Reconcile: 200 * time.Millisecond}},
		{name: "none was made", prepare: func(*testing.T, *world, zvm.FLRTarget) {}, is: rewind.ErrNoClone},
		{name: "the last one is complete", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.Advance(time.Hour)
		}, is: rewind.ErrCloneComplete},
		{name: "the last one was aborted", prepare: func(t *testing.T, w *world, at zvm.FLRTarget) {
			t.Helper()
			start(t, w, at)
			w.sim.Advance(time.Hour)
			start(t, w, at)
			must(t, w.client.AbortClone(t.Context(), at.VPG))
		}, is: rewind.ErrNoClone, sent: 1},
		{name: "one is made at another VPG", prepare: func(t *testing.T, w *world, _ zvm.FLRTarget) {
			t.Helper()
			start(t, w, elsewhere(t, w))
		}, is: rewind.ErrNoClone, running: true},
		{name: "one was made at another VPG", prepare: func(t *testing.T, w *world, _ zvm.FLRTarget) {
			t.Helper()
			start(t, w, elsewhere(t, w))
			w.sim.Advance(time.Hour)
		}, is: rewind.ErrNoClone},
		{name: "several are", prepare: tasks(here, here), is: rewind.ErrAmbiguousClone},
		{name: "the server does not say where", prepare: tasks(somewhere), is: rewind.ErrAmbiguousClone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, _ := newSharedWorld(t, zvmtest.WithCloneTime(time.Hour))
			g := w.guard(t, "web01")
			at := target(g)
			var book openings
			book.note(rewind.Opened{Kind: rewind.LeftClone, ID: string(at.VPG)})
			s, err := w.With(rewind.WithOpened(book.note), rewind.WithLimits(tt.limits))
			must(t, err)
			tt.prepare(t, w, at)
			err = s.AbortClone(t.Context(), g)
			var left *rewind.LeftOpenError
			open := errors.As(err, &left)
			if open && (left.Command == "") != (tt.is == rewind.ErrCloneComplete) { //nolint:errorlint // the table's own
				t.Errorf("%q is told to close it, of %v", left.Command, err)
			}
			if open != tt.open || tt.is != nil && !errors.Is(err, tt.is) ||
				errors.Is(err, rewind.ErrCloneComplete) != errors.Is(tt.is, rewind.ErrCloneComplete) || (err == nil) != (tt.is == nil && !tt.open) {
				t.Errorf("got %v, want one that is %v, left open %t", err, tt.is, tt.open)
			}
			if closed := len(book.open) == 0; closed != (err == nil) {
				t.Errorf("told to be closed: %t, beside %v", closed, err)
			}
			if n := w.sim.Count("POST", abort); n != tt.sent {
				t.Errorf("%d aborts sent, want %d", n, tt.sent)
			}
			running := false
			for _, task := range w.sim.Tasks() {
				running = running || task.Type == zvm.TypeClone && task.Completed.IsZero()
			}
			if running != tt.running {
				t.Errorf("a clone is being made: %t", running)
			}
		})
	}
}

// elsewhere guards a VM of a VPG of its own.
func elsewhere(t *testing.T, w *world) zvm.FLRTarget {
	t.Helper()
	w.sim.AddVM("db01", w.sim.AddVPG("other", zvmtest.VPGConfig{}))
	return target(w.guard(t, "db01"))
}
