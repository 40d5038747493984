package rewind_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// actor is who walks through a flow: this process, or one that is about to be killed.
type actor struct {
	*rewind.Session

	guard *rewind.Guard
	dir   string // holds a file "kept" with oldConfig
}

const (
	oldConfig = "what stood here before\n"
	matrixID  = "c1"
)

// step is one request of a flow at which something goes wrong.
type step struct {
	name            string
	method, pattern string
	// after is the end of the path of the request after which the fault is laid; empty for the beginning.
	after string
	flow  func(context.Context, actor) error
	says  []string // every one stands in the error
	tries int      // how often it is sent before the client gives up
	// well are the faults after which what was asked for is done all the same. After any other it is not.
	well string
	skip int // how many such requests go well first
}

// options make a clone long enough to be aborted, where that is the step.
func (st step) options() []zvmtest.Option {
	if st.name == "clone, abort" {
		return []zvmtest.Option{zvmtest.WithCloneTime(time.Hour)}
	}
	return nil
}

func protect(ctx context.Context, a actor) error {
	_, err := a.Protect(ctx, "solo", rewind.Change{})
	return err
}

func recoverFile(ctx context.Context, a actor) error {
	_, err := a.Recover(ctx, a.guard, nginxConf, rewind.ToFile(filepath.Join(a.dir, "kept"), rewind.Replace()))
	return err
}

func recoverTree(ctx context.Context, a actor) error {
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return err
	}
	_, err = a.RecoverTree(ctx, a.guard, "/etc/nginx", root)
	return errors.Join(err, root.Close())
}

// pinAndRecover guards the VM as it is before it brings the file back.
func pinAndRecover(ctx context.Context, a actor) error {
	_, err := a.Recover(ctx, a.guard, nginxConf, rewind.ToFile(filepath.Join(a.dir, "kept"), rewind.Replace()), rewind.PinFirst())
	return err
}

func diff(ctx context.Context, a actor) error {
	_, err := a.Diff(ctx, a.guard, a.guard, "/etc/nginx")
	return err
}

func plan(ctx context.Context, a actor) error {
	_, err := a.Plan(ctx, a.guard, nginxConf, rewind.LiveContent{})
	return err
}

func openFile(ctx context.Context, a actor) error {
	f, err := a.Open(ctx, a.guard, nginxConf)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}

func runTest(ctx context.Context, a actor) error {
	running, err := a.StartTest(ctx, a.guard)
	if err != nil {
		return err
	}
	return running.Stop(ctx, rewind.TestPassed, "")
}

func makeClone(ctx context.Context, a actor) error {
	_, err := a.Clone(ctx, a.guard)
	return err
}

// leaveClone leaves a clone that takes its time, so that it is aborted.
func leaveClone(ctx context.Context, a actor) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := a.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Task.Type == zvm.TypeClone {
			cancel()
		}
	}))
	if err != nil {
		return err
	}
	return makeClone(ctx, actor{s, a.guard, a.dir})
}

