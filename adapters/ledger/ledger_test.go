package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// clock is one that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)} }

// short is for tests in which somebody waits in vain.
const short = 20 * time.Millisecond

func open(t testing.TB, dir string, o ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// fresh opens a new ledger whose folder is new too.
func fresh(t testing.TB) *ledger.Ledger {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "state"), ledger.Options{ZVM: "https://zvm", Agent: "patch-bot", Human: "kim"})
}

// raw opens the file as somebody would who means no good.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func call(tool string, args map[string]any) gate.Call {
	return gate.Call{Name: catalog.Name{Server: "ssh-mcp", Tool: tool}, Args: args}
}

func TestNewLedgerIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "state")
	l := open(t, dir, ledger.Options{})
	must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict}))
	modes := map[string]string{}
	for _, name := range []string{"", "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		modes[name] = info.Mode().Perm().String()
	}
	want := map[string]string{"": "-rwx------", "ledger.db": "-rw-------", "ledger.db-wal": "-rw-------", "ledger.db-shm": "-rw-------", "ledger.lock": "-rw-------"}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
}

func TestLinkedStateFolderIsFollowed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700), os.Symlink(dir, dir+"-link"))
	must(t, open(t, dir+"-link", ledger.Options{}).Freeze(t.Context(), "kim", "x"))
	if f, err := open(t, dir, ledger.Options{}).Frozen(t.Context()); err != nil || f == nil {
		t.Errorf("frozen %v, %v: the link leads to another ledger", f, err)
	}
}

func TestLaw6LedgerThatCannotBeTrustedOrReadIsAnErrorAndIsKept(t *testing.T) {
	t.Parallel()
	for behaviour, spoil := range map[string]func(dir string) error{
		"a file stands where the folder should be": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
		"others may write into the folder": func(dir string) error { return os.Chmod(dir, 0o777) },
		"the file is a link": func(dir string) error {
			db := filepath.Join(dir, "ledger.db")
			return errors.Join(os.Rename(db, db+".real"), os.Symlink(db+".real", db))
		},
		"the file is a folder": func(dir string) error {
			db := filepath.Join(dir, "ledger.db")
			return errors.Join(os.Remove(db), os.Mkdir(db, 0o700))
		},
		"the file is no database": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ledger.db"), bytes.Repeat([]byte("no database "), 1000), 0o600)
		},
		"its first page is damaged": func(dir string) error {
			return damage(filepath.Join(dir, "ledger.db"), 0, 200)
		},
		"the tables are missing": func(dir string) error {
			db := filepath.Join(dir, "ledger.db")
			return errors.Join(os.Remove(db), rawExec(db, "PRAGMA user_version = 1"))
		},
		"a newer version wrote it": func(dir string) error {
			return rawExec(filepath.Join(dir, "ledger.db"), "PRAGMA user_version = 99")
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			must(t, open(t, dir, ledger.Options{}).Close(), spoil(dir))
			before, _ := os.ReadFile(filepath.Join(dir, "ledger.db"))
			l, err := ledger.Open(t.Context(), dir, ledger.Options{})
			if err == nil {
				_, err = l.Frozen(t.Context())
				_ = l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want one that names the file", err)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "ledger.db")); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func rawExec(path, statement string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), statement)
	return errors.Join(err, db.Close())
}

func damage(path string, from, to int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		data[i] ^= 0x5a
	}
	return os.WriteFile(path, data, 0o600)
}

func TestLaw6NewerLedgerIsToldApart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir, ledger.Options{}).Close(), rawExec(filepath.Join(dir, "ledger.db"), "PRAGMA user_version = 99"))
	if _, err := ledger.Open(t.Context(), dir, ledger.Options{}); !errors.Is(err, ledger.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
}

func TestLaw6LedgerThatSomebodyHoldsIsAnErrorAfterThePatience(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	holder := raw(t, open(t, dir, ledger.Options{}).Path())
	holder.SetMaxOpenConns(1)
	run(t, holder, "BEGIN IMMEDIATE")
	l := open(t, dir, ledger.Options{Patience: short})
	if f, err := l.Frozen(t.Context()); err != nil || f != nil {
		t.Errorf("reading: %v, %v; want that one writer does not stop readers", f, err)
	}
	if err := l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict}); err == nil {
		t.Error("a line was added while another process was adding one")
	}
	run(t, holder, "ROLLBACK")
	must(t, l.Append(t.Context(), gate.Event{Kind: gate.EventVerdict}))
}

