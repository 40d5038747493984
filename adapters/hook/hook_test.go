package hookadapter_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]map[string]any{
		"read":           {"tool_name": "mcp__proxmox__get_vms", "tool_input": map[string]any{}},
		"local":          {"tool_name": "Edit", "tool_input": map[string]any{"file_path": "/x"}},
		"checkpoint":     {"tool_name": "mcp__zerto__zerto_guard_before_mutate", "tool_input": map[string]any{"vm": "web01", "action": "x"}},
		"undo":           {"tool_name": "mcp__proxmox__rollback_snapshot", "tool_input": map[string]any{"vmid": "100"}},
		"unknown":        {"tool_name": "mcp__someone__do_it", "tool_input": map[string]any{}},
		"unknown-bypass": {"tool_name": "mcp__someone__do_it", "tool_input": map[string]any{}, "permission_mode": "bypassPermissions"},
		"unguarded":      {},
		"no-target":      {"tool_input": map[string]any{}},
		"bash-read":      {"tool_name": "Bash", "tool_input": map[string]any{"command": "ls -l"}},
		"bash-local":     {"tool_name": "Bash", "tool_input": map[string]any{"command": "go test ./... && git push"}},
		"bash-remote":    {"tool_name": "Bash", "tool_input": map[string]any{"command": "ssh web01 'systemctl status nginx | head'"}},
		"bash-unguarded": {"tool_name": "Bash", "tool_input": map[string]any{"command": "ssh web01 rm -rf /var/www"}},
		"bash-unknown":   {"tool_name": "Bash", "tool_input": map[string]any{"command": "ssh $HOST reboot"}},
		"powershell":     {"tool_name": "PowerShell", "tool_input": map[string]any{"command": "Invoke-Command -ComputerName web01 { Restart-Service x }"}},
		"other-event":    {"hook_event_name": "PostToolUse"},
		"no-tool-input":  {"tool_input": nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t.Context(), strings.NewReader(payload(t, changes)), hookadapter.Config{Host: "claude", Gate: noGuards})
			golden(t, name, r.String())
		})
	}
}

// TestQuestionIsPutOnlyWhereSomebodyAnswers covers the reports of questions that were answered with yes by nobody.
func TestQuestionIsPutOnlyWhereSomebodyAnswers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[any]outcome{
		"default": asked, "acceptEdits": asked, "plan": asked,
		"auto": blocked, "bypassPermissions": blocked, "dontAsk": blocked, "Default": blocked, "": blocked, "yolo": blocked, 7: blocked, nil: blocked,
	} {
		for _, tool := range []string{"mcp__someone__do_it", "Bash", "PowerShell", "mcp__proxmox__rollback_snapshot", "BrandNew"} {
			text, _ := mode.(string)
			stdin := payload(t, map[string]any{"permission_mode": mode, "tool_name": tool})
			r := run(t.Context(), strings.NewReader(stdin), hookadapter.Config{Host: "claude", Gate: noGuards})
			expect(t, fmt.Sprintf("%s in mode %v", tool, mode), r, text, want)
			if want == blocked && !strings.Contains(r.stdout, "needs a human") {
				t.Errorf("%s in mode %v: %q does not tell what it takes", tool, mode, r.stdout)
			}
			r = run(t.Context(), strings.NewReader(stdin), hookadapter.Config{Host: "claude", Gate: noGuards, Questions: hookadapter.QuestionsNever})
			expect(t, fmt.Sprintf("%s in mode %v where nobody is asked", tool, mode), r, text, blocked)
		}
	}
}

func TestSubagentGetsTheSameVerdict(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mcp__proxmox__get_vms", "mcp__esxi__powerOff", "mcp__someone__do_it", "Edit"} {
		c := hookadapter.Config{Gate: noGuards}
		main := run(t.Context(), strings.NewReader(payload(t, map[string]any{"tool_name": tool})), c)
		sub := run(t.Context(), strings.NewReader(payload(t, map[string]any{"tool_name": tool, "agent_id": "a1", "agent_type": "Explore"})), c)
		if sub != main {
			t.Errorf("%s: %+v for a subagent, %+v for the main thread", tool, sub, main)
		}
	}
}

