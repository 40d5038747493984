package hookadapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

func hookOn(t *testing.T, p map[string]any, c hookadapter.Config) ran {
	t.Helper()
	c.Gate = noGuards
	return run(t.Context(), strings.NewReader(asJSON(t, p)), c)
}

// emptyLedger knows nothing and takes every record.
type emptyLedger struct{ gate.Ledger }

func (emptyLedger) Frozen(context.Context) (*gate.Freeze, error)           { return nil, nil }
func (emptyLedger) Claims(context.Context, string) ([]gate.Claim, error)   { return nil, nil }
func (emptyLedger) Append(context.Context, gate.Event) error               { return nil }
func (emptyLedger) Digest(context.Context, map[string]any) (string, error) { return "d1", nil }
func (emptyLedger) Spend(context.Context, gate.Call, []string) (*gate.Approval, error) {
	return nil, nil
}

func (emptyLedger) Consents(context.Context, gate.Call, []string) ([]gate.Consent, error) {
	return nil, nil
}

// TestDenialThatNeedsAHumanTellsHowToGetOne covers hosts whose question reaches nobody.
func TestDenialThatNeedsAHumanTellsHowToGetOne(t *testing.T) {
	t.Parallel()
	withLedger := func() (*gate.Gate, error) {
		return gate.New(builtIn(t), func() (gate.Guards, error) { return nil, errors.New("no ZVM") }, gate.Policy{
			Commands: shell.Reader{}, Ledger: func(context.Context) (gate.Ledger, error) { return emptyLedger{}, nil },
		})
	}
	for _, e := range eachEvent() {
		for _, s := range verdicts()["ask"] {
			p := e.payload(s)
			if p == nil {
				continue
			}
			r := run(t.Context(), strings.NewReader(asJSON(t, p)), hookadapter.Config{Gate: withLedger, Questions: hookadapter.QuestionsNever})
			for _, part := range []string{"needs a human", "zerto-rewind approve --server", "--call d1"} {
				if !strings.Contains(r.stdout+r.stderr, part) {
					t.Errorf("%s: %v lacks %q", e.file(), r, part)
				}
			}
		}
	}
}

func TestQuestionsOnRequest(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		for _, s := range verdicts()["ask"] {
			s.mode = "auto"
			p := e.payload(s)
			if p == nil {
				continue
			}
			said := func(q hookadapter.Questions) bool {
				r := hookOn(t, p, hookadapter.Config{Questions: q})
				return strings.Contains(r.stdout, `"ask"`)
			}
			surely, possibly := e.asks, e.asks
			if e.host == "claude" {
				surely = false // its auto mode was seen to ask nobody
			}
			if e.host == "gemini" || e.host == "copilot" && e.name == "preToolUse" {
				possibly = true
			}
			got := []bool{said(hookadapter.QuestionsNever), said(hookadapter.QuestionsWhereSure), said(hookadapter.QuestionsWherePossible)}
			if diff := cmp.Diff([]bool{false, surely, possibly}, got); diff != "" {
				t.Errorf("%s asks never, where sure, where possible (-want +got):\n%s", e.file(), diff)
			}
		}
	}
}

// TestCodexGetsNothingThatVoidsADenial covers the members after which Codex drops the decision and runs the tool.
func TestCodexGetsNothingThatVoidsADenial(t *testing.T) {
	t.Parallel()
	for verdict, samples := range verdicts() {
		for _, s := range samples {
			r := hookOn(t, codexPayload(s), hookadapter.Config{Questions: hookadapter.QuestionsWherePossible})
			if verdict == "allow" || verdict == "no opinion" {
				if r != (ran{}) {
					t.Errorf("%s: %v, want silence", verdict, r)
				}
				continue
			}
			var said map[string]map[string]string
			if err := json.Unmarshal([]byte(r.stdout), &said); err != nil {
				t.Fatalf("%s: %v: %v", verdict, r, err)
			}
			inner := said["hookSpecificOutput"]
			keys := slices.Sorted(maps.Keys(inner))
			if diff := cmp.Diff([]string{"hookEventName", "permissionDecision", "permissionDecisionReason"}, keys); diff != "" || len(said) != 1 || inner["permissionDecision"] != "deny" {
				t.Errorf("%s: %v (-want +got):\n%s", verdict, r, diff)
			}
		}
	}
}

