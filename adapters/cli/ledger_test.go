package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// atTerminal runs a command for a person who types an answer.
func (w *world) atTerminal(answer string, args ...string) outcome {
	w.t.Helper()
	var out, err bytes.Buffer
	code := cli.Run(w.t.Context(), cli.IO{
		In: strings.NewReader(answer + "\n"), Out: &out, Err: &err, Env: w.lookup, Operator: func() bool { return true },
	}, args)
	return outcome{code, out.String(), err.String()}
}

// stop has the hook judge a call that stops a VM.
func (w *world) stop(vm string) outcome {
	w.t.Helper()
	return w.feed(strings.NewReplacer("TOOL", "mcp__proxmox__stop_vm", "web01", vm).Replace(hookCall), "hook", "--host", "claude")
}

func TestLaw6OnlyAPersonAtATerminalApprovesAndThaws(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{
		{"approve", "--server", "s", "--tool", "t", "--target", "web01"}, {"approve", "--server", "s", "--tool", "t", "--target", "web01", "--json"}, {"thaw"},
	} {
		o := w.run(args...)
		o.want(t, 64, "only a person at a terminal")
		if o.out != "" {
			t.Errorf("%v: stdout %q", args, o.out)
		}
		w.atTerminal("no", args...).want(t, 1, "nothing was done")
		w.atTerminal("", args...).want(t, 1, "nothing was done")
	}
	for _, flag := range []string{"--yes", "--force", "--i-am-a-human-operator"} {
		w.run("approve", "--server", "s", "--tool", "t", "--target", "web01", flag).want(t, 64, "unknown flag")
		w.run("thaw", flag).want(t, 64, "unknown flag")
	}
}

func TestApprovalHasToSayWhatItIsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{
		{"--server", "s", "--tool", "t"},
		{"--server", "s", "--target", "web01"},
		{"--server", "", "--tool", "t", "--target", "web01"},
		{"--server", "s", "--tool", "t", "--target", "web01", "--ttl", "0"},
	} {
		w.atTerminal("approve", append([]string{"approve"}, args...)...).want(t, 64)
	}
}

func TestDeniedCallRunsOnceAfterItsApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	denied := w.stop("web01")
	line := regexp.MustCompile(`zerto-rewind (approve --server proxmox --tool stop_vm --call [0-9a-f]{16})`)
	explained := w.feed(strings.Replace(hookCall, "TOOL", "mcp__proxmox__stop_vm", 1), "explain", "--host", "claude")
	found := line.FindStringSubmatch(explained.out)
	if !strings.Contains(denied.out, `"deny"`) || found == nil {
		t.Fatalf("denied with %s, explained as %s", denied.out, explained.out)
	}
	o := w.atTerminal("approve", strings.Fields(found[1])...)
	o.want(t, 0, "may be unable to take it back")
	if o := w.stop("db01"); o == (outcome{}) {
		t.Errorf("another call: %+v", o)
	}
	if o := w.feed(strings.Replace(hookCall, "TOOL", "mcp__proxmox__stop_vm", 1), "explain", "--host", "claude"); !strings.Contains(o.out, "approved this one call") {
		t.Errorf("explained as %s", o.out)
	}
	if o := w.stop("web01"); o != (outcome{}) {
		t.Errorf("approved: %+v, want silence", o)
	}
	if o := w.stop("web01"); !strings.Contains(o.out, `"deny"`) {
		t.Errorf("a second time: %+v", o)
	}
}

func TestFreezeHoldsForTheHookUntilThaw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	if o := w.stop("web01"); o != (outcome{}) {
		t.Fatalf("guarded: %+v, want silence", o)
	}
	w.mustRun("freeze", "--reason", "an odd night")
	if o := w.stop("web01"); !strings.Contains(o.out, `"deny"`) || !strings.Contains(o.out, "an odd night") || !strings.Contains(o.out, "zerto-rewind thaw") {
		t.Errorf("frozen: %+v", o)
	}
	w.atTerminal("thaw", "thaw").want(t, 0)
	if o := w.stop("web01"); o != (outcome{}) {
		t.Errorf("thawed: %+v, want silence", o)
	}
	if o := w.atTerminal("thaw", "thaw"); o.code != 0 || !strings.Contains(o.out, "nothing was frozen") {
		t.Errorf("thawed again: %+v", o)
	}
}

func TestGuardOfAClosedChangeLetsNothingRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	if o := w.stop("web01"); o != (outcome{}) {
		t.Fatalf("guarded: %+v, want silence", o)
	}
	if o := w.run("close", "another"); o.code != 5 || !strings.Contains(o.err, "verify --change another") {
		t.Errorf("a change that nobody knows: %+v", o)
	}
	for range 2 {
		if out := w.mustRun("close", "c1", "--json").out; !strings.Contains(out, `"closed": true`) {
			t.Errorf("%s", out)
		}
	}
	if o := w.stop("web01"); !strings.Contains(o.out, `"deny"`) || !strings.Contains(o.out, "is over") {
		t.Errorf("closed: %+v", o)
	}
	if n := strings.Count(w.mustRun("audit", "--json").out, `"kind":"closed"`); n != 1 {
		t.Errorf("%d lines about the end, want 1", n)
	}
}

// lines returns the record, without what differs between runs.
func (w *world) lines() []string {
	w.t.Helper()
	var all []string
	for line := range strings.Lines(w.mustRun("audit", "--json").out) {
		var l struct{ Kind, Decision, Server, Tool, Agent, By, Hash string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.Hash) != 64 {
			w.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, strings.Join(strings.Fields(strings.Join([]string{l.Kind, l.Decision, l.Server, l.Tool, l.Agent}, " ")), " "))
	}
	return all
}

func TestAuditTellsWhatWasJudgedAndDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop("web01")
	w.guard()
	w.stop("web01")
	w.mustRun("freeze")
	w.atTerminal("thaw", "thaw").want(t, 0)
	w.atTerminal("approve", "approve", "--server", "s", "--tool", "t", "--target", "web01").want(t, 0)
	want := []string{
		"verdict deny proxmox stop_vm patch-bot", "guarded patch-bot", "verdict allow proxmox stop_vm patch-bot", "frozen patch-bot", "thawed patch-bot",
		"approved s t patch-bot",
	}
	if diff := cmp.Diff(want, w.lines()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if o := w.mustRun("audit"); strings.Count(o.out, "\n") != 1+len(want) {
		t.Errorf("as text:\n%s", o.out)
	}
	var v struct {
		Lines    int
		Head     string
		Problems []any
	}
	if err := json.Unmarshal([]byte(w.mustRun("audit", "verify", "--json").out), &v); err != nil || v.Lines != len(want) || v.Problems == nil {
		t.Errorf("verification %+v, %v", v, err)
	}
	w.mustRun("freeze")
	w.mustRun("audit", "verify", "--head", v.Head)
	w.run("audit", "verify", "--head", strings.Repeat("0", 64)).want(t, 1, "not what it was", "no line has the hash")
}

func (w *world) ledgerFile() string {
	return filepath.Join(w.env["ZERTO_REWIND_STATE_DIR"], "ledger.db")
}

func (w *world) stillOpen() []ledger.Opened {
	w.t.Helper()
	l, err := ledger.Open(w.t.Context(), w.env["ZERTO_REWIND_STATE_DIR"], ledger.Options{ZVM: w.env["ZVM_URL"]})
	if err != nil {
		w.t.Fatal(err)
	}
	open, err := l.StillOpen(w.t.Context())
	if err := errors.Join(err, l.Close()); err != nil {
		w.t.Fatal(err)
	}
	return open
}