func TestLaw6OperationsHeedTheirContext(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Frozen(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if _, err := ledger.Open(ctx, filepath.Join(t.TempDir(), "state"), ledger.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestLaw6FullDiskFailsWholeAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir, ledger.Options{}).Freeze(t.Context(), "kim", "before"))
	full := open(t, dir, ledger.Options{}.WithPragmas("max_page_count(1)"))
	var err error
	for i := range 1000 {
		if err = full.Append(t.Context(), gate.Event{Kind: gate.EventVerdict, Reason: strings.Repeat("x", 1000)}); err != nil {
			break
		}
		if i == 999 {
			t.Fatal("the disk never filled")
		}
	}
	if !strings.Contains(err.Error(), "full") {
		t.Errorf("error %v, want that the disk is full", err)
	}
	l := open(t, dir, ledger.Options{})
	if f, err := l.Frozen(t.Context()); err != nil || f == nil {
		t.Errorf("frozen %v, %v", f, err)
	}
	if v, err := l.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("verification %+v, %v", v, err)
	}
}

func TestFreezeHoldsUntilThaw(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), fresh(t)
	if thawed, err := l.Thaw(ctx, "kim"); thawed || err != nil {
		t.Errorf("thawed %t, %v; want nothing to thaw", thawed, err)
	}
	must(t, l.Freeze(ctx, "kim", "an odd night"), l.Freeze(ctx, "bo", "me too"))
	f, err := open(t, filepath.Dir(l.Path()), ledger.Options{}).Frozen(ctx)
	if err != nil || f == nil || f.By != "kim" || f.Reason != "an odd night" || f.At.IsZero() {
		t.Errorf("freeze %+v, %v; want the first one", f, err)
	}
	if thawed, err := l.Thaw(ctx, "kim"); !thawed || err != nil {
		t.Errorf("thawed %t, %v", thawed, err)
	}
	if f, err := l.Frozen(ctx); f != nil || err != nil {
		t.Errorf("freeze %+v, %v; want none", f, err)
	}
}

func TestApprovalIsSpentOnceAndOnlyOnWhatItIsFor(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), fresh(t)
	args := map[string]any{"command": "reboot"}
	digest, err := l.Digest(ctx, args)
	must(t, err)
	for _, tt := range []struct {
		behaviour string
		approval  gate.Approval
		call      gate.Call
		targets   []string
		fits      bool
	}{
		{"its machine", gate.Approval{Targets: []string{"web01"}}, call("run", args), []string{"WEB01"}, true},
		{"another machine", gate.Approval{Targets: []string{"web01"}}, call("run", args), []string{"db01"}, false},
		{"one machine more", gate.Approval{Targets: []string{"web01"}}, call("run", args), []string{"web01", "db01"}, false},
		{"one machine less", gate.Approval{Targets: []string{"web01", "db01"}}, call("run", args), []string{"db01"}, true},
		{"no machine known", gate.Approval{Targets: []string{"web01"}}, call("run", args), nil, false},
		{"another tool", gate.Approval{Targets: []string{"web01"}}, call("kill", args), []string{"web01"}, false},
		{"another server", gate.Approval{Server: "other", Targets: []string{"web01"}}, call("run", args), []string{"web01"}, false},
		{"the very call", gate.Approval{Digest: digest}, call("run", args), nil, true},
		{"other arguments", gate.Approval{Digest: digest}, call("run", map[string]any{"command": "halt"}), nil, false},
		{"arguments not known", gate.Approval{Digest: digest}, call("run", nil), nil, false},
		{"the very call on another machine", gate.Approval{Digest: digest, Targets: []string{"web01"}}, call("run", args), []string{"db01"}, false},
	} {
		tt.approval.Tool, tt.approval.By = "run", "kim"
		if tt.approval.Server == "" {
			tt.approval.Server = "ssh-mcp"
		}
		given, err := l.Approve(ctx, tt.approval, time.Hour)
		must(t, err)
		spent, err := l.Spend(ctx, tt.call, tt.targets)
		must(t, err)
		if (spent != nil) != tt.fits || tt.fits && spent.ID != given.ID {
			t.Errorf("%s: spent %+v, want it to fit: %t", tt.behaviour, spent, tt.fits)
		}
		if again, err := l.Spend(ctx, tt.call, tt.targets); again != nil || err != nil {
			t.Errorf("%s: spent twice: %+v, %v", tt.behaviour, again, err)
		}
		run(t, raw(t, l.Path()), "DELETE FROM approvals")
	}
}