func TestEveryDenialHasAReason(t *testing.T) {
	t.Parallel()
	for _, host := range append(hookadapter.Hosts(), "") {
		for _, reason := range []string{"", " \n\t", "why"} {
			var stdout, stderr bytes.Buffer
			code := hookadapter.Refuse(&stdout, &stderr, host, reason)
			text := strings.TrimPrefix(stderr.String(), "zerto-rewind:")
			if code != 2 || strings.TrimSpace(text) == "" {
				t.Errorf("%q, reason %q: exit %d, stderr %q", host, reason, code, stderr.String())
			}
			if (host == "cline") != (stdout.Len() > 0) {
				t.Errorf("%q: stdout %q", host, stdout.String())
			}
		}
	}
}

// TestServerThatCannotBeToldIsUnknown covers names that hosts cut, so that the end of one is a tool of several servers.
func TestServerThatCannotBeToldIsUnknown(t *testing.T) {
	t.Parallel()
	cutName := "mcp_" + strings.Repeat("s", 26) + "..." + strings.Repeat("x", 22) + "_get_vms"
	read := sample{server: "ProxmoxMCP-Plus", tool: "get_vms", args: map[string]any{}}
	for behaviour, tt := range map[string]struct {
		p     map[string]any
		reads func(ran, string) outcome
		want  outcome
	}{
		"VS Code, the server cut, a tool that changes": {
			with(vsCodePayload(sample{}), map[string]any{"tool_name": "mcp_proxmoxmcppl_delete_vm", "tool_input": map[string]any{}}), vsCodeReads, asked,
		},
		"VS Code, the server cut, a tool that reads": {
			with(vsCodePayload(sample{}), map[string]any{"tool_name": "mcp_proxmoxmcppl_get_vms", "tool_input": map[string]any{}}), vsCodeReads, asked,
		},
		"Gemini, the middle cut, with its context":    {with(geminiPayload(read), map[string]any{"tool_name": cutName}), geminiReads, proceeds},
		"Gemini, the middle cut, without context":     {with(geminiPayload(sample{}), map[string]any{"tool_name": cutName, "tool_input": map[string]any{}}), geminiReads, blocked},
		"Gemini, another server than its name claims": {with(geminiPayload(sample{server: "someone", tool: "get_vms"}), map[string]any{"tool_name": "mcp_proxmox_get_vms", "tool_input": map[string]any{}}), geminiReads, blocked},
		"Cursor, a server that is started somehow":    {with(cursorServerPayload(read), map[string]any{"command": "docker run -i proxmox-mcp"}), cursorReads(true), asked},
		"Cursor, a server at an address":              {with(cursorServerPayload(read), map[string]any{"command": nil, "url": "https://proxmox.example.com/mcp"}), cursorReads(true), asked},
		"Cursor, a program with a server's name for an argument": {
			with(cursorServerPayload(read), map[string]any{"command": "npx -y evil ProxmoxMCP-Plus"}), cursorReads(true), asked,
		},
		"Cursor, a command line with two programs": {
			with(cursorServerPayload(read), map[string]any{"command": "npx ProxmoxMCP-Plus; evil"}), cursorReads(true), asked,
		},
		"Cursor, uvx":       {with(cursorServerPayload(read), map[string]any{"command": "uvx ProxmoxMCP-Plus"}), cursorReads(true), proceeds},
		"Cursor, an option": {with(cursorServerPayload(read), map[string]any{"command": "uvx --from evil ProxmoxMCP-Plus"}), cursorReads(true), asked},
		"Cursor, our own":   {with(cursorServerPayload(sample{server: "z", tool: "zerto_guard_before_mutate", args: map[string]any{}}), map[string]any{"command": "/usr/local/bin/zerto-rewind mcp"}), cursorReads(true), proceeds},
		"Cursor, our own on Windows": {
			with(cursorServerPayload(sample{server: "z", tool: "zerto_guard_before_mutate", args: map[string]any{}}), map[string]any{"command": `C:\bin\zerto-rewind.exe mcp`}), cursorReads(true), proceeds,
		},
		"Cursor, our proxy before another": {
			with(cursorServerPayload(read), map[string]any{"command": "zerto-rewind proxy -- npx ProxmoxMCP-Plus"}), cursorReads(true), asked,
		},
	} {
		if got := tt.reads(hookOn(t, tt.p, hookadapter.Config{}), "default"); got != tt.want {
			t.Errorf("%s: read as %q, want %q: %v", behaviour, got, tt.want, hookOn(t, tt.p, hookadapter.Config{}))
		}
	}
}

