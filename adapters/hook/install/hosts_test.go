package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// handlers returns the handlers that an installation writes for before a tool runs, and the matcher around each.
func handlers(t *testing.T, host string, place install.Place, program string) (all []map[string]any, matchers []string) {
	t.Helper()
	c, err := install.Plan(install.Hook{Host: host, Scope: install.User, Binary: program}, place)
	if err != nil {
		t.Fatal(err)
	}
	var settings struct{ Hooks map[string][]map[string]any }
	if err := json.Unmarshal(c.After, &settings); err != nil {
		t.Fatalf("%s: %v:\n%s", host, err, c.After)
	}
	for event, entries := range settings.Hooks {
		if event == "PostToolUse" {
			continue
		}
		for _, e := range entries {
			inner, isNested := e["hooks"].([]any)
			if !isNested {
				all, matchers = append(all, e), append(matchers, "")
				continue
			}
			for _, h := range inner {
				matcher, _ := e["matcher"].(string)
				handler, _ := h.(map[string]any)
				all, matchers = append(all, handler), append(matchers, matcher)
			}
		}
	}
	return all, matchers
}

func jsonHosts() []string {
	return slices.DeleteFunc(install.Hosts(), func(h string) bool { return h == "cline" })
}

// TestHostFailsClosedWhereItCan covers pitfalls 8, 20, 21, 22, 33 and 36.
func TestHostFailsClosedWhereItCan(t *testing.T) {
	t.Parallel()
	place := install.Place{Home: t.TempDir(), OS: "linux"}
	seconds := func(v any) float64 { n, _ := v.(float64); return n }
	for _, host := range jsonHosts() {
		all, _ := handlers(t, host, place, binary)
		for _, h := range all {
			_, async := h["async"]
			switch {
			case async:
				t.Errorf("%s: the hook cannot block: %v", host, h)
			case host == "claude" && h["onFailure"] != "block", host == "cursor" && h["failClosed"] != true:
				t.Errorf("%s: the call runs when the hook fails: %v", host, h)
			case host == "gemini" && seconds(h["timeout"]) < 15000, (host == "claude" || host == "codex") && seconds(h["timeout"]) < 15,
				(host == "copilot" || host == "vscode") && seconds(h["timeoutSec"]) < 15:
				t.Errorf("%s waits too short a time: %v", host, h)
			case (host == "cursor" || host == "windsurf") && h["timeout"] != nil:
				t.Errorf("%s: the unit of its timeout is not known: %v", host, h)
			case host != "claude" && h["onFailure"] != nil, host == "codex" && len(h) != 3:
				t.Errorf("%s: a member that it does not know: %v", host, h)
			}
		}
	}
}

// TestMatcherMeetsEveryToolThatCanChangeAMachine covers pitfalls 26, 41 and 48. Go's expressions read these as JavaScript does.
func TestMatcherMeetsEveryToolThatCanChangeAMachine(t *testing.T) {
	t.Parallel()
	place := install.Place{Home: t.TempDir(), OS: "linux"}
	exactName := regexp.MustCompile(`^[A-Za-z0-9_\- ,|]*$`)
	for host, tools := range map[string][]string{
		"claude": {"mcp__memory__create", "mcp__a-b__c", "mcp__plugin_x_y__z", "mcp__claude_ai_x__y", "Bash", "PowerShell", "Edit", "MultiEdit", "Write", "NotebookEdit"},
		"codex":  {"mcp__memory__create", "Bash", "apply_patch"},
		"gemini": {"mcp_memory_create", "run_shell_command", "write_file", "replace"},
	} {
		_, matchers := handlers(t, host, place, binary)
		for _, matcher := range matchers {
			if exactName.MatchString(matcher) {
				t.Errorf("%s: %q is a list of exact names", host, matcher)
			}
			for _, tool := range tools {
				if !regexp.MustCompile(matcher).MatchString(tool) {
					t.Errorf("%s: %q does not meet %s", host, matcher, tool)
				}
			}
		}
	}
}

// TestPathsOfWindows covers pitfall 40 and B75.
func TestPathsOfWindows(t *testing.T) {
	t.Parallel()
	place := install.Place{Home: t.TempDir(), OS: "windows"}
	const spaced = `C:\Users\First Last\bin\zerto-rewind.exe`
	all, _ := handlers(t, "claude", place, spaced)
	if diff := cmp.Diff([]any{spaced, []any{"hook", "--host", "claude"}}, []any{all[0]["command"], all[0]["args"]}); diff != "" {
		t.Errorf("Claude Code starts it without a shell (-want +got):\n%s", diff)
	}
	for _, host := range install.Hosts() {
		if host == "claude" {
			continue
		}
		for _, path := range []string{spaced, `C:\it's\zerto-rewind.exe`, `C:\a&b\zerto-rewind.exe`, `C:\50%\zerto-rewind.exe`, `C:\söder\zerto-rewind.exe`} {
			if _, err := install.Plan(install.Hook{Host: host, Scope: install.User, Binary: path}, place); err == nil {
				t.Errorf("%s: %s was written into a command line", host, path)
			}
		}
		if host == "cline" {
			continue
		}
		hook := install.Hook{Host: host, Scope: install.User, Binary: `C:\tools\zerto-rewind.exe`}
		all, _ := handlers(t, host, place, hook.Binary)
		if line, _ := all[0]["command"].(string); !strings.HasPrefix(line, "C:/tools/zerto-rewind.exe hook --host ") {
			t.Errorf("%s starts %q", host, line)
		}
		own := place
		own.Home = t.TempDir()
		c, err := install.Plan(hook, own)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(); err != nil {
			t.Fatal(err)
		}
		s, err := install.Inspect(hook, own)
		if err != nil || len(s.Entries) == 0 || len(s.Drift()) > 0 {
			t.Errorf("%s: %+v, %v", host, s, err)
		}
		if c, err = install.Plan(hook, own); err != nil || c.Changed() {
			t.Errorf("%s: a second installation changes the file, or %v", host, err)
		}
	}
}

