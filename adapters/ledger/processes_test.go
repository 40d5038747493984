package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// inProcess has this test binary be another process that works on the ledger in that folder.
const inProcess = "LEDGER_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(inProcess); dir != "" {
		if err := work(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	processes    = 6
	linesByEach  = 10
	waitForTurns = 20 * time.Second
)

// work is what each process does at once with the others: it opens a ledger that may not be there yet, adds lines, and
// tries for the one approval and the one turn. It prints what it got.
func work(ctx context.Context, dir string) (err error) {
	l, err := ledger.Open(ctx, dir, ledger.Options{ZVM: "https://zvm", Patience: waitForTurns})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for range linesByEach {
		if err := l.Append(ctx, gate.Event{Kind: gate.EventVerdict}); err != nil {
			return err
		}
	}
	approval, err := l.Spend(ctx, call("run", nil), []string{"web01"})
	if err != nil {
		return err
	}
	if approval != nil {
		fmt.Println("approval")
	}
	started, err := l.Begin(ctx, []string{"web01"}, time.Hour, time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	if !started.Taken {
		fmt.Println("turn")
	}
	fmt.Println("change", started.ChangeID)
	return nil
}

// together runs several processes at once on the ledger in a folder, and returns how often each line was printed.
func together(t *testing.T, dir string) map[string]int {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	type result struct {
		out []byte
		err error
	}
	results := make(chan result, processes)
	for range processes {
		go func() {
			c := exec.CommandContext(t.Context(), self)
			c.Env = append(os.Environ(), inProcess+"="+dir)
			out, err := c.CombinedOutput()
			results <- result{out, err}
		}()
	}
	printed := map[string]int{}
	for range processes {
		r := <-results
		if r.err != nil {
			t.Fatalf("%v: %s", r.err, r.out)
		}
		for line := range strings.Lines(string(r.out)) {
			printed[strings.TrimSpace(line)]++
		}
	}
	return printed
}

func TestProcessesThatMeetAtANewLedgerShareIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	printed := together(t, dir)
	if printed["turn"] != 1 || printed["approval"] != 0 || len(printed) != 2 {
		t.Errorf("printed %v, want one turn and one change", printed)
	}
	v, err := open(t, dir, ledger.Options{}).Verify(t.Context())
	if err != nil || v.Lines != processes*linesByEach || len(v.Problems) > 0 {
		t.Errorf("verification %+v, %v; want %d lines", v, err, processes*linesByEach)
	}
}

func TestOfSeveralProcessesOneSpendsAnApproval(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	_, err := open(t, dir, ledger.Options{}).Approve(t.Context(), gate.Approval{Server: "ssh-mcp", Tool: "run", Targets: []string{"web01"}}, time.Hour)
	must(t, err)
	if printed := together(t, dir); printed["approval"] != 1 {
		t.Errorf("printed %v, want one approval spent", printed)
	}
}
