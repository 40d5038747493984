package rewind_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// openings is a book of what is open.
type openings struct {
	mu   sync.Mutex
	all  []rewind.Opened
	open map[string]rewind.Opened
}

func (b *openings) note(o rewind.Opened) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[string]rewind.Opened{}
	}
	if o.Closed {
		delete(b.open, string(o.Kind)+o.ID)
		return
	}
	b.all, b.open[string(o.Kind)+o.ID] = append(b.all, o), o
}

func TestLaw5_WhatIsOpenedBelongsToAChangeAndADeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0), zvmtest.WithCloneTime(0))
	var book openings
	s, err := w.With(rewind.WithOpened(book.note))
	must(t, err)
	g := w.guard(t, "web01")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r, err := s.Recover(ctx, g, nginxConf, rewind.ToFile(filepath.Join(t.TempDir(), "f")))
	must(t, err)
	_, err = s.Clone(ctx, g)
	must(t, err)
	if len(book.open) != 0 {
		t.Errorf("told to be open: %+v", book.open)
	}
	test, err := s.StartTest(ctx, g, rewind.For(2*time.Hour))
	must(t, err)
	if len(book.open) != 1 {
		t.Errorf("while the test runs %+v is told to be open", book.open)
	}
	must(t, test.Stop(ctx, rewind.TestPassed, ""))
	if len(book.open) != 0 {
		t.Errorf("told to be open: %+v", book.open)
	}
	vpg := " --change '" + g.ChangeID() + "' --vpg '" + w.local.ID() + "'"
	opened := func(kind rewind.LeftoverKind, id, command string) rewind.Opened {
		return rewind.Opened{
			Kind: kind, ID: id, ChangeID: g.ChangeID(), VPGID: zvm.VPGID(w.local.ID()), VPGName: "web-local", Command: "zerto-rewind " + command,
		}
	}
	want := []rewind.Opened{
		opened(rewind.LeftFLR, string(r.FLRSessionID), "sweep --apply"),
		opened(rewind.LeftClone, w.local.ID(), "clone abort"+vpg),
		opened(rewind.LeftTest, w.local.ID(), "test stop"+vpg),
	}
	for i, hours := range []time.Duration{1, 1, 2} {
		if left := time.Until(book.all[i].Deadline); left > hours*time.Hour || left < (hours-1)*time.Hour {
			t.Errorf("%s has to be closed in %v, want %d hours", book.all[i].Kind, left, hours)
		}
	}
	if diff := cmp.Diff(want, book.all, cmpopts.IgnoreFields(rewind.Opened{}, "Deadline")); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

// What could not be closed stays in the book, and what was not started does not.
func TestLaw5_TheBookKeepsWhatStaysOpen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, pattern string
		do              func(context.Context, *rewind.Session, *rewind.Guard) error
		open            int
	}{
		"a refused start": {"POST", "/v1/vpgs/*/FailoverTest", func(ctx context.Context, s *rewind.Session, g *rewind.Guard) error {
			_, err := s.StartTest(ctx, g)
			return err
		}, 0},
		"a refused clone": {"POST", "/v1/vpgs/*/CloneStart", func(ctx context.Context, s *rewind.Session, g *rewind.Guard) error {
			_, err := s.Clone(ctx, g)
			return err
		}, 0},
		"a refused stop": {"POST", "/v1/vpgs/*/FailoverTestStop", func(ctx context.Context, s *rewind.Session, g *rewind.Guard) error {
			test, err := s.StartTest(ctx, g)
			if err != nil {
				return err
			}
			return test.Stop(ctx, rewind.TestPassed, "")
		}, 1},
		"a refused unmount": {"DELETE", "/v1/flrs/*", func(ctx context.Context, s *rewind.Session, g *rewind.Guard) error {
			_, err := s.Stat(ctx, g, nginxConf)
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, zvmtest.WithTestTime(0))
			g := w.guard(t, "web01")
			var book openings
			s, err := w.With(rewind.WithOpened(book.note))
			must(t, err)
			w.sim.On(tt.method, tt.pattern).Always().Status(403, `{"Message":"scripted"}`)
			if err := tt.do(t.Context(), s, g); err == nil {
				t.Error("what was refused is no error")
			}
			if len(book.open) != tt.open || len(book.all) != 1 {
				t.Errorf("%+v are told to be open, want %d", book.open, tt.open)
			}
		})
	}
}

func TestAPanicInTheBookLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.With(rewind.WithOpened(func(rewind.Opened) { panic("scripted") }))
	must(t, err)
	_, err = s.Stat(t.Context(), w.guard(t, "web01"), nginxConf)
	must(t, err)
	w.nothingMounted(t)
	if _, err := w.With(rewind.WithOpened(nil)); err == nil {
		t.Error("a nil function is no error")
	}
}

// A server may answer a mount with a session that is another's: it shares one, or lies. That session is neither read nor closed.
func TestLaw5_ASessionThatWasOpenBeforeIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"the same checkpoint", "another checkpoint"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			mounted := g
			if of == "another checkpoint" {
				mounted = w.guard(t, "web01")
			}
			theirs := w.orphan(t, localPin(mounted).CheckpointID)
			w.sim.On("POST", "/v1/flrs").Status(200, strconv.Quote(strings.ToUpper(string(theirs))))
			_, err := w.Stat(t.Context(), g, nginxConf)
			if err == nil || !strings.Contains(err.Error(), "was open before") {
				t.Errorf("got %v", err)
			}
			if live := w.sim.LiveFLRSessions(); len(live) != 1 || live[0].ID != string(theirs) {
				t.Errorf("%+v are mounted, want %s", live, theirs)
			}
			if n := w.sim.Count("POST", "/v1/flrs/*/browse"); n != 0 {
				t.Errorf("%d folders of another's session were read", n)
			}
		})
	}
}

// Where tests or clones run at several VPGs of a change, ending one of them would be a guess.
func TestLaw3_WhatRunsAtSeveralVPGsIsNotEndedByAGuess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0), zvmtest.WithCloneTime(time.Hour))
	g := w.guard(t, "web01")
	var tests []*rewind.Test
	for _, vpg := range []string{"web-local", "web-dr"} {
		test, err := w.StartTest(t.Context(), g, rewind.InVPG(vpg))
		must(t, err)
		tests = append(tests, test)
	}
	var ambiguous *rewind.AmbiguousVPGError
	if _, err := w.FindTest(t.Context(), g); !errors.As(err, &ambiguous) || len(ambiguous.VPGs) != 2 {
		t.Errorf("got %v, want *AmbiguousVPGError of both", err)
	}
	for i, vpg := range []string{"web-local", "web-dr"} {
		found, err := w.FindTest(t.Context(), g, rewind.InVPG(vpg))
		must(t, err)
		if found.Record().VPGID != tests[i].Record().VPGID {
			t.Errorf("in %s found %+v", vpg, found.Record())
		}
	}
	one := w.sim.AddVPG("one", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("East")})
	two := w.sim.AddVPG("two", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("West")})
	w.sim.AddVM("db01", one, two)
	if err := w.AbortClone(t.Context(), w.guard(t, "db01")); !errors.As(err, &ambiguous) {
		t.Errorf("got %v, want *AmbiguousVPGError", err)
	}
	if n := w.sim.Count("POST", "/v1/vpgs/*/CloneAbort"); n != 0 {
		t.Errorf("%d aborts sent", n)
	}
}

func TestANilOptionOfASweepIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := newWorld(t).Sweep(t.Context(), nil); err == nil {
		t.Error("no error")
	}
}