// steps are the requests of every flow that can leave something behind.
var steps = []step{
	{"protect, insert", "POST", "/v1/vpgs/*/checkpoints", "", protect, []string{"VPG solo", "InsertCheckpoint"}, 1, "cut after", 0},
	{"protect, task", "GET", "/v1/tasks/*", "", protect, []string{"VPG solo", "task"}, 3, "500, cut before, cut after", 0},
	{"protect, list", "GET", "/v1/vpgs/*/checkpoints", "", protect, []string{"VPG solo", "does not list"}, 3, "cut before, cut after", 0},
	{"recover, journal", "GET", "/v1/vpgs/*/checkpoints", "", recoverFile, []string{"journal of web-local"}, 3, "", 0},
	{"recover, can mount", "GET", "/v1/vms/*/pointsInTime", "", recoverFile, nil, 3, "500, cut before, cut after", 0},
	{"recover, list before", "GET", "/v1/flrs", "", recoverFile, []string{"mounting checkpoint", "listing FLR sessions"}, 3, "", 0},
	{"recover, mount", "POST", "/v1/flrs", "", recoverFile, []string{"mounting checkpoint", "MountFLR"}, 1, "cut after", 0},
	{"recover, wait", "GET", "/v1/flrs/*", "", recoverFile, []string{"mounting checkpoint"}, 3, "500, cut before, cut after", 0},
	{"recover, browse", "POST", "/v1/flrs/*/browse", "", recoverFile, []string{"brows"}, 3, "", 0},
	{"recover, download", "POST", "/v1/flrs/*/download", "", recoverFile, []string{"downloading"}, 3, "", 0},
	{"recover, bytes", "GET", "/v1/downloads/*", "", recoverFile, []string{"downloading"}, 3, "", 0},
	{"recover, unmount", "DELETE", "/v1/flrs/*", "", recoverFile, []string{"FLR session", "left open"}, 1, "cancelled, timed out, 500, cut before, cut after", 0},
	{"recover, list after", "GET", "/v1/flrs", "", recoverFile, []string{"FLR session", "left open"}, 3, "cancelled, timed out, 500, cut before, cut after", 1},
	{"pin, insert", "POST", "/v1/vpgs/*/checkpoints", "", pinAndRecover, []string{"pinning web01 first", "InsertCheckpoint"}, 1, "cut after", 0},
	{"pin, mount", "POST", "/v1/flrs", "", pinAndRecover, []string{"mounting checkpoint", "MountFLR", "pinned first"}, 1, "cut after", 0},
	{"tree, mount", "POST", "/v1/flrs", "", recoverTree, []string{"mounting checkpoint", "MountFLR"}, 1, "cut after", 0},
	{"tree, browse", "POST", "/v1/flrs/*/browse", "", recoverTree, []string{"brows"}, 3, "", 0},
	{"tree, download", "POST", "/v1/flrs/*/download", "", recoverTree, []string{"download"}, 3, "500", 0},
	{"tree, bytes", "GET", "/v1/downloads/*", "", recoverTree, []string{"download"}, 3, "500", 0},
	{"tree, unmount", "DELETE", "/v1/flrs/*", "", recoverTree, []string{"FLR session", "left open"}, 1, "cancelled, timed out, 500, cut before, cut after", 0},
	{"diff, second mount", "POST", "/v1/flrs", "", diff, []string{"reading change", "mounting checkpoint", "MountFLR"}, 1, "cut after", 1},
	{"plan, mount", "POST", "/v1/flrs", "", plan, []string{"mounting checkpoint", "MountFLR"}, 1, "cut after", 0},
	{"plan, bytes", "GET", "/v1/downloads/*", "", plan, []string{"downloading"}, 3, "", 0},
	{"open, mount", "POST", "/v1/flrs", "", openFile, []string{"mounting checkpoint", "MountFLR"}, 1, "cut after", 0},
	{"open, bytes", "GET", "/v1/downloads/*", "", openFile, []string{"downloading"}, 3, "", 0},
	{"open, unmount", "DELETE", "/v1/flrs/*", "", openFile, []string{"FLR session", "left open"}, 1, "cancelled, timed out, 500, cut before, cut after", 0},
	{"test, look", "GET", "/v1/vpgs/*", "", runTest, []string{"reading the state of web-local"}, 3, "", 0},
	{"test, announce", "POST", "/v1/vpgs/*/checkpoints", "", runTest, []string{"starting a failover test", "announcing"}, 1, "cut after", 0},
	{"test, start", "POST", "/v1/vpgs/*/FailoverTest", "", runTest, []string{"starting a failover test", "StartFailoverTest"}, 1, "cut after", 0},
	{"test, task", "GET", "/v1/tasks/*", "/FailoverTest", runTest, []string{"starting a failover test", "task"}, 3, "500, cut before, cut after", 0},
	{"test, stop", "POST", "/v1/vpgs/*/FailoverTestStop", "", runTest, []string{"failover test", "left open"}, 1, "cut after", 0},
	{"test, task of the stop", "GET", "/v1/tasks/*", "/FailoverTestStop", runTest, []string{"failover test", "left open"}, 1, "500, cut before, cut after", 0},
	{"clone, start", "POST", "/v1/vpgs/*/CloneStart", "", makeClone, []string{"cloning", "StartClone"}, 1, "cut after", 0},
	{"clone, task", "GET", "/v1/tasks/*", "/CloneStart", makeClone, []string{"cloning", "task"}, 3, "500, cut before, cut after", 0},
	{"clone, abort", "POST", "/v1/vpgs/*/CloneAbort", "", leaveClone, []string{"cloning"}, 1, "", 0},
}

