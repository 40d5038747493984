package hookadapter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func (r ran) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s\n", r.exitCode, r.stdout, r.stderr)
}

func (e event) file() string { return "host-" + e.host + "-" + e.name }

// verdicts are calls that bring every answer about, each as a server's tool and as a command line.
func verdicts() map[string][2]sample {
	return map[string][2]sample{
		"allow": {
			{server: "ProxmoxMCP-Plus", tool: "get_vms", args: map[string]any{"node": "pve1"}},
			{command: "ssh web01 'systemctl status nginx'"},
		},
		"no opinion": {{tool: "Grep", args: map[string]any{"pattern": "x"}}, {command: "go test ./... && git push"}},
		"deny": {
			{server: "esxi-mcp-server", tool: "powerOff", args: map[string]any{"name": "web01"}},
			{command: "ssh web01 rm -rf /var/www"},
		},
		"ask": {{server: "someone", tool: "do_it", args: map[string]any{}}, {command: "ssh $HOST reboot"}},
	}
}

// TestEveryHostReadsEveryVerdict holds the bytes of each answer, and what the host makes of them.
func TestEveryHostReadsEveryVerdict(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		t.Run(e.file(), func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			check := func(behaviour, stdin, mode string, c hookadapter.Config, want outcome) {
				t.Helper()
				c.Gate = noGuards
				r := run(t.Context(), strings.NewReader(stdin), c)
				if got := e.reads(r, mode); got != want {
					t.Errorf("%s: the host reads %q, want %q\n%v", behaviour, got, want, r)
				}
				expectForm(t, behaviour, r)
				if strings.Contains(r.stdout+r.stderr, "MARKER-") {
					t.Errorf("%s: the answer shows how a server was started: %v", behaviour, r)
				}
				fmt.Fprintf(&text, "== %s\n%v", behaviour, r)
			}
			for _, verdict := range slices.Sorted(maps.Keys(verdicts())) {
				for i, s := range verdicts()[verdict] {
					p := e.payload(s)
					if p == nil {
						continue
					}
					question := blocked
					if e.asks {
						question = asked
					}
					want := map[string]outcome{"allow": proceeds, "no opinion": proceeds, "deny": blocked, "ask": question}[verdict]
					if s.server != "" && e.name == "preToolUse" && e.host == "cursor" {
						want = blocked // the server is not told, so that all its tools are unknown
					}
					behaviour := verdict + [...]string{", a tool", ", a command line"}[i]
					check(behaviour, asJSON(t, p), "default", hookadapter.Config{}, want)
					if verdict == "ask" {
						check(behaviour+", where nobody is asked", asJSON(t, p), "default", hookadapter.Config{Questions: hookadapter.QuestionsNever}, blocked)
					}
				}
			}
			p := e.payload(verdicts()["allow"][0])
			if p == nil {
				p = e.payload(verdicts()["allow"][1])
			}
			broken := asJSON(t, p)
			check("broken, cut in the middle", broken[:len(broken)/2], "default", hookadapter.Config{Host: e.host}, blocked)
			check("broken, of another event", strings.ReplaceAll(broken, `"`+e.name+`"`, `"Later"`), "default", hookadapter.Config{Host: e.host}, otherEvent(e))
			golden(t, e.file(), text.String())
		})
	}
}

// otherEvent is what is right for a payload whose event does not name itself as expected: for most a block.
func otherEvent(e event) outcome {
	if e.host == "cline" || e.host == "copilot" && e.name == "preToolUse" {
		return proceeds // these tell the call by the shape of the payload
	}
	return blocked
}

// TestHookThatWasInstalledForAnotherHostAnswersTheOneThatCalls covers hosts that run the hooks of each other's settings.
func TestHookThatWasInstalledForAnotherHostAnswersTheOneThatCalls(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		for _, told := range append(hookadapter.Hosts(), "", "auto") {
			for verdict, samples := range verdicts() {
				for _, s := range samples {
					p := e.payload(s)
					if p == nil {
						continue
					}
					own := run(t.Context(), strings.NewReader(asJSON(t, p)), hookadapter.Config{Host: "auto", Gate: noGuards})
					r := run(t.Context(), strings.NewReader(asJSON(t, p)), hookadapter.Config{Host: told, Gate: noGuards})
					if verdict != "deny" && r == own {
						continue
					}
					want := e.reads(own, "default")
					if got := e.reads(r, "default"); got != want && got != blocked {
						t.Errorf("%s, installed for %q, %s: read as %q, want %q: %v", e.file(), told, verdict, got, want, r)
					}
				}
			}
		}
	}
}

