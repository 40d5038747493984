package rewind_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// A checkpoint that is gone before the last VPG is tagged is not part of a proof. A sync that began and ended meanwhile
// shows in the journal alone.
func TestLaw1_ACheckpointThatIsGoneAgainBeforeTheLastIsTaggedIsNoProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.With(rewind.WithProgress(func(e rewind.Event) {
		if e.Stage == rewind.StageListed && e.VPGName == "web-local" {
			w.local.Resync()
		}
	}))
	must(t, err)
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	if err == nil && g.Complete() && len(taggedIn(w.local)) == 0 {
		t.Errorf("a complete, proven guard (%s), and the journal of web-local holds no tag", g.Record().Proof)
	}
}

// Where the server leaves bounds out of a range, a tag on the seam between two pieces of a journal is still found.
func TestLaw5_ATagOnTheSeamOfTwoPiecesOfTheJournalIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, append(stopped(), zvmtest.WithSwitch(zvmtest.DateBoundsExclusive))...)
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{History: 96 * time.Hour, JournalAge: time.Hour, CheckpointInterval: 10 * time.Minute})
	w.sim.AddVM("solo", solo)
	seam := solo.Checkpoints(time.Time{}, time.Time{})[0].Time.Truncate(time.Second).Add(24*time.Hour - 2*time.Minute)
	w.sim.Advance(seam.Sub(w.sim.Now()))
	change := rewind.Change{ID: "change-1"}
	_, err := w.Protect(t.Context(), "solo", change)
	must(t, err)
	w.sim.Advance(10 * time.Minute)
	if _, err := w.FindGuard(t.Context(), "change-1", "solo"); err != nil {
		t.Errorf("the tag stands in the journal (%q) and is not found: %v", taggedIn(solo), err)
	}
	_, err = w.Protect(t.Context(), "solo", change)
	must(t, err)
	if n := len(taggedIn(solo)); n != 1 {
		t.Errorf("%d tags for one change, want 1", n)
	}
}

// An insert that fails for good is sent once, even where the server's list does not show it and somebody else's insert
// ended minutes ago.
func TestLaw2_AFailedInsertThatIsNotListedIsNotSentForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stopped()...)
	solo := w.sim.AddVPG("solo", zvmtest.VPGConfig{})
	w.sim.AddVM("solo", solo)
	solo.RunForeignInsert("backup job") // ends at once
	w.sim.Advance(5 * time.Minute)
	s := w.tampered(t, func(r *http.Request, body []byte) []byte {
		var rows []map[string]any
		if r.URL.Path != "/v1/tasks" || json.Unmarshal(body, &rows) != nil {
			return body
		}
		var kept []map[string]any
		for _, row := range rows {
			if status, _ := row["Status"].(map[string]any); status["State"] != float64(4) {
				kept = append(kept, row)
			}
		}
		changed, _ := json.Marshal(kept)
		return changed
	})
	const scripted = 60
	for range scripted {
		w.sim.ScriptTask("InsertTaggedCP", zvmtest.TaskFailed, "the journal volume is full")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := s.Protect(ctx, "solo", rewind.Change{})
	sent := w.sim.Count("POST", "/v1/vpgs/*/checkpoints")
	if sent > 1 {
		t.Errorf("%d inserts in 3 s, until the context ended: %v", sent, err)
	}
	for range scripted - sent {
		_, _ = w.client.InsertCheckpoint(t.Context(), vpgid(solo), "x")
	}
}