func TestLaw6BrokenHookDenies(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	hang := func(context.Context, string, time.Duration) ([]*rewind.Guard, error) { <-hangs; return nil, nil }
	for behaviour, c := range map[string]hookadapter.Config{
		"no gate":               {},
		"a gate that fails":     {Gate: func() (*gate.Gate, error) { return nil, errors.New("the catalogue is torn") }},
		"a gate that is nil":    {Gate: func() (*gate.Gate, error) { return nil, nil }},
		"a gate that panics":    {Gate: func() (*gate.Gate, error) { panic("MARKER-panic") }},
		"a gate that hangs":     {Gate: func() (*gate.Gate, error) { <-hangs; return nil, nil }, Deadline: time.Second},
		"a look-up that hangs":  {Gate: gateWith(hang), Deadline: time.Second},
		"a look-up that panics": {Gate: gateWith(func(context.Context, string, time.Duration) ([]*rewind.Guard, error) { panic("MARKER-panic") })},
	} {
		r := run(t.Context(), strings.NewReader(payload(t, nil)), c)
		expect(t, behaviour, r, "bypassPermissions", blocked)
		if r.exitCode != 0 || strings.Contains(r.stdout, "MARKER-") {
			t.Errorf("%s: %+v, want Claude's own form without what panicked", behaviour, r)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, "a cancelled context", run(cancelled, strings.NewReader(payload(t, nil)), hookadapter.Config{Gate: gateWith(hang)}), "default", blocked)
}

func TestReasonStaysBelowTheHostsLimit(t *testing.T) {
	t.Parallel()
	r := run(t.Context(), strings.NewReader(payload(t, nil)), hookadapter.Config{Gate: func() (*gate.Gate, error) {
		return nil, errors.New(strings.Repeat("é", 20000))
	}})
	expect(t, "a long reason", r, "default", blocked)
	if len(r.stdout) > 10000 || strings.Contains(r.stdout, "\ufffd") {
		t.Errorf("an answer of %d bytes, want at most 10000 and no torn character", len(r.stdout))
	}
}

func TestLaw6AnswerThatNobodyTookBlocks(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	code := hookadapter.Run(t.Context(), strings.NewReader(payload(t, nil)), closedPipe{}, &stderr, hookadapter.Config{Gate: noGuards})
	if code != 2 || stderr.Len() == 0 {
		t.Errorf("stdout closed: exit %d, stderr %q; want 2 with a reason", code, stderr.String())
	}
	if code := hookadapter.Run(t.Context(), strings.NewReader(payload(t, nil)), closedPipe{}, closedPipe{}, hookadapter.Config{Gate: noGuards}); code != 2 {
		t.Errorf("both closed: exit %d, want 2", code)
	}
}

func TestGuardedCallRuns(t *testing.T) {
	t.Parallel()
	sim := zvmtest.Start(t, zvmtest.WithProfile(zvmtest.Quick), withinReach(t))
	sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{}))
	client, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	session, err := rewind.NewSession(client)
	if err != nil {
		t.Fatal(err)
	}
	c := hookadapter.Config{Gate: gateWith(session.Guards)}
	call := func() ran { return run(t.Context(), strings.NewReader(payload(t, nil)), c) }
	expect(t, "before it was guarded", call(), "default", blocked)
	if _, err := session.Protect(t.Context(), "web01", rewind.Change{Action: "power off"}); err != nil {
		t.Fatal(err)
	}
	if r := call(); r != (ran{}) {
		t.Errorf("after it was guarded: %+v, want silence", r)
	}
	beside := payload(t, map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "ssh web01 reboot; rm -rf /home/u/zr"}})
	expect(t, "a command that also changes files", run(t.Context(), strings.NewReader(beside), c), "default", proceeds)
	c.Settings = []string{"/home/u/zr"}
	expect(t, "a command that also changes our settings", run(t.Context(), strings.NewReader(beside), c), "default", asked)
	sim.Advance(time.Hour)
	r := call()
	expect(t, "an hour later", r, "default", blocked)
	if strings.Contains(r.stdout+r.stderr, "MARKER-") {
		t.Errorf("the answer shows a secret: %+v", r)
	}
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}