// matrixWorld is a ZVM at which one step goes wrong, whatever the profile: it has to say what its tasks concern.
type matrixWorld struct {
	*world

	guard *rewind.Guard
	laid  atomic.Bool
	ended atomic.Bool // the request that the fault met
}

func newMatrixWorld(t *testing.T, st step, fault func(*zvmtest.Fault), more ...zvmtest.Option) *matrixWorld {
	t.Helper()
	m := &matrixWorld{}
	var once sync.Once
	lay := func() {
		fault(m.sim.On(st.method, st.pattern).After(st.skip))
		m.laid.Store(true)
	}
	watch := zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if r.Fault != "" {
			m.ended.Store(true)
		}
		if st.after != "" && strings.HasSuffix(r.Path, st.after) {
			once.Do(lay)
		}
	})
	opts := append([]zvmtest.Option{
		withinReach(t), watch, zvmtest.WithTestTime(5 * time.Millisecond), zvmtest.WithCloneTime(20 * time.Millisecond),
	}, quick...)
	m.world = newWorldAt(t, zvmtest.Start(t, append(opts, more...)...))
	m.sim.AddVM("solo", m.sim.AddVPG("solo", zvmtest.VPGConfig{}))
	var err error
	m.guard, err = m.Protect(t.Context(), "web01", rewind.Change{ID: matrixID})
	must(t, err)
	must(t, m.web.Guest().WriteFile("/etc/nginx/nginx.conf", []byte("what the change made of it\n")))
	if st.after == "" {
		lay()
	}
	return m
}

// met reports whether the step was reached and the fault has acted.
func (m *matrixWorld) met() bool { return m.laid.Load() && len(m.sim.Unused()) == 0 }

// until waits for a condition, for as long as the test may run.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("it did not come about")
		}
	}
}

// endsWhenMet returns a context that ends, with an error, when the step is reached.
func (m *matrixWorld) endsWhenMet(t *testing.T, err error) context.Context {
	t.Helper()
	ctx := &endable{Context: t.Context(), done: make(chan struct{}), err: err}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for !m.met() && t.Context().Err() == nil {
			<-ticker.C
		}
		close(ctx.done)
	}()
	t.Cleanup(func() { <-watched })
	return ctx
}

// endable is a context whose deadline is an event.
type endable struct {
	context.Context

	done chan struct{}
	err  error
}

func (e *endable) Done() <-chan struct{} { return e.done }
func (e *endable) Value(any) any         { return nil }
func (e *endable) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// open lists what is open at the ZVM.
func (m *matrixWorld) open() []string {
	var open []string
	for _, f := range m.sim.LiveFLRSessions() {
		open = append(open, "FLR session "+f.ID)
	}
	for _, test := range m.sim.LiveTests() {
		open = append(open, "failover test at "+test.VPGID)
	}
	for _, x := range m.sim.Tasks() {
		if x.Type == zvm.TypeClone && x.Completed.IsZero() {
			open = append(open, "clone "+x.ID)
		}
	}
	return open
}

// destination returns a folder that a recovery may spoil.
func destination(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "kept"), []byte(oldConfig), 0o600))
	return dir
}

