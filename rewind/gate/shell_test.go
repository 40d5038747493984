package gate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// readerFunc is a reader of command lines made of one function.
type readerFunc func(tool, line string) catalog.Result

func (f readerFunc) ReadCommand(tool, line string) catalog.Result { return f(tool, line) }

func TestCommandLineIsJudgedByWhatItDoes(t *testing.T) {
	t.Parallel()
	source := func() (gate.Guards, error) {
		return guardsFunc(func(_ context.Context, vm string, _ time.Duration) ([]*rewind.Guard, error) {
			if vm == "github.com" {
				return nil, &rewind.NotFoundError{Wanted: vm}
			}
			return nil, nil
		}), nil
	}
	g := newGate(t, source, gate.Policy{Commands: shell.Reader{}})
	for _, tt := range []struct {
		tool, line string
		want       gate.Decision
		targets    string
	}{
		{"Bash", "ls | head", gate.NoOpinion, ""},
		{"Bash", "git push && make", gate.NoOpinion, ""},
		{"Bash", `echo "ssh web01 rm -rf /"`, gate.NoOpinion, ""},
		{"Bash", "ssh web01 'df -h'", gate.Allow, ""},
		{"Bash", "zerto-rewind protect web01 --action x", gate.Allow, ""},
		{"Bash", "ssh web01 rm -rf /", gate.Deny, "web01"},
		{"Bash", "for h in web01 db01; do ssh $h reboot; done", gate.Deny, "web01,db01"},
		{"Bash", "zerto-rewind protect web01 --action x && ssh web01 reboot", gate.Deny, "web01"},
		{"Bash", "ssh web01 reboot; ssh $H reboot", gate.Deny, "web01"},
		{"Bash", "ssh $H reboot", gate.Ask, ""},
		{"Bash", "ssh github.com", gate.Ask, "github.com"},
		{"Bash", "kubectl delete pod x", gate.Ask, ""},
		{"Bash", "qm rollback 100 x", gate.Ask, ""},
		{"Bash", "ls 'x", gate.Ask, ""},
		{"PowerShell", "Get-ChildItem", gate.NoOpinion, ""},
		{"PowerShell", "Invoke-Command -ComputerName web01 { rm x }", gate.Deny, "web01"},
		{"PowerShell", "icm $h { rm x }", gate.Ask, ""},
		{"run_shell_command", "ls", gate.NoOpinion, ""},
		{"run_shell_command", "ssh web01 reboot", gate.Deny, "web01"},
		{"run_shell_command", "icm web01 { rm x }", gate.Deny, "web01"},
	} {
		v := g.Decide(t.Context(), call("", tt.tool, map[string]any{"command": tt.line}))
		if v.Decision != tt.want || strings.Join(v.Targets, ",") != tt.targets || v.Reason == "" || (v.Decision == gate.Deny) != (v.Next != "") {
			t.Errorf("%s: %s: %s of %v (%s), want %s of %s", tt.tool, tt.line, v.Decision, v.Targets, v.Reason, tt.want, tt.targets)
		}
	}
}

func TestCommandLineRunsOnceItsMachinesAreGuarded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.protect(t, "web01")
	g := newGate(t, func() (gate.Guards, error) { return s.session, nil }, gate.Policy{Commands: shell.Reader{}})
	for line, want := range map[string]gate.Decision{
		"ssh root@web01 reboot":              gate.Allow,
		"ssh web01 reboot && ssh db01 df":    gate.Allow,
		"scp x web01:/etc/x":                 gate.Allow,
		"ssh web01 reboot; ssh db01 reboot":  gate.Deny,
		"ssh web01 reboot; ssh $H reboot":    gate.Ask,
		"ssh web01 reboot; kubectl delete x": gate.Ask,
	} {
		v := g.Decide(t.Context(), call("", "Bash", map[string]any{"command": line}))
		if v.Decision != want || (want == gate.Allow) != (len(v.Guards) == 1) {
			t.Errorf("%s: %s (%s) with %d guards, want %s", line, v.Decision, v.Reason, len(v.Guards), want)
		}
	}
}

func TestShellOfAServerIsNotRead(t *testing.T) {
	t.Parallel()
	c, err := builtIn(t).With(catalog.Entry{Server: "remote", Tool: "Bash", Command: []string{"command"}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(c, func() (gate.Guards, error) { return guardsFunc(none), nil }, gate.Policy{Commands: shell.Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	if v := g.Decide(t.Context(), call("remote", "Bash", map[string]any{"command": "make"})); v.Decision != gate.Ask {
		t.Errorf("verdict %+v, want ask: that shell runs elsewhere", v)
	}
}

func TestLaw6ReaderThatKnowsNothingOrFailsLetsNothingRun(t *testing.T) {
	t.Parallel()
	for behaviour, tt := range map[string]struct {
		read readerFunc
		want gate.Decision
	}{
		"it knows nothing": {func(string, string) catalog.Result { return catalog.Result{} }, gate.Ask},
		"it is sure of a part": {func(string, string) catalog.Result {
			return catalog.Result{TargetProblem: "x", Verdict: catalog.Verdict{Class: catalog.ReadOnly}}
		}, gate.Ask},
		"it takes an open line for local": {func(string, string) catalog.Result {
			return catalog.Result{TargetProblem: "x", Verdict: catalog.Verdict{Scope: catalog.Local}}
		}, gate.Ask},
		"it panics": {func(string, string) catalog.Result { panic("MARKER-panic") }, gate.Deny},
	} {
		g := newGate(t, func() (gate.Guards, error) { return guardsFunc(none), nil }, gate.Policy{Commands: tt.read})
		v := g.Decide(t.Context(), call("", "Bash", map[string]any{"command": "make"}))
		if v.Decision != tt.want || v.Reason == "" || strings.Contains(v.Reason, "MARKER-") {
			t.Errorf("%s: %+v, want %s", behaviour, v, tt.want)
		}
	}
}