// TestWarnings covers pitfall 25, and switches that silence a hook that is installed.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ host, settings, says string }{
		{"claude", `{"disableAllHooks": true}`, "disableAllHooks"},
		{"claude", "{\n// mine\n}", "comments"},
		{"claude", `{"disableAllHooks": false}`, ""},
		{"gemini", "{\n// mine\n}", ""},
		{"gemini", `{"hooksConfig": {"enabled": false}}`, "hooksConfig"},
		{"cursor", `{"version": 1, "hooks": {"beforeEverything": []}}`, "beforeEverything"},
		{"cursor", `{"version": 1, "hooks": {"stop": [], "afterFileEdit": []}}`, ""},
		{"copilot", `{"version": 1, "disableAllHooks": true, "hooks": {}}`, "disableAllHooks"},
		{"codex", `{"hooks": {"Interrupt": []}}`, ""},
	} {
		b := newBench(t, tt.host)
		b.write(tt.settings)
		b.install()
		s, err := install.Inspect(b.hook, b.place)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Warnings, "\n"); !strings.Contains(got, tt.says) || (got == "") != (tt.says == "") {
			t.Errorf("%s %s: warned %q", tt.host, tt.settings, got)
		}
	}
}

// TestOnlyEventsThatTheHostKnowsAreUsed: one other name makes Cursor drop the file.
func TestOnlyEventsThatTheHostKnowsAreUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "cursor")
	b.install()
	s, err := install.Inspect(b.hook, b.place)
	if err != nil || len(s.Entries) != 2 || len(s.Warnings) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	// The generic hook would run a second time for the same call.
	if strings.Contains(b.text(), "preToolUse") {
		t.Errorf("%s", b.text())
	}
}

func TestClaudeTellsAfterAToolAndBlocksNothingThen(t *testing.T) {
	t.Parallel()
	b := newBench(t, "claude")
	b.install()
	var settings struct {
		Hooks struct{ PostToolUse []map[string]any }
	}
	if err := json.Unmarshal([]byte(b.text()), &settings); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"matcher": "mcp__.*", "hooks": []any{map[string]any{
		"type": "command", "command": binary, "args": []any{"hook", "--host", "claude", "--event", "post"}, "timeout": 15.0,
	}}}}
	if diff := cmp.Diff(want, settings.Hooks.PostToolUse); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s, err := install.Inspect(b.hook, b.place)
	if err != nil || len(s.Drift()) != 0 || len(s.Entries) != 2 || s.Entries[0].After == s.Entries[1].After {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestMissingEventIsDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t, "windsurf")
	b.write(`{"hooks":{"pre_mcp_tool_use":[{"command":"` + binary + ` hook --host windsurf","show_output":true}]}}`)
	s, err := install.Inspect(b.hook, b.place)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no hook runs on pre_run_command"}, s.Drift()); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
}

func TestVariablesMoveSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "COPILOT_HOME": "/p", "XDG_CONFIG_HOME": "relative", "APPDATA": "/a",
	}
	if runtime.GOOS == "windows" {
		t.Log("these are paths of another system")
		return
	}
	place := install.Place{Home: "/home/ann", Dir: "/work", OS: "linux", Env: func(name string) string { return env[name] }}
	for host, want := range map[string]string{
		"claude": "/c/settings.json", "codex": "/x/hooks.json", "copilot": "/p/hooks/zerto-rewind.json", "cursor": "/home/ann/.cursor/hooks.json",
	} {
		if got, err := install.Path(install.Hook{Host: host, Scope: install.User}, place); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", host, got, err, want)
		}
	}
	for system, want := range map[string]string{
		"linux": "/home/ann/.config/Claude", "darwin": "/home/ann/Library/Application Support/Claude", "windows": "/a/Claude",
	} {
		place.OS = system
		c, err := install.PlanMCP("claude-desktop", install.User, install.Server{Command: binary}, place)
		if err != nil || filepath.Dir(c.Path) != want {
			t.Errorf("%s: %v, %v, want %s", system, c, err, want)
		}
	}
}

func TestFolderThatCannotBeWrittenLeavesTheFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Log("whoever runs this may write everywhere")
		return
	}
	b := newBench(t, "claude")
	b.write(`{"a":1}`)
	if err := os.Chmod(filepath.Dir(b.path), 0o500); err != nil {
		t.Fatal(err)
	}
	c, err := install.Plan(b.hook, b.place)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err == nil || b.text() != `{"a":1}` {
		t.Errorf("error %v, the file holds %q", err, b.text())
	}
}