// TestToolsOfTheHostItselfPass covers hosts that start the hook for every tool, whatever their settings say.
func TestToolsOfTheHostItselfPass(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		p := e.payload(sample{tool: "read_file", args: map[string]any{"filePath": "/src/main.go"}})
		if p == nil {
			continue
		}
		if r := hookOn(t, p, hookadapter.Config{}); e.reads(r, "default") != proceeds || r.exitCode != 0 {
			t.Errorf("%s: %v", e.file(), r)
		}
	}
}

// TestCursorAlwaysGetsADecision covers settings under which an empty stdout blocks.
func TestCursorAlwaysGetsADecision(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		for _, samples := range verdicts() {
			for _, s := range samples {
				p := e.payload(s)
				if e.host != "cursor" || p == nil {
					continue
				}
				var said struct{ Permission string }
				r := hookOn(t, p, hookadapter.Config{})
				if err := json.Unmarshal([]byte(r.stdout), &said); err != nil || said.Permission == "" || r.exitCode != 0 {
					t.Errorf("%s: %v", e.file(), r)
				}
			}
		}
	}
}

func TestArgumentsAsTextAreReadForEveryHost(t *testing.T) {
	t.Parallel()
	read := sample{server: "ProxmoxMCP-Plus", tool: "get_vms", args: map[string]any{}}
	for _, tt := range []struct {
		behaviour, member string
		payload           func(sample) map[string]any
		reads             func(ran, string) outcome
	}{
		{"Cursor", "tool_input", cursorServerPayload, cursorReads(true)},
		{"Copilot", "toolArgs", copilotPayload, copilotReads},
		{"Claude", "tool_input", claudePayload, claudeReads},
		{"Gemini", "tool_input", geminiPayload, geminiReads},
	} {
		for input, want := range map[string]outcome{
			`"{\"node\":\"pve1\"}"`: proceeds, `{"node":"pve1"}`: proceeds, `"{}"`: proceeds,
			`"{\"node\":"`: blocked, `"rm -rf"`: blocked, `""`: blocked, `7`: blocked, `null`: blocked, `[]`: blocked, `"[]"`: blocked,
		} {
			p := with(tt.payload(read), map[string]any{tt.member: json.RawMessage(input)})
			if r := hookOn(t, p, hookadapter.Config{}); tt.reads(r, "default") != want {
				t.Errorf("%s, %s: %v, want it %s", tt.behaviour, input, r, want)
			}
		}
	}
}

// TestNoAnswerChangesTheCall covers the races of hooks that rewrite a tool's arguments.
func TestNoAnswerChangesTheCall(t *testing.T) {
	t.Parallel()
	for _, e := range eachEvent() {
		for _, samples := range verdicts() {
			for _, s := range samples {
				p := e.payload(s)
				if p == nil {
					continue
				}
				r := hookOn(t, p, hookadapter.Config{Questions: hookadapter.QuestionsWherePossible})
				for _, member := range []string{"updatedInput", "updated_input", "modifiedArgs", "overrideInput", `"tool_input"`, "additionalContext"} {
					if strings.Contains(r.stdout, member) {
						t.Errorf("%s: %v", e.file(), r)
					}
				}
			}
		}
	}
}

func TestLargeInputs(t *testing.T) {
	t.Parallel()
	large := payload(t, map[string]any{"tool_input": map[string]any{"name": "web01", "note": strings.Repeat("x", 19<<20)}})
	if r := run(t.Context(), strings.NewReader(large), hookadapter.Config{Gate: noGuards, Deadline: time.Minute}); !strings.Contains(r.stdout, "web01") {
		t.Errorf("19 MiB: %.200s, want the verdict on web01", r)
	}
	expect(t, "more than is read", run(t.Context(), strings.NewReader(large+strings.Repeat(" ", 2<<20)),
		hookadapter.Config{Gate: noGuards, Deadline: time.Minute}), "default", blocked)
	tooLarge := payload(t, map[string]any{"tool_name": "Read", "tool_input": map[string]any{"note": strings.Repeat("x", 21<<20)}})
	expect(t, "21 MiB", run(t.Context(), strings.NewReader(tooLarge), hookadapter.Config{Gate: noGuards, Deadline: time.Minute}), "default", blocked)
}