// TestCrossReading shows what each host would make of an answer that was meant for another: why the host has to be
// recognised, and that the block of last resort serves all but Cline.
func TestCrossReading(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	answers := map[string]ran{}
	var stdout, stderr bytes.Buffer
	answers["last resort"] = ran{hookadapter.Refuse(&stdout, &stderr, "", "no"), stdout.String(), stderr.String()}
	stdout.Reset()
	stderr.Reset()
	answers["last resort, Cline"] = ran{hookadapter.Refuse(&stdout, &stderr, "cline", "no"), stdout.String(), stderr.String()}
	for _, e := range eachEvent() {
		p := e.payload(verdicts()["deny"][0])
		if p == nil {
			p = e.payload(verdicts()["deny"][1])
		}
		answers["denial of "+e.file()] = run(t.Context(), strings.NewReader(asJSON(t, p)), hookadapter.Config{Gate: noGuards})
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(&text, "%s blocks\n", name)
		for _, reader := range eachEvent() {
			got := reader.reads(answers[name], "default")
			if got == blocked {
				fmt.Fprintf(&text, "    %s\n", strings.TrimPrefix(reader.file(), "host-"))
				continue
			}
			if name == "denial of "+reader.file() {
				t.Errorf("%s does not block its own reader", name)
			}
			if name == "last resort" && reader.host != "cline" || name == "last resort, Cline" {
				t.Errorf("%s is read as %q by %s", name, got, reader.file())
			}
		}
	}
	golden(t, "cross-reading", text.String())
}

func TestPayloadThatNobodySendsIsBlocked(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{
		"nothing in it":             `{}`,
		"no host's marks":           `{"tool_name":"Read","tool_input":{}}`,
		"the marks of two hosts":    payload(t, map[string]any{"turn_id": "3", "agent_action_name": "pre_mcp_tool_use"}),
		"a host without an encoder": payload(t, map[string]any{"tool_name": "proxmox___get_vms"}),
		"a tool's result": asJSON(t, with(copilotPayload(sample{tool: "view", args: map[string]any{}}),
			map[string]any{"toolResult": map[string]any{"resultType": "success"}})),
		"an event after the tool": payload(t, map[string]any{"hook_event_name": "PostToolUse", "tool_name": "Read"}),
		"an action after the tool": asJSON(t, windsurfCommon("post_mcp_tool_use",
			map[string]any{"mcp_server_name": "proxmox", "mcp_tool_name": "get_vms", "mcp_tool_arguments": map[string]any{}})),
		"a server without a name": asJSON(t, windsurfCommon("pre_mcp_tool_use",
			map[string]any{"mcp_tool_name": "get_vms", "mcp_tool_arguments": map[string]any{}})),
		"a context that is no object": asJSON(t, with(geminiPayload(sample{tool: "read_file", args: map[string]any{}}),
			map[string]any{"mcp_context": "x"})),
		"a context without names": asJSON(t, with(geminiPayload(sample{tool: "read_file", args: map[string]any{}}),
			map[string]any{"mcp_context": map[string]any{}})),
	} {
		for _, told := range []string{"", "auto", "claude", "cursor"} {
			r := run(t.Context(), strings.NewReader(text), hookadapter.Config{Host: told, Gate: noGuards})
			if !plainBlock(r) {
				t.Errorf("%s, told %q: %v, want exit 2 with a reason on stderr alone", behaviour, told, r)
			}
		}
	}
	r := run(t.Context(), strings.NewReader(payload(t, nil)), hookadapter.Config{Host: "emacs", Gate: noGuards})
	if !plainBlock(r) {
		t.Errorf("a host that the hook does not know: %v", r)
	}
}

