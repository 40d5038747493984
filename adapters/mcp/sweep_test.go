package mcpadapter_test

import (
	"context"
	"errors"
	"testing"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestSweepClosesWhatAPersonAgreedTo(t *testing.T) {
	t.Parallel()
	type swept struct {
		Left     []struct{ Closed bool }
		NextStep string
	}
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		if err != nil {
			t.Fatal(err)
		}
		cp := g.Record().Checkpoints[0]
		if _, err := w.client.MountFLR(t.Context(), zvm.FLRTarget{VPG: cp.VPGID, VM: g.Record().VMs[0].ID, Checkpoint: cp.CheckpointID}); err != nil {
			t.Fatal(err)
		}
		mounted := func() int { return len(w.zvm.LiveFLRSessions()) }

		declining := connect(t, w.server(t), era, asking("decline", nil, nil))
		if r := call[swept](t, declining, "zerto_sweep", args{}); len(r.Left) != 1 || r.Left[0].Closed || mounted() != 1 {
			t.Errorf("%+v", r)
		}
		if f := refusedCall(t, declining, "zerto_sweep", args{"apply": true}); f.Code != "no_consent" || mounted() != 1 {
			t.Errorf("%+v", f)
		}
		if f := refusedCall(t, w.connect(t, era), "zerto_sweep", args{"apply": true}); f.Code != "needs_human" || f.Detail != "zerto-rewind sweep --apply" || mounted() != 1 {
			t.Errorf("%+v", f)
		}
		agreeing := connect(t, w.server(t), era, asking("accept", map[string]any{"vm": "web01"}, nil))
		if r := call[swept](t, agreeing, "zerto_sweep", args{"apply": true}); len(r.Left) != 1 || !r.Left[0].Closed || mounted() != 0 {
			t.Errorf("%+v", r)
		}
		if r := call[swept](t, agreeing, "zerto_sweep", args{"apply": true}); len(r.Left) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestSweepClosesNothingThatCameToBeLeftOpenAfterTheQuestion(t *testing.T) {
	t.Parallel()
	type swept struct {
		Left []struct {
			FLRSessionID zvm.SessionID
			Reason       string
			Closed       bool
		}
	}
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		must(t, err)
		cp := g.Record().Checkpoints[0]
		mount := func() zvm.SessionID {
			id, err := w.client.MountFLR(t.Context(), zvm.FLRTarget{VPG: cp.VPGID, VM: g.Record().VMs[0].ID, Checkpoint: cp.CheckpointID})
			must(t, err)
			return id
		}
		old := mount()
		var later zvm.SessionID
		afterTheYes := mcpadapter.WithAnswers(func(context.Context, mcpadapter.HumanAnswer) error { later = mount(); return nil })
		client := connect(t, w.server(t, afterTheYes), era, asking("accept", map[string]any{"vm": "web01"}, nil))
		r := call[swept](t, client, "zerto_sweep", args{"apply": true})
		for _, l := range r.Left {
			if agreed := l.FLRSessionID == old; l.Closed != agreed || (l.Reason == "") != agreed {
				t.Errorf("%+v, where %s alone was agreed to", l, old)
			}
		}
		if live := w.zvm.LiveFLRSessions(); len(r.Left) != 2 || len(live) != 1 || live[0].ID != string(later) {
			t.Errorf("%+v; %+v are mounted, want %s", r, live, later)
		}
	})
}

func TestAnAgentMakesAToolStricter(t *testing.T) {
	t.Parallel()
	type added struct {
		Class   catalog.Class
		Changed bool
	}
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		if f := refusedCall(t, w.connect(t, era), "zerto_add_mutating_tool", args{"server": "x", "tool": "y"}); f.Code != "needs_human" {
			t.Errorf("%+v", f)
		}
		known, err := catalog.New()
		if err != nil {
			t.Fatal(err)
		}
		client := w.connect(t, era,
			mcpadapter.WithCatalogSource(func() (*catalog.Catalog, error) { return known, nil }),
			mcpadapter.WithAddMutating(func(_ context.Context, name catalog.Name, agent string) (bool, error) {
				if agent != "patch-bot" {
					t.Errorf("agent %q", agent)
				}
				var err error
				known, err = known.With(catalog.Entry{Server: name.Server, Tool: name.Tool, Class: catalog.Mutating})
				return true, err
			}))
		if r := call[added](t, client, "zerto_add_mutating_tool", args{"tool": "mcp__x__y"}); r.Class != catalog.Mutating || !r.Changed {
			t.Errorf("%+v", r)
		}
		if r := call[checked](t, client, checkTool, args{"server": "x", "tool": "y"}); r.Class != catalog.Mutating {
			t.Errorf("%+v", r)
		}
	})
}

func TestLaw6_ACatalogueThatCannotBeReadClearsNoTool(t *testing.T) {
	t.Parallel()
	known, broken := catalog.Default, false
	client := newWorld(t).connect(t, eras[0], mcpadapter.WithCatalogSource(func() (*catalog.Catalog, error) {
		if broken {
			return nil, errors.New("damaged")
		}
		return known()
	}))
	broken = true
	refusedCall(t, client, checkTool, args{"server": "esxi", "tool": "listVMs"})
}