func TestLaw5_WhatIsOpenIsInTheLedgerWithItsChangeAndDeadline(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.mustRun("clone", "start", "--change", "c1", "--yes")
	w.mustRun("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(t.TempDir(), "f"))
	if open := w.stillOpen(); len(open) != 0 {
		t.Errorf("what was closed is in the ledger: %+v", open)
	}
	w.mustRun("test", "start", "--change", "c1", "--yes")
	w.sim.On("DELETE", "/v1/flrs/*").Status(403, `{"Message":"scripted"}`)
	w.run("browse", "--change", "c1", "/etc").want(t, 9)
	open := w.stillOpen()
	var kinds []string
	for _, o := range open {
		kinds = append(kinds, strings.Join([]string{o.Kind, o.ChangeID, strconv.FormatBool(o.Deadline.IsZero())}, " "))
	}
	if diff := cmp.Diff([]string{"test c1 false", "mount c1 false"}, kinds); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	for _, o := range open {
		w.mustRun(append(shellWords(o.Command)[1:], map[string][]string{ledger.Test: {"--yes"}}[o.Kind]...)...)
	}
	if open := w.stillOpen(); len(open) != 0 || len(w.sim.LiveTests())+len(w.sim.LiveFLRSessions()) != 0 {
		t.Errorf("after what the ledger says was run, it holds %+v", open)
	}
}

// shellWords takes the quotes off the words of a command line that hold no blanks.
func shellWords(line string) []string { return strings.Fields(strings.ReplaceAll(line, "'", "")) }

func TestGuardThatCannotBeRecordedIsAGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Dir(w.ledgerFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.ledgerFile(), bytes.Repeat([]byte("no ledger "), 500), 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.mustRun("protect", "web01", "--action", "upgrade nginx", "--change", "c1")
	if !strings.Contains(o.err, "could not be recorded") || !strings.Contains(o.out, "task+journal") {
		t.Errorf("%+v, want a guard, and that it is not recorded", o)
	}
	dest := filepath.Join(t.TempDir(), "hosts")
	w.mustRun("recover", "--change", "c1", "/etc/hosts", "-o", dest)
	if _, err := os.Stat(dest); err != nil {
		t.Error(err)
	}
	if o := w.stop("web01"); !strings.Contains(o.out, `"deny"`) || !strings.Contains(o.out, "ledger") {
		t.Errorf("the hook without its ledger: %+v", o)
	}
}

func TestCommandsWorkWhereNothingCanBeKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t).without("ZERTO_REWIND_STATE_DIR")
	if o := w.mustRun("protect", "web01", "--action", "upgrade nginx"); strings.Contains(o.err, "ledger") {
		t.Errorf("stderr: %s", o.err)
	}
	w.run("audit").want(t, 64, "ZERTO_REWIND_STATE_DIR")
}

func TestReconcileReportsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if o := w.mustRun("reconcile"); !strings.Contains(o.out, "agree") {
		t.Errorf("nothing happened: %+v", o)
	}
	w.guard()
	w.stop("web01")
	w.mustRun("reconcile")
	w.without("ZERTO_REWIND_STATE_DIR").mustRun("protect", "web01", "--action", "elsewhere", "--change", "c2")
	w.mustRun("protect", "web01", "--action", "never done", "--change", "c3")
	w.local.LoseCheckpoint(w.local.TaggedCheckpoints()[0].ID)
	w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	w.atTerminal("approve", "approve", "--server", "proxmox", "--tool", "stop_vm", "--target", "db01").want(t, 0)
	if o := w.stop("db01"); o != (outcome{}) {
		t.Fatalf("approved: %+v, want silence", o)
	}
	o := w.run("reconcile", "--json")
	o.want(t, 3, "differ in 6 ways")
	var list struct {
		Differences []struct{ Kind, ChangeID, VPGName string }
	}
	if err := json.Unmarshal([]byte(o.out), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Differences {
		got = append(got, strings.TrimSpace(d.Kind+" "+d.ChangeID+" "+d.VPGName))
	}
	want := []string{
		"change_without_guard", "foreign_tag c2 web-local", "foreign_tag c2 web-remote", "guard_without_change c3",
		"missing_tags", "vanished_checkpoint c1 web-local",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if o := w.run("reconcile"); o.code != 3 || !strings.Contains(o.out, "vanished checkpoint") {
		t.Errorf("as text: %+v", o)
	}
}