// TestPromptThatIsAboutToShow covers the event at which an exit code does not count and silence asks.
func TestPromptThatIsAboutToShow(t *testing.T) {
	t.Parallel()
	call := func(tool string) ran {
		return hookOn(t, with(claudePayload(sample{server: "esxi", tool: tool, args: map[string]any{"name": "web01"}}),
			map[string]any{"hook_event_name": "PermissionRequest"}), hookadapter.Config{})
	}
	denied := call("powerOff")
	var said struct {
		Output struct {
			Event    string `json:"hookEventName"`
			Decision struct {
				Behaviour string `json:"behavior"`
				Message   string `json:"message"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if !oneObject(denied.stdout, &said) || denied.exitCode != 0 || said.Output.Event != "PermissionRequest" ||
		said.Output.Decision.Behaviour != "deny" || !strings.Contains(said.Output.Decision.Message, "web01") {
		t.Errorf("unguarded: %v", denied)
	}
	for _, tool := range []string{"listVMs", "brand_new"} {
		if r := call(tool); r != (ran{}) {
			t.Errorf("%s: %v, want silence, so that the person is asked", tool, r)
		}
	}
}

// TestAgentCannotTouchTheHooksSettingsUnasked covers the agent that was refused and looks for a way around.
func TestAgentCannotTouchTheHooksSettingsUnasked(t *testing.T) {
	t.Parallel()
	own := []string{"/home/u/.local/state/zerto-rewind"}
	for _, tt := range []struct {
		behaviour, tool string
		input           map[string]any
		want            outcome
	}{
		{"writes settings", "Write", map[string]any{"file_path": "/home/u/.claude/settings.json", "content": "{}"}, asked},
		{"edits local settings", "Edit", map[string]any{"file_path": ".claude/settings.local.json"}, asked},
		{"with backslashes", "Write", map[string]any{"file_path": `C:\Users\u\.claude\settings.json`}, asked},
		{"in other case", "Write", map[string]any{"file_path": "/home/u/.Claude/Settings.json"}, asked},
		{"by a detour", "Write", map[string]any{"file_path": "/home/u/.claude/x/../settings.json"}, asked},
		{"with empty steps", "Write", map[string]any{"file_path": "/home/u/.claude//./settings.json"}, asked},
		{"a list of edits", "MultiEdit", map[string]any{"edits": []any{map[string]any{"path": "/r/.cursor/hooks.json"}}}, asked},
		{"a patch", "apply_patch", map[string]any{"input": "*** Begin Patch\n*** Update File: .codex/hooks.json\n+x\n"}, asked},
		{"another host's", "Write", map[string]any{"file_path": "/r/.github/hooks/gate.json"}, asked},
		{"the ledger", "Write", map[string]any{"file_path": own[0] + "/ledger.db"}, asked},
		{"by a command", "Bash", map[string]any{"command": "echo '{}' > ~/.claude/settings.json"}, asked},
		{"removes them", "Bash", map[string]any{"command": "rm -f ~/.codeium/windsurf/hooks.json"}, asked},
		{"the ledger, by a command", "Bash", map[string]any{"command": "rm -rf " + own[0]}, asked},
		{"the ledger, by a detour", "Bash", map[string]any{"command": "rm -rf /home/u/x/../.local/state/zerto-rewind"}, asked},
		{"the ledger, from home", "Bash", map[string]any{"command": "rm -rf ~/.local/state/zerto-rewind"}, asked},
		{"the ledger, from a variable", "Bash", map[string]any{"command": `cp x "$HOME/.local/state/zerto-rewind/ledger.db"`}, asked},
		{"from the folder it runs in", "Bash", map[string]any{"command": "cp x ../../.local/state/zerto-rewind/ledger.db"}, asked},
		{"from there, by a file tool", "Write", map[string]any{"file_path": "../../.claude/settings.json"}, asked},
		{"beside what is guarded", "Bash", map[string]any{"command": "zerto-rewind protect web01 && rm -rf " + own[0]}, asked},
		{"a skill that runs commands unseen", "Write", map[string]any{"file_path": "/r/.claude/skills/x/SKILL.md"}, asked},
		{"a program of a skill", "Bash", map[string]any{"command": "python3 ~/.claude/skills/x/y.py"}, proceeds},
		{"reads them", "Read", map[string]any{"file_path": "/home/u/.claude/settings.json"}, proceeds},
		{"reads them by a command", "Bash", map[string]any{"command": "cat /home/u/.claude/settings.json"}, proceeds},
		{"writes about them", "Write", map[string]any{"file_path": "/r/README.md", "content": "Put this\ninto ~/.claude/settings.json\n"}, proceeds},
		{"a namesake", "Write", map[string]any{"file_path": "/r/settings.json", "content": "{}"}, proceeds},
	} {
		r := hookOn(t, with(claudePayload(sample{}), map[string]any{"tool_name": tt.tool, "tool_input": tt.input, "cwd": "/home/u/src/r"}), hookadapter.Config{Settings: own, Home: "/home/u"})
		expect(t, tt.behaviour, r, "default", tt.want)
	}
}
