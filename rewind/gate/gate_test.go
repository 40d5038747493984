package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// guardsFunc is a source of guards made of one function.
type guardsFunc func(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error)

func (f guardsFunc) Guards(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error) {
	return f(ctx, vm, since)
}

func builtIn(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newGate(t testing.TB, guards func() (gate.Guards, error), policy gate.Policy) *gate.Gate {
	t.Helper()
	g, err := gate.New(builtIn(t), guards, policy)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// answering returns a gate that asks this function for guards.
func answering(t testing.TB, guards guardsFunc) *gate.Gate {
	t.Helper()
	return newGate(t, func() (gate.Guards, error) { return guards, nil }, gate.Policy{})
}

func none(context.Context, string, time.Duration) ([]*rewind.Guard, error) { return nil, nil }

func call(server, tool string, args map[string]any) gate.Call {
	return gate.Call{Name: catalog.Name{Server: server, Tool: tool, BuiltIn: server == ""}, Args: args}
}

func stopVM(vms ...any) gate.Call {
	return call("esxi", "powerOff", map[string]any{"name": vms})
}

func TestVerdictsThatNeedNoGuard(t *testing.T) {
	t.Parallel()
	g := newGate(t, func() (gate.Guards, error) {
		t.Error("the source of guards was opened")
		return nil, errors.New("unused")
	}, gate.Policy{})
	bash := func(line string) gate.Call { return call("", "Bash", map[string]any{"command": line}) }
	for _, tt := range []struct {
		behaviour string
		call      gate.Call
		want      gate.Decision
	}{
		{"a tool that reads", call("proxmox", "get_vms", map[string]any{}), gate.Allow},
		{"a tool that reads one machine", call("proxmox", "list_snapshots", map[string]any{"vmid": "100"}), gate.Allow},
		{"a tool that makes a recovery point", call("proxmox", "create_snapshot", map[string]any{"vmid": "100"}), gate.Allow},
		{"our own guard tool", call("zerto", "zerto_guard_before_mutate", map[string]any{"vm": "web01"}), gate.Allow},
		{"a tool that rolls back", call("proxmox", "rollback_snapshot", map[string]any{"vmid": "100"}), gate.Ask},
		{"a tool that rolls back, its server unknown", call("mine", "rollback_snapshot", map[string]any{"vmid": "100"}), gate.Ask},
		{"a local tool that writes", call("", "Write", map[string]any{"file_path": "/tmp/x"}), gate.NoOpinion},
		{"a local tool that reads", call("", "Read", map[string]any{"file_path": "/tmp/x"}), gate.NoOpinion},
		{"a tool in neither list", call("proxmox", "migrate_everything", map[string]any{"vmid": "100"}), gate.Ask},
		{"a reader of another server", call("mine", "get_vms", map[string]any{}), gate.Ask},
		{"a name that no host has", call("", "", nil), gate.Ask},
		{"a condition that makes it read", call("mcp-ansible", "ansible-task", map[string]any{"check": true}), gate.Allow},
		{"a mutating tool of an unknown server", call("mine", "stop_vm", map[string]any{"vmid": "100"}), gate.Ask},
		{"a mutating tool without target", call("esxi", "powerOff", map[string]any{}), gate.Ask},
		{"a mutating tool, arguments unknown", call("esxi", "powerOff", nil), gate.Ask},
		{"a group of machines", call("mcp-ansible", "ansible-remote-command", map[string]any{"host_pattern": "all"}), gate.Ask},
		{"a pattern", stopVM("web*"), gate.Ask},
		{"a handle that hides the machine", call("ssh-mcp", "signal-process", map[string]any{"profile": "web01", "pid": 7}), gate.Ask},
		{"the server's default machine", call("ssh-mcp", "run-command", map[string]any{"command": "x"}), gate.Ask},
		{"a test of a guard, which makes machines", call("zerto", "zerto_clone", map[string]any{"changeId": "1"}), gate.Ask},

		{"a command that reads", bash("ls -la /tmp"), gate.NoOpinion},
		{"a command that guards", bash("zerto-rewind protect web01 --action upgrade"), gate.Allow},
		{"a command that reaches a machine", bash("ssh web01 ls"), gate.Ask},
		{"no command", call("", "Bash", map[string]any{}), gate.Ask},
		{"a command in two spellings", call("", "Bash", map[string]any{"command": "ls", "command_line": "ssh web01"}), gate.Ask},
		{"another shell", call("", "PowerShell", map[string]any{"command": "ls"}), gate.Ask},
		{"a server that calls itself Bash", gate.Call{Name: catalog.Name{Tool: "Bash"}, Args: map[string]any{"command": "ls"}}, gate.Ask},
	} {
		v := g.Decide(t.Context(), tt.call)
		if v.Decision != tt.want || v.Reason == "" || v.Next != "" {
			t.Errorf("%s: %s (%s), want %s", tt.behaviour, v.Decision, v.Reason, tt.want)
		}
	}
}

func TestChangeOfTheAgentsOwnMachineNeedsItsGuardWhereThatIsAProtectedVM(t *testing.T) {
	t.Parallel()
	var asked []string
	source := func() (gate.Guards, error) {
		return guardsFunc(func(_ context.Context, vm string, _ time.Duration) ([]*rewind.Guard, error) {
			asked = append(asked, vm)
			return nil, nil
		}), nil
	}
	g := newGate(t, source, gate.Policy{LocalVM: "build01", Commands: shell.Reader{LocalVM: "build01"}})
	for tool, want := range map[string]gate.Decision{
		"Write": gate.Deny, "NotebookEdit": gate.Deny, "apply_patch": gate.Deny, "KillShell": gate.Deny,
		"Read": gate.NoOpinion, "TodoWrite": gate.NoOpinion, "Skill": gate.NoOpinion,
	} {
		v := g.Decide(t.Context(), call("", tool, map[string]any{"file_path": "/etc/hosts"}))
		if v.Decision != want || (want == gate.Deny) != cmp.Equal(v.Targets, []string{"build01"}) {
			t.Errorf("%s: %s of %v (%s), want %s", tool, v.Decision, v.Targets, v.Reason, want)
		}
	}
	if v := g.Decide(t.Context(), call("", "Bash", map[string]any{"command": "rm -rf /srv"})); v.Decision != gate.Deny {
		t.Errorf("a command: %s (%s)", v.Decision, v.Reason)
	}
	if slices.ContainsFunc(asked, func(vm string) bool { return vm != "build01" }) {
		t.Errorf("guards of %q were looked up", asked)
	}
}

func TestLaw6BrokenGateDenies(t *testing.T) {
	t.Parallel()
	broken := errors.New("no ZVM answers")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for behaviour, tt := range map[string]struct {
		ctx  context.Context
		gate *gate.Gate
	}{
		"guards cannot be had":  {t.Context(), newGate(t, func() (gate.Guards, error) { return nil, broken }, gate.Policy{})},
		"guards are nil":        {t.Context(), newGate(t, func() (gate.Guards, error) { return nil, nil }, gate.Policy{})},
		"the source panics":     {t.Context(), newGate(t, func() (gate.Guards, error) { panic("MARKER-panic") }, gate.Policy{})},
		"the look-up fails":     {t.Context(), answering(t, func(context.Context, string, time.Duration) ([]*rewind.Guard, error) { return nil, broken })},
		"the look-up panics":    {t.Context(), answering(t, func(context.Context, string, time.Duration) ([]*rewind.Guard, error) { panic("MARKER-panic") })},
		"the look-up times out": {cancelled, answering(t, func(ctx context.Context, _ string, _ time.Duration) ([]*rewind.Guard, error) { return nil, ctx.Err() })},
		"the gate is nil":       {t.Context(), nil},
		"the gate is zero":      {t.Context(), &gate.Gate{}},
		"a guard no session made": {t.Context(), answering(t, func(context.Context, string, time.Duration) ([]*rewind.Guard, error) {
			return []*rewind.Guard{nil, {}}, nil
		})},
		"one machine of two is broken": {t.Context(), answering(t, func(_ context.Context, vm string, _ time.Duration) ([]*rewind.Guard, error) {
			if vm == "web01" {
				return nil, &rewind.NotFoundError{Wanted: vm}
			}
			return nil, broken
		})},
	} {
		v := tt.gate.Decide(tt.ctx, stopVM("web01", "db01"))
		if v.Decision != gate.Deny || v.Reason == "" || v.Guards != nil {
			t.Errorf("%s: %+v, want deny with a reason", behaviour, v)
		}
		if strings.Contains(fmt.Sprintf("%+v", v), "MARKER-") {
			t.Errorf("%s: the verdict shows what panicked: %s", behaviour, v.Reason)
		}
	}
}

func TestGuardThatNoSessionMadeIsNone(t *testing.T) {
	t.Parallel()
	g := answering(t, func(context.Context, string, time.Duration) ([]*rewind.Guard, error) {
		return []*rewind.Guard{nil, {}}, nil
	})
	v := g.Decide(t.Context(), stopVM("web01"))
	if v.Decision != gate.Deny || !strings.Contains(v.Reason, "not proven") || v.Next == "" {
		t.Errorf("verdict %+v, want a denial that a guard would lift", v)
	}
}

func TestServersToolNamedAsAShellIsAsked(t *testing.T) {
	t.Parallel()
	c, err := builtIn(t).With(catalog.Entry{Server: "remote", Tool: "Bash", Command: []string{"command"}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(c, func() (gate.Guards, error) { return guardsFunc(none), nil }, gate.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if v := g.Decide(t.Context(), call("remote", "Bash", map[string]any{"command": "ls"})); v.Decision != gate.Ask {
		t.Errorf("verdict %+v, want ask: that shell runs elsewhere", v)
	}
}

func TestLaw6ZeroValuesDeny(t *testing.T) {
	t.Parallel()
	var v gate.Verdict
	if v.Decision != gate.Deny || v.Decision.String() != "deny" || gate.Decision(9).String() != "deny" {
		t.Errorf("zero verdict %q, unnamed decision %q; want deny", v.Decision, gate.Decision(9))
	}
}

func TestNewNeedsAllItsParts(t *testing.T) {
	t.Parallel()
	source := func() (gate.Guards, error) { return guardsFunc(none), nil }
	for behaviour, build := range map[string]func() (*gate.Gate, error){
		"no catalogue":   func() (*gate.Gate, error) { return gate.New(nil, source, gate.Policy{}) },
		"no guards":      func() (*gate.Gate, error) { return gate.New(builtIn(t), nil, gate.Policy{}) },
		"an age below 0": func() (*gate.Gate, error) { return gate.New(builtIn(t), source, gate.Policy{MaxAge: -1}) },
	} {
		if g, err := build(); err == nil || g != nil {
			t.Errorf("%s: %v, %v; want an error alone", behaviour, g, err)
		}
	}
}

func TestPolicyBoundsTheLookBack(t *testing.T) {
	t.Parallel()
	for policy, want := range map[time.Duration]time.Duration{0: 30 * time.Minute, time.Hour: time.Hour} {
		var since time.Duration
		source := guardsFunc(func(_ context.Context, _ string, s time.Duration) ([]*rewind.Guard, error) {
			since = s
			return nil, nil
		})
		g := newGate(t, func() (gate.Guards, error) { return source, nil }, gate.Policy{MaxAge: policy})
		if v := g.Decide(t.Context(), stopVM("web01")); v.Decision != gate.Deny || since != want {
			t.Errorf("max age %v: %s, looked back %v, want deny and %v", policy, v.Decision, since, want)
		}
	}
}

func TestDenialNamesTheCallThatHelps(t *testing.T) {
	t.Parallel()
	v := answering(t, none).Decide(t.Context(), stopVM("web01", "Web server (old) #2", "web01"))
	want := gate.Verdict{
		Class: catalog.Mutating, Targets: []string{"web01", "Web server (old) #2"},
		Next:        `zerto_guard_before_mutate {"vms":["web01","Web server (old) #2"],"action":"esxi/powerOff"}`,
		NextCommand: `zerto-rewind protect web01 'Web server (old) #2' --action esxi/powerOff`,
	}
	reason := v.Reason
	v.Reason = ""
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	for _, part := range []string{want.Next, want.NextCommand, "did not run"} {
		if !strings.Contains(reason, part) {
			t.Errorf("reason %q does not say %q", reason, part)
		}
	}
	again := answering(t, none).Decide(t.Context(), call("", "Bash", map[string]any{"command": v.NextCommand}))
	if again.Decision != gate.Allow {
		t.Errorf("the command line that the gate tells agents to run: %s (%s)", again.Decision, again.Reason)
	}
}

func TestReasonsShowNothingHiddenAndNoSecret(t *testing.T) {
	t.Parallel()
	hostile := "a\u202eb\x1b[2J\n\n" + strings.Repeat("é", 3000) + "\xff"
	failing := answering(t, func(_ context.Context, vm string, _ time.Duration) ([]*rewind.Guard, error) {
		return nil, fmt.Errorf("look up %s: %s", vm, hostile)
	})
	for _, c := range []gate.Call{
		stopVM("web01"),
		call(hostile, hostile, nil),
		call("ssh-mcp", "run-command", map[string]any{"command": "echo MARKER-secret", "profile": "u:MARKER-secret@web01"}),
		call("", "Bash", map[string]any{"command": "ssh web01 MARKER-secret"}),
	} {
		reason := failing.Decide(t.Context(), c).Reason
		if reason == "" || len(reason) > 2100 || strings.Contains(reason, "MARKER-") || strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: reason %q", c, reason)
		}
	}
}

func TestManyMachinesAreLookedUpTogetherAndEachOnce(t *testing.T) {
	t.Parallel()
	together := make(chan struct{})
	var asked atomic.Int32
	g := answering(t, func(ctx context.Context, _ string, _ time.Duration) ([]*rewind.Guard, error) {
		if asked.Add(1) == 8 {
			close(together)
		}
		select {
		case <-together:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	v := g.Decide(t.Context(), stopVM("a", "b", "c", "d", "e", "f", "g", "h", "a", "b"))
	if v.Decision != gate.Deny || len(v.Targets) != 8 || v.Next == "" {
		t.Errorf("verdict %+v, want a denial for 8 machines", v)
	}
	if n := asked.Load(); n != 8 {
		t.Errorf("%d look-ups, want 8", n)
	}
}