// unharmed fails when a file under its final name is neither what stood there before nor the whole of what was guarded.
func unharmed(t *testing.T, dir string) {
	t.Helper()
	for name, whole := range map[string][]string{"kept": {oldConfig, goodConfig}, "nginx.conf": {"", goodConfig}} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !(errors.Is(err, os.ErrNotExist) && name != "kept") {
			t.Error(err)
		}
		if string(content) != whole[0] && string(content) != whole[1] {
			t.Errorf("%s holds %q", name, content)
		}
	}
}

// TestLaw5_EveryStepEveryFault crosses every step with every way in which it can go wrong while its process lives.
func TestLaw5_EveryStepEveryFault(t *testing.T) {
	t.Parallel()
	if *profileFlag != "quick" {
		return // it chooses how its ZVM behaves
	}
	type fault struct {
		name  string
		lay   func(*zvmtest.Fault)
		ends  error         // how the caller's context ends at the step, nil when it does not
		times int           // how often it meets each time that the request is sent, 0 for a single time altogether
		limit time.Duration // the client's own on how long an answer may take to begin, 0 for its usual one
		at    []string      // the steps at which it is tried, nil for all
	}
	faults := []fault{
		{"cancelled", func(f *zvmtest.Fault) { f.Hang() }, context.Canceled, 0, 0, nil},
		{"timed out", func(f *zvmtest.Fault) { f.Hang() }, context.DeadlineExceeded, 0, 0, nil},
		{"unanswered", func(f *zvmtest.Fault) { f.Hang() }, nil, 0, time.Second, []string{
			"protect, insert", "recover, mount", "test, start", "clone, start",
		}},
		{"500", func(f *zvmtest.Fault) { f.Status(500, `{"Message":"scripted"}`) }, nil, 1, 0, nil},
		// A transport sends a read once more by itself for every connection of its pool that it finds cut.
		{"cut before", func(f *zvmtest.Fault) { f.CutBefore() }, nil, 5, 0, nil},
		{"cut after", func(f *zvmtest.Fault) { f.CutAfter() }, nil, 5, 0, nil},
	}
	for _, st := range steps {
		for _, f := range faults {
			if f.at != nil && !slices.Contains(f.at, st.name) {
				continue
			}
			t.Run(st.name+", "+f.name, func(t *testing.T) {
				t.Parallel()
				m := newMatrixWorld(t, st, func(fault *zvmtest.Fault) {
					if f.times > 0 && st.tries > 1 {
						fault.Times(f.times * st.tries)
					}
					f.lay(fault)
				}, st.options()...)
				_, s := connectWithin(t, m.sim, cmp.Or(f.limit, time.Minute), rewind.WithLimits(rewind.Limits{
					Listing: 5 * time.Second, Reconcile: 200 * time.Millisecond, Settle: 5 * time.Second,
					Mount: 5 * time.Second, Unmount: 3 * time.Second, Abandon: 2 * time.Second,
				}))
				ctx := t.Context()
				if f.ends != nil {
					ctx = m.endsWhenMet(t, f.ends)
				}
				dir := destination(t)
				err := st.flow(ctx, actor{s, m.guard, dir})
				t.Logf("%v", err)
				unharmed(t, dir)
				if !m.met() {
					t.Error("the fault was never met")
				}
				if err == nil && !slices.Contains(strings.Split(st.well, ", "), f.name) {
					t.Error("the fault was swallowed")
				}
				var left *rewind.LeftOpenError
				if errors.As(err, &left) {
					must(t, sweepAll(t, m))
				}
				if open := m.open(); len(open) > 0 {
					t.Errorf("%q are open after %v", open, err)
				}
				for _, word := range st.says {
					if err != nil && !strings.Contains(err.Error(), word) {
						t.Errorf("the error names no %q: %v", word, err)
					}
				}
			})
		}
	}
}

// sweepAll closes everything of ours, as a process does that has not seen anything yet.
func sweepAll(t *testing.T, m *matrixWorld) error {
	t.Helper()
	_, s := connect(t, m.sim)
	_, err := s.Sweep(t.Context(), rewind.Apply(), rewind.All())
	return err
}
