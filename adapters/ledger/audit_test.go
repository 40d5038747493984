package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// recorded is a ledger with six lines.
func recorded(t *testing.T) *ledger.Ledger {
	t.Helper()
	l := fresh(t)
	for _, tool := range []string{"a", "b", "c", "d", "e", "f"} {
		must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict, Server: "s", Tool: tool, Decision: "deny"}))
	}
	return l
}

const unlock = "DROP TRIGGER audit_is_not_edited; DROP TRIGGER audit_is_not_cut; DROP TRIGGER audit_grows_at_its_end"

func TestChainShowsWhatWasDoneToTheRecord(t *testing.T) {
	t.Parallel()
	for behaviour, tt := range map[string]struct {
		deed string
		want []int64
	}{
		"nothing":                  {"SELECT 1", nil},
		"a line edited":            {"UPDATE audit SET line = replace(line, 'deny', 'allow') WHERE seq = 3", []int64{3}},
		"a line and its hash":      {"UPDATE audit SET line = replace(line, 'deny', 'allow'), hash = zeroblob(32) WHERE seq = 3", []int64{3, 4}},
		"a line deleted":           {"DELETE FROM audit WHERE seq = 3", []int64{3}},
		"a deleted line closed up": {"DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = -seq WHERE seq > 3; UPDATE audit SET seq = -seq - 1 WHERE seq < 0", []int64{3, 4, 5, 6}},
		"the first line deleted":   {"DELETE FROM audit WHERE seq = 1", []int64{1}},
		"two lines exchanged":      {"UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 99", []int64{2, 3, 5, 6}},
		"a line put in":            {"INSERT INTO audit VALUES (7, '{}', zeroblob(32))", []int64{7, 7}},
		"the end cut off":          {"DELETE FROM audit WHERE seq > 4", []int64{5}},
		"everything cut off":       {"DELETE FROM audit", []int64{1}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			l := recorded(t)
			run(t, raw(t, l.Path()), unlock, tt.deed)
			v, err := l.Verify(t.Context())
			must(t, err)
			var got []int64
			for _, p := range v.Problems {
				got = append(got, p.Seq)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems %+v (-want +got):\n%s", v.Problems, diff)
			}
		})
	}
}

func TestCutOffEndStaysAHole(t *testing.T) {
	t.Parallel()
	l := recorded(t)
	run(t, raw(t, l.Path()), unlock, "DELETE FROM audit WHERE seq > 4")
	must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict}))
	v, err := l.Verify(t.Context())
	if err != nil || len(v.Problems) != 1 || v.Problems[0].Seq != 5 || !strings.Contains(v.Problems[0].What, "5 to 6") {
		t.Errorf("verification %+v, %v; want that 5 and 6 are missing", v, err)
	}
}

func TestHeadKeptElsewhereShowsARecordMadeAnew(t *testing.T) {
	t.Parallel()
	l := recorded(t)
	v, err := l.Verify(t.Context())
	must(t, err)
	must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventThawed}))
	if later, err := l.Verify(t.Context(), v.Head); err != nil || len(later.Problems) > 0 || later.Lines != 7 || later.Head == v.Head {
		t.Errorf("verification %+v, %v; want a longer record that goes on from the head", later, err)
	}
	if other, err := recorded(t).Verify(t.Context(), v.Head); err != nil || len(other.Problems) != 1 {
		t.Errorf("verification %+v, %v; want that the head is of another record", other, err)
	}
}

func TestRecordIsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	l := recorded(t)
	db := raw(t, l.Path())
	for _, deed := range []string{
		"UPDATE audit SET line = ''", "DELETE FROM audit", "INSERT INTO audit VALUES (3, '', x'')", "INSERT INTO audit VALUES (-1, '', x'')",
		"INSERT OR REPLACE INTO audit VALUES (3, '', x'')",
	} {
		if _, err := db.ExecContext(t.Context(), deed); err == nil || !strings.Contains(err.Error(), "only added to") {
			t.Errorf("%s: %v", deed, err)
		}
	}
}

func TestLinesSayWhoWhatAndWhenAndNoArgument(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	dir := filepath.Join(t.TempDir(), "state")
	l := open(t, dir, ledger.Options{Now: c.now, Agent: "patch-bot", Human: "kim"})
	digest, err := l.Digest(ctx, map[string]any{"password": "MARKER-argument"})
	must(t, err, l.Append(ctx, gate.Event{Kind: gate.EventVerdict, Server: "s", Tool: "old"}))
	c.at = c.at.Add(time.Hour)
	e := gate.Event{
		Kind: gate.EventVerdict, Host: "claude", Mode: "plan", AgentID: "a", Session: "s1", CallID: "c1", Server: "s", Tool: "t", Digest: digest,
		Class: "mutating", Decision: "allow", Reason: "r", Targets: []string{"web01"}, Changes: []string{"c"}, Evidence: []string{"v/1"},
	}
	must(t, l.Append(ctx, e))
	var got []ledger.Line
	must(t, l.Lines(ctx, c.at, func(line ledger.Line) error { got = append(got, line); return nil }))
	e.Agent, e.Human = "patch-bot", "kim"
	v, err := l.Verify(ctx)
	must(t, err)
	if diff := cmp.Diff([]ledger.Line{{Seq: 2, At: c.at, Event: e, Hash: v.Head}}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	stop := errors.New("enough")
	if err := l.Lines(ctx, time.Time{}, func(ledger.Line) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want the caller's", err)
	}
	must(t, l.Close())
	data, err := os.ReadFile(filepath.Join(dir, "ledger.db"))
	if err != nil || strings.Contains(string(data), "MARKER-") {
		t.Errorf("%v: the file holds an argument", err)
	}
}

func TestRecordKeepsItsOrderWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := open(t, filepath.Join(t.TempDir(), "state"), ledger.Options{Now: c.now})
	for _, tool := range []string{"first", "second"} {
		must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict, Tool: tool}))
		c.at = c.at.Add(-24 * time.Hour)
	}
	var tools []string
	must(t, l.Lines(t.Context(), time.Time{}, func(line ledger.Line) error { tools = append(tools, line.Tool); return nil }))
	if diff := cmp.Diff([]string{"first", "second"}, tools); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if v, err := l.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("verification %+v, %v", v, err)
	}
}