// TestClineSeesEveryRefusal covers calls whose arguments imitate the marks of other hosts: Cline reads stdout alone.
func TestClineSeesEveryRefusal(t *testing.T) {
	t.Parallel()
	unclear := map[string]any{"server_name": "esxi-mcp-server", "Server_Name": "x", "tool_name": "powerOff", "hook_event_name": "PreToolUse", "agent_action_name": "x"}
	call := map[string]any{"name": "use_mcp_tool", "input": unclear}
	head := `{"clineVersion":"4.0.0","hookName":"tool_call","tool_call":{"name":"x","input":{"hook_event_name":1,"x":"`
	for behaviour, text := range map[string]string{
		"a call that cannot be read":     asJSON(t, map[string]any{"clineVersion": "4.0.0", "hookName": "tool_call", "tool_call": call}),
		"without a name":                 asJSON(t, map[string]any{"tool_call": map[string]any{"input": unclear}}),
		"with an escaped mark":           `{"hookN\u0061me":"tool_call","tool_call":{}}`,
		"of a name that is none of ours": asJSON(t, clinePayload(sample{server: "claude_ai_esxi", tool: "listVMs", args: map[string]any{}})),
		"of another that is none":        asJSON(t, clinePayload(sample{server: "plugin_x_esxi", tool: "listVMs", args: map[string]any{}})),
		"too large":                      head + strings.Repeat("x", 21<<20) + `"}}}`,
		"cut":                            head,
	} {
		for _, told := range []string{"", "cline"} {
			r := run(t.Context(), strings.NewReader(text), hookadapter.Config{Host: told, Gate: noGuards, Deadline: time.Minute})
			if clineReads(r, "") != blocked {
				t.Errorf("%s, told %q: %v", behaviour, told, r)
			}
		}
	}
	callFirst := `{"tool_call":{"name":"x","input":{"hook_event_name":1}},"hookName":"tool_`
	if r := run(t.Context(), strings.NewReader(callFirst), hookadapter.Config{Host: "cline", Gate: noGuards}); clineReads(r, "") != blocked {
		t.Errorf("the call before the marks: %v", r)
	}
}

// TestTheSameCallIsRefusedInTheSameWords covers what is found in one of several members.
func TestTheSameCallIsRefusedInTheSameWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		payload(t, map[string]any{"tool_input": json.RawMessage(`{"a":{"b":1,"b":2},"c":{"d":1,"d":2},"e":{"f":1,"f":2}}`)}),
		payload(t, map[string]any{"tool_name": "Write", "tool_input": map[string]any{"file_path": ".claude/settings.json", "to": ".codex/hooks.json", "x": ".cursor/hooks.json"}}),
	} {
		first := run(t.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards})
		for range 20 {
			if r := run(t.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); r != first {
				t.Fatalf("%q: %v, and then %v", text, first, r)
			}
		}
	}
}

func TestMembersOfTomorrowAreNotMinded(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		s := verdicts()["no opinion"][1]
		if e.payload(s) == nil {
			s = verdicts()["allow"][0]
		}
		p := with(e.payload(s), map[string]any{"scratchpad_dir": "/tmp", "later": map[string]any{"a": []any{1}}})
		if r := run(t.Context(), strings.NewReader(asJSON(t, p)), hookadapter.Config{Gate: noGuards}); e.reads(r, "default") != proceeds {
			t.Errorf("%s: %v", e.file(), r)
		}
	}
}

func TestClaudeWithoutItsMarksIsTakenAtItsInstallersWord(t *testing.T) {
	t.Parallel()
	bare := payload(t, map[string]any{"tool_name": "Read", "tool_use_id": nil, "permission_mode": nil})
	if r := run(t.Context(), strings.NewReader(bare), hookadapter.Config{Host: "claude", Gate: noGuards}); r != (ran{}) {
		t.Errorf("told: %v, want silence", r)
	}
	if r := run(t.Context(), strings.NewReader(bare), hookadapter.Config{Gate: noGuards}); !plainBlock(r) {
		t.Errorf("guessed: %v, want a block", r)
	}
}
