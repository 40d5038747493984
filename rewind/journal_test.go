package rewind_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func TestGuardsAreFoundAgainByAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := map[string]string{}
	for _, id := range []string{"c1", "c2"} {
		g, err := w.Protect(t.Context(), "web01", rewind.Change{ID: id, Action: "action of " + id})
		must(t, err)
		for _, c := range g.Record().Checkpoints {
			made[id+" "+c.VPGName] = string(c.CheckpointID)
		}
	}
	_, other := connect(t, w.sim)
	guards, err := other.Guards(t.Context(), "web01", 24*time.Hour)
	must(t, err)
	found := map[string]string{}
	for _, g := range guards {
		r := g.Record()
		if r.Proof != rewind.ProofJournal || !g.Complete() || r.Agent != "patch-bot" || r.Action != "action of "+r.ChangeID {
			t.Errorf("guard %+v", r)
		}
		for _, c := range r.Checkpoints {
			found[r.ChangeID+" "+c.VPGName] = string(c.CheckpointID)
		}
	}
	if diff := cmp.Diff(made, found); diff != "" {
		t.Errorf("checkpoints (-made +found):\n%s", diff)
	}
}

func TestGuardsAreThoseOfTheVMAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("db01", w.local)
	twin := w.sim.AddVM("web01", w.local) // a second machine of that name in the VPG
	first, err := w.Protect(t.Context(), "db01", rewind.Change{ID: "db"})
	must(t, err)
	_, err = w.Protect(t.Context(), twin.ID(), rewind.Change{ID: "twin"})
	must(t, err)
	for vm, want := range map[string]string{"db01": "db", twin.ID(): "twin", w.web.ID(): ""} {
		guards, err := w.Guards(t.Context(), vm, 0)
		must(t, err)
		var got []string
		for _, g := range guards {
			got = append(got, g.ChangeID())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has guards %q, want %q", vm, got, want)
		}
	}
	if first.ChangeID() != "db" {
		t.Errorf("change id %q", first.ChangeID())
	}
}

func TestGuardsSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stopped()...)
	w.sim.Advance(time.Hour)
	for _, id := range []string{"old", "new"} {
		_, err := w.Protect(t.Context(), "web01", rewind.Change{ID: id})
		must(t, err)
		w.sim.Advance(3 * time.Hour)
	}
	for since, want := range map[time.Duration]string{0: "new old", 4 * time.Hour: "new", 23 * time.Hour: "new old", time.Hour: ""} {
		guards, err := w.Guards(t.Context(), "web01", since)
		must(t, err)
		var got []string
		for _, g := range guards {
			got = append(got, g.ChangeID())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("since %v: %q, want %q", since, got, want)
		}
	}
}

func TestAGuardWhoseJournalsAgedApartIsNotComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "c1"})
	must(t, err)
	for _, c := range made.Record().Checkpoints {
		if c.VPGName == "web-dr" {
			w.remote.LoseCheckpoint(string(c.CheckpointID))
		}
	}
	g, err := w.FindGuard(t.Context(), "c1", "web01")
	must(t, err)
	r := g.Record()
	if g.Complete() || len(r.Checkpoints) != 1 || len(r.Skipped) != 1 || !r.Skipped[0].Protecting {
		t.Errorf("complete %t, %+v", g.Complete(), r)
	}
}

func TestFindGuardWithoutAVM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("db01", w.local)
	for vm, change := range map[string]string{"web01": "only-web", "db01": "only-db"} {
		_, err := w.Protect(t.Context(), vm, rewind.Change{ID: change})
		must(t, err)
	}
	_, err := w.ProtectAll(t.Context(), []string{"web01", "db01"}, rewind.Change{ID: "both"})
	must(t, err)

	g, err := w.FindGuard(t.Context(), "only-db", "")
	must(t, err)
	if vms := g.Record().VMs; len(vms) != 1 || vms[0].Name != "db01" {
		t.Errorf("guard of %v, want db01", vms)
	}
	var ambiguous *rewind.AmbiguousVMError
	if _, err := w.FindGuard(t.Context(), "both", ""); !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 2 {
		t.Errorf("got %v, want *AmbiguousVMError of two", err)
	}
	g, err = w.FindGuard(t.Context(), "both", "web01")
	must(t, err)
	if len(g.Record().Checkpoints) != 2 {
		t.Errorf("guard %+v", g.Record())
	}
	var missing *rewind.NotFoundError
	for _, vm := range []string{"", "web01"} {
		if _, err := w.FindGuard(t.Context(), "no-such-change", vm); !errors.As(err, &missing) {
			t.Errorf("got %v, want *NotFoundError", err)
		}
	}
	if _, err := w.FindGuard(t.Context(), "only-db", "web01"); !errors.As(err, &missing) {
		t.Errorf("got %v, want *NotFoundError", err)
	}
}

func TestJournalsAreReadPieceByPiece(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stopped()...)
	old := w.sim.AddVPG("old", zvmtest.VPGConfig{History: 4 * 24 * time.Hour, JournalAge: 4 * 24 * time.Hour})
	w.sim.AddVM("long01", old)
	_, err := w.Protect(t.Context(), "long01", rewind.Change{ID: "c"})
	must(t, err)
	w.sim.Advance(3*24*time.Hour + time.Minute)
	_, err = w.FindGuard(t.Context(), "c", "long01")
	must(t, err)
	for _, r := range w.sim.Requests() {
		if r.Method == "GET" && strings.HasSuffix(r.Path, "/checkpoints") && !strings.Contains(fmt.Sprint(r.Query), "startDate") {
			t.Errorf("a whole journal was listed: %s %v", r.Path, r.Query)
		}
	}
}
