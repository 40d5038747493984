package rewind_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// TestLaw2_NoWriteIsSentTwice crosses every way in which the answer to a write can be lost, or be no answer, with every
// write there is.
func TestLaw2_NoWriteIsSentTwice(t *testing.T) {
	t.Parallel()
	const message = `{"Message":"scripted"}`
	type result int
	const (
		done    result = iota // the effect was found, or the one replay after a 401 succeeded
		unknown               // ErrOutcomeUnknown
		refused               // an error that says the write was not done
		either
	)
	faults := []struct {
		name string
		with func(*zvmtest.Fault)
		want result
		sent int // 401 from the bearer check is replayed once
	}{
		{"lost before it arrived", func(f *zvmtest.Fault) { f.CutBefore() }, unknown, 1},
		{"lost after it was done", func(f *zvmtest.Fault) { f.CutAfter() }, done, 1},
		{"502 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(502, "<html>Bad Gateway</html>") }, done, 1},
		{"504 before it was done", func(f *zvmtest.Fault) { f.Status(504, "<html>Time-out</html>") }, unknown, 1},
		{"302", func(f *zvmtest.Fault) { f.Redirect("/elsewhere") }, refused, 1},
		{"401 before", func(f *zvmtest.Fault) { f.Status(401, "") }, done, 2},
		// The one exception: the bearer check comes before the work, so that a 401 says that nothing was done. A server that
		// answers so afterwards gets the write twice, and no third time.
		{"401 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(401, "") }, either, 2},
		{"401 twice", func(f *zvmtest.Fault) { f.Status(401, "").Times(2) }, refused, 2},
		{"HTML 200 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(200, "<html>log in</html>") }, done, 1},
		{"HTML 200 before it was done", func(f *zvmtest.Fault) { f.Garbage("<html>log in</html>", "text/html") }, unknown, 1},
		{"truncated JSON", func(f *zvmtest.Fault) { f.Truncate(7) }, done, 1},
		{"empty 200 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(200, "") }, done, 1},
		{"500 with a message", func(f *zvmtest.Fault) { f.Status(500, message) }, refused, 1},
		{"409 with a message", func(f *zvmtest.Fault) { f.Status(409, message) }, refused, 1},
	}
	writes := []struct {
		name, method, pattern string
		run                   func(*testing.T, *world, *rewind.Guard) error
		left                  func(*world) int // what the server holds open afterwards
		untold                bool             // only the server's tasks tell of it
	}{
		{"insert", "POST", "/v1/vpgs/*/checkpoints", func(t *testing.T, w *world, _ *rewind.Guard) error {
			_, err := w.Protect(t.Context(), "solo", rewind.Change{})
			return err
		}, nil, false},
		{"mount", "POST", "/v1/flrs", func(t *testing.T, w *world, g *rewind.Guard) error {
			_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
			return err
		}, func(w *world) int { return len(w.sim.LiveFLRSessions()) }, false},
		{"test start", "POST", "/v1/vpgs/*/FailoverTest", func(t *testing.T, w *world, g *rewind.Guard) error {
			_, err := w.StartTest(t.Context(), g)
			return err
		}, nil, true},
		{"clone start", "POST", "/v1/vpgs/*/CloneStart", func(t *testing.T, w *world, g *rewind.Guard) error {
			_, err := w.Clone(t.Context(), g)
			return err
		}, nil, true},
	}
	for _, write := range writes {
		for _, fault := range faults {
			t.Run(write.name+", "+fault.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, zvmtest.WithTestTime(0), zvmtest.WithCloneTime(0))
				w.sim.AddVM("solo", w.sim.AddVPG("solo", zvmtest.VPGConfig{}))
				g := w.guard(t, "web01")
				before := w.sim.Count(write.method, write.pattern)
				fault.with(w.sim.On(write.method, write.pattern))
				err := write.run(t, w, g)
				switch {
				case fault.want == done && errors.Is(err, zvm.ErrOutcomeUnknown) && !tellsAll() && write.untold:
					// The server does not say what its tasks concern, so that nobody can know.
				case fault.want == done && err != nil:
					t.Errorf("it was done, and the error is %v", err)
				case fault.want == unknown && !errors.Is(err, zvm.ErrOutcomeUnknown):
					t.Errorf("nobody knows, and the error is %v", err)
				case fault.want == refused && (err == nil || errors.Is(err, zvm.ErrOutcomeUnknown)):
					t.Errorf("it was refused, and the error is %v", err)
				}
				if sent := w.sim.Count(write.method, write.pattern) - before; sent != fault.sent {
					t.Errorf("%d writes sent, want %d", sent, fault.sent)
				}
				if write.left != nil && fault.want != either && write.left(w) != 0 {
					t.Error("something was left open")
				}
			})
		}
	}
}

// An unmount is the one write that may be sent again: what was opened has to be closed. It is looked for first, and sent
// again only when the server still lists the session.
func TestLaw2_ALostUnmountIsLookedForFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		with func(*zvmtest.Fault)
		sent int
	}{
		{"lost after it was done", func(f *zvmtest.Fault) { f.CutAfter() }, 1},
		{"502 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(502, "<html>Bad Gateway</html>") }, 1},
		{"HTML 200 after it was done", func(f *zvmtest.Fault) { f.StatusAfter(200, "<html>log in</html>") }, 1},
		{"truncated JSON", func(f *zvmtest.Fault) { f.Truncate(7) }, 1},
		{"401 before", func(f *zvmtest.Fault) { f.Status(401, "") }, 2},
		{"lost before it arrived", func(f *zvmtest.Fault) { f.CutBefore() }, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, zvmtest.WithUnmountTime(lasting(60e6)))
			g := w.guard(t, "web01")
			tt.with(w.sim.On("DELETE", "/v1/flrs/*"))
			r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
			if err != nil || !r.Unmounted {
				t.Errorf("got %+v, %v", r, err)
			}
			w.nothingMounted(t)
			if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != tt.sent {
				t.Errorf("%d unmounts sent, want %d", sent, tt.sent)
			}
			if tt.name == "lost before it arrived" && !listedBetween(w.sim.Requests()) {
				t.Error("sent again without looking whether the session had gone")
			}
		})
	}
}

// listedBetween reports whether the sessions were listed between the two unmounts.
func listedBetween(requests []zvmtest.Request) bool {
	var order []string
	for _, r := range requests {
		if strings.HasPrefix(r.Path, "/v1/flrs") && (r.Method == "DELETE" || r.Path == "/v1/flrs") {
			order = append(order, r.Method)
		}
	}
	first := slices.Index(order, "DELETE")
	second := slices.Index(order[first+1:], "DELETE")
	return second > 0 && slices.Contains(order[first+1:first+1+second], "GET")
}
