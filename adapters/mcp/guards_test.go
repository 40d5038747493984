package mcpadapter_test

import (
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func TestGuardsAreListedAndVerified(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era)
		type listed struct {
			Guards []struct {
				ChangeID string
				Complete bool
			}
			NextStep string
		}
		if r := call[listed](t, client, "zerto_list_guards", args{"vm": "web01"}); len(r.Guards) != 0 {
			t.Errorf("%+v", r)
		}
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{Action: "upgrade"})
		if err != nil {
			t.Fatal(err)
		}
		id := g.Record().ChangeID
		if r := call[listed](t, client, "zerto_list_guards", args{"vm": "web01", "since": "7d"}); len(r.Guards) != 1 || r.Guards[0].ChangeID != id || !r.Guards[0].Complete {
			t.Errorf("%+v", r)
		}
		type verified struct {
			Valid, Recoverable bool
			Horizon            struct{ ChangeID string }
			NextStep           string
		}
		r := call[verified](t, client, "zerto_verify_guard", args{"changeId": id, "vm": "web01"})
		if !r.Valid || !r.Recoverable || r.Horizon.ChangeID != id {
			t.Errorf("%+v", r)
		}
		w.vpg.LoseCheckpoint(string(g.Record().Checkpoints[0].CheckpointID))
		refusedCall(t, client, "zerto_verify_guard", args{"changeId": id, "vm": "web01"})
		for _, since := range []string{"yesterday", "-1h", "0", "d"} {
			if f := refusedCall(t, client, "zerto_list_guards", args{"vm": "web01", "since": since}); f.Code != "invalid_arguments" {
				t.Errorf("%s: %+v", since, f)
			}
		}
	})
}

func TestATaskIsLookedAt(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era)
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		if err != nil {
			t.Fatal(err)
		}
		type looked struct {
			TaskID, Type, State string
			Ended, Completed    bool
		}
		id := string(g.Record().Checkpoints[0].TaskID)
		if r := call[looked](t, client, "zerto_get_task", args{"taskId": id}); r.TaskID != id || !r.Ended || !r.Completed || r.State != "Completed" {
			t.Errorf("%+v", r)
		}
		if f := refusedCall(t, client, "zerto_get_task", args{"taskId": "no-such-task"}); f.Code != "not_found" {
			t.Errorf("%+v", f)
		}
	})
}

func TestACloneNamesWhatStays(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		if err != nil {
			t.Fatal(err)
		}
		client := connect(t, w.server(t), era, asking("accept", map[string]any{"vm": "web01"}, nil))
		r := call[struct{ TaskID, NextStep string }](t, client, "zerto_clone", args{"changeId": g.Record().ChangeID})
		if r.TaskID == "" || !strings.Contains(r.NextStep, "never removes") {
			t.Errorf("%+v", r)
		}
	})
}