func TestApprovalThatWouldFitAnythingIsRefused(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	for behaviour, a := range map[string]gate.Approval{
		"no machine and no call": {Server: "s", Tool: "t"},
		"no tool":                {Server: "s", Targets: []string{"web01"}},
		"no server":              {Tool: "t", Targets: []string{"web01"}},
	} {
		if _, err := l.Approve(t.Context(), a, time.Hour); err == nil {
			t.Errorf("%s: approved", behaviour)
		}
	}
	if _, err := l.Approve(t.Context(), gate.Approval{Server: "s", Tool: "t", Targets: []string{"web01"}}, 0); err == nil {
		t.Error("approved for no time")
	}
}

func TestApprovalLastsAsLongAsItSaysWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	for passed, fits := range map[time.Duration]bool{
		9 * time.Minute: true, 10 * time.Minute: false, -30 * time.Second: true, -time.Hour: false,
	} {
		c := newClock()
		l := open(t, filepath.Join(t.TempDir(), "state"), ledger.Options{Now: c.now})
		_, err := l.Approve(t.Context(), gate.Approval{Server: "ssh-mcp", Tool: "run", Targets: []string{"web01"}}, 10*time.Minute)
		must(t, err)
		c.at = c.at.Add(passed)
		spent, err := l.Spend(t.Context(), call("run", nil), []string{"web01"})
		if err != nil || (spent != nil) != fits {
			t.Errorf("after %v: spent %v, %v; want %t", passed, spent, err, fits)
		}
	}
}

func TestDigestTellsArgumentsApartAndNothingElse(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), fresh(t)
	digest := func(l *ledger.Ledger, args map[string]any) string {
		d, err := l.Digest(ctx, args)
		must(t, err)
		return d
	}
	one := digest(l, map[string]any{"a": "MARKER-1", "b": 2})
	if again := digest(l, map[string]any{"b": 2, "a": "MARKER-1"}); again != one {
		t.Errorf("digests %s and %s of the same arguments", one, again)
	}
	if other := digest(l, map[string]any{"a": "MARKER-2", "b": 2}); other == one {
		t.Error("one digest of two sets of arguments")
	}
	if elsewhere := digest(fresh(t), map[string]any{"a": "MARKER-1", "b": 2}); elsewhere == one {
		t.Error("the digest can be computed without the ledger's key")
	}
	if none := digest(l, nil); none != "" {
		t.Errorf("digest %q of no arguments", none)
	}
}

func TestWhatIsOpenIsListedUntilItIsClosed(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	l := open(t, filepath.Join(t.TempDir(), "state"), ledger.Options{Now: c.now})
	mount := ledger.Opened{Kind: ledger.Mount, ID: "m1", ChangeID: "c1", Command: "zerto-rewind sweep --apply"}
	test := ledger.Opened{Kind: ledger.Test, ID: "t1", ChangeID: "c1", Command: "zerto-rewind test stop --change c1", Deadline: c.at.Add(time.Hour)}
	must(t, l.Opened(ctx, mount), l.Opened(ctx, test), l.Closed(ctx, ledger.Mount, "m1"), l.Closed(ctx, ledger.Mount, "never"))
	got, err := l.StillOpen(ctx)
	must(t, err)
	test.At = c.at
	if diff := cmp.Diff([]ledger.Opened{test}, got); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

func TestPathsAreTakenLiterally(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with blank", "100%", "what?mode=memory", "a#b", "ü"} {
		dir := filepath.Join(t.TempDir(), name)
		must(t, open(t, dir, ledger.Options{}).Freeze(t.Context(), "kim", ""))
		if _, err := os.Stat(filepath.Join(dir, "ledger.db")); err != nil {
			t.Error(fmt.Errorf("%s: %w", name, err))
		}
	}
}
