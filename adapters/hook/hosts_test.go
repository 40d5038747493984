package hookadapter_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// sample is one tool call, from which each host makes a payload of its own.
type sample struct {
	server, tool string // no server for a tool of the host itself
	command      string // of the host's shell, in place of both
	args         map[string]any
	mode         string // Claude Code's, "default" if empty
}

// event is one event of one host: how it tells a call, and what it makes of the answer. Both are written from the facts
// about the host, and know nothing of the code under test.
type event struct {
	host string // as --host names it
	name string
	// payload tells the call, nil if this event has no such calls.
	payload func(s sample) map[string]any
	// reads is what the host does after a run.
	reads func(r ran, mode string) outcome
	// call is what the host runs, as this payload tells it; false if it holds none.
	call func(p map[string]any) (called, bool)
	// asks means that a question reaches a person at this event, by default.
	asks bool
}

// called is a call as it would run.
type called struct {
	text string       // server and tool in one
	name catalog.Name // or apart
	args any          // an object, or text that holds one
}

func eachEvent() []event {
	return []event{
		{"claude", "PreToolUse", claudePayload, claudeReads, claudeCall, true},
		{"codex", "PreToolUse", codexPayload, codexReads, claudeCall, false},
		{"cursor", "beforeMCPExecution", cursorServerPayload, cursorReads(true), cursorServerCall, true},
		{"cursor", "beforeShellExecution", cursorShellPayload, cursorReads(true), cursorShellCall, true},
		{"cursor", "preToolUse", cursorToolPayload, cursorReads(false), claudeCall, false},
		{"gemini", "BeforeTool", geminiPayload, geminiReads, geminiCall, false},
		{"copilot", "preToolUse", copilotPayload, copilotReads, copilotCall, false},
		{"copilot", "PreToolUse", copilotCompatPayload, eitherReads, claudeCall, false},
		{"vscode", "PreToolUse", vsCodePayload, vsCodeReads, claudeCall, true},
		{"windsurf", "pre_mcp_tool_use", windsurfServerPayload, windsurfReads, windsurfCall, false},
		{"windsurf", "pre_run_command", windsurfShellPayload, windsurfReads, windsurfCall, false},
		{"cline", "tool_call", clinePayload, clineReads, clineCall, false},
		{"cline", "PreToolUse", clineOldPayload, clineReads, clineOldCall, false},
	}
}

func asJSON(t testing.TB, p map[string]any) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func with(p map[string]any, more map[string]any) map[string]any {
	p = maps.Clone(p)
	maps.Copy(p, more)
	return p
}

// named puts a call's names together as a host does.
func (s sample) named(prefix, separator, shell string) (tool string, input map[string]any) {
	switch {
	case s.command != "":
		return shell, map[string]any{"command": s.command}
	case s.server == "":
		return s.tool, s.args
	}
	return prefix + s.server + separator + s.tool, s.args
}

func (s sample) permissionMode() string {
	if s.mode == "" {
		return "default"
	}
	return s.mode
}

func claudePayload(s sample) map[string]any {
	tool, input := s.named("mcp__", "__", "Bash")
	return map[string]any{
		"session_id": "5f0c", "transcript_path": "/home/u/t.jsonl", "cwd": "/home/u", "permission_mode": s.permissionMode(),
		"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_01",
	}
}

func codexPayload(s sample) map[string]any {
	return with(claudePayload(s), map[string]any{"turn_id": "7", "model": "m"})
}

func cursorCommon(event string) map[string]any {
	return map[string]any{
		"conversation_id": "c1", "generation_id": "g1", "model": "m", "hook_event_name": event, "cursor_version": "3.9.16",
		"workspace_roots": []any{"/home/u"}, "user_email": "u@example.com", "transcript_path": nil,
	}
}

func cursorServerPayload(s sample) map[string]any {
	if s.server == "" {
		return nil
	}
	input, _ := json.Marshal(s.args)
	return with(cursorCommon("beforeMCPExecution"), map[string]any{
		"tool_name": s.tool, "tool_input": string(input), "command": "npx -y @someone/" + s.server + "@1.2.3",
	})
}

func cursorShellPayload(s sample) map[string]any {
	if s.command == "" {
		return nil
	}
	return with(cursorCommon("beforeShellExecution"), map[string]any{"command": s.command, "cwd": "", "sandbox": false})
}

func cursorToolPayload(s sample) map[string]any {
	tool, input := s.named("MCP:", "", "Shell")
	if s.server != "" && s.command == "" {
		tool = "MCP:" + s.tool
	}
	return with(cursorCommon("preToolUse"), map[string]any{"tool_name": tool, "tool_input": input, "tool_use_id": "t1", "cwd": ""})
}

func geminiPayload(s sample) map[string]any {
	tool, input := s.named("mcp_", "_", "run_shell_command")
	p := map[string]any{
		"session_id": "s1", "transcript_path": "/t", "cwd": "/home/u", "hook_event_name": "BeforeTool",
		"timestamp": "2026-11-29T10:00:00Z", "tool_name": tool, "tool_input": input,
	}
	if s.server != "" && s.command == "" {
		p["mcp_context"] = map[string]any{
			"server_name": s.server, "tool_name": s.tool, "command": "node", "args": []any{"x.js", "--token=MARKER-launch"},
		}
	}
	return p
}

func copilotPayload(s sample) map[string]any {
	tool, input := s.named("", "-", "bash")
	text, _ := json.Marshal(input)
	return map[string]any{"sessionId": "s1", "timestamp": 1764410400000, "cwd": "/home/u", "toolName": tool, "toolArgs": string(text)}
}

func copilotCompatPayload(s sample) map[string]any {
	tool, input := s.named("", "-", "Bash")
	return map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "s1", "timestamp": "2026-11-29T10:00:00Z", "cwd": "/home/u",
		"tool_name": tool, "tool_input": input,
	}
}

func vsCodePayload(s sample) map[string]any {
	tool, input := s.named("mcp_", "_", "run_in_terminal")
	return map[string]any{
		"timestamp": "2026-11-29T10:00:00Z", "cwd": "/home/u", "sessionId": "s1", "hookEventName": "PreToolUse",
		"transcript_path": "/t", "tool_name": tool, "tool_input": input, "tool_use_id": "t1",
	}
}

func windsurfCommon(action string, info map[string]any) map[string]any {
	return map[string]any{
		"agent_action_name": action, "trajectory_id": "t1", "execution_id": "e1", "timestamp": "2026-11-29T10:00:00Z", "tool_info": info,
	}
}

func windsurfServerPayload(s sample) map[string]any {
	if s.server == "" {
		return nil
	}
	return windsurfCommon("pre_mcp_tool_use", map[string]any{
		"mcp_server_name": s.server, "mcp_tool_name": s.tool, "mcp_tool_arguments": s.args,
	})
}

func windsurfShellPayload(s sample) map[string]any {
	if s.command == "" {
		return nil
	}
	return windsurfCommon("pre_run_command", map[string]any{"command_line": s.command, "cwd": "/home/u"})
}

func clinePayload(s sample) map[string]any {
	tool, input := s.named("", "__", "run_command")
	return map[string]any{
		"clineVersion": "4.0.0", "hookName": "tool_call", "timestamp": "2026-11-29T10:00:00Z", "taskId": "k1", "userId": "u",
		"agent_id": "a1", "parent_agent_id": nil, "iteration": 3, "workspaceRoots": []any{"/home/u"},
		"tool_call":  map[string]any{"id": "1", "name": tool, "input": input},
		"preToolUse": map[string]any{"toolName": tool, "parameters": asTexts(input)},
	}
}

func clineOldPayload(s sample) map[string]any {
	tool, input := s.named("", "", "run_command")
	parameters := asTexts(input)
	if s.server != "" && s.command == "" {
		arguments, _ := json.Marshal(s.args)
		tool = "use_mcp_tool"
		parameters = map[string]any{"server_name": s.server, "tool_name": s.tool, "arguments": string(arguments)}
	}
	return map[string]any{
		"clineVersion": "3.36.0", "hookName": "PreToolUse", "timestamp": "2026-11-29T10:00:00Z", "taskId": "k1", "userId": "u",
		"workspaceRoots": []any{"/home/u"}, "preToolUse": map[string]any{"toolName": tool, "parameters": parameters},
	}
}

// asTexts is what the older form makes of arguments.
func asTexts(input map[string]any) map[string]any {
	texts := map[string]any{}
	for name, value := range input {
		text, ok := value.(string)
		if !ok {
			encoded, _ := json.Marshal(value)
			text = string(encoded)
		}
		texts[name] = text
	}
	return texts
}

func textOf(p map[string]any, name string) string {
	text, _ := p[name].(string)
	return text
}

func objectOf(p map[string]any, name string) map[string]any {
	object, _ := p[name].(map[string]any)
	return object
}

func claudeCall(p map[string]any) (called, bool) {
	tool := textOf(p, "tool_name")
	return called{text: tool, args: p["tool_input"]}, tool != ""
}

// packageStarted finds the package in a command line that starts one, of whatever scope, folder and version, or our own
// program. What follows is for the package.
var packageStarted = regexp.MustCompile(
	`^[ \t]*(?:(?:npx[ \t]+(?:-y[ \t]+|--yes[ \t]+)?|bunx[ \t]+|uvx[ \t]+)(?:[^\s-][^\s]*[/\\]|[/\\])?([^\s@/\\-][^\s@/\\]*)(?:@[^\s/\\]*)?|` +
		`(?:[^\s]*[/\\])?(zerto-rewind)(?:\.exe)?[ \t]+mcp)(?:[ \t].*)?$`)

func cursorServerCall(p map[string]any) (called, bool) {
	server := ""
	if started := packageStarted.FindStringSubmatch(textOf(p, "command")); started != nil {
		server = started[1] + started[2]
	}
	tool := strings.TrimPrefix(textOf(p, "tool_name"), "MCP:")
	return called{name: catalog.Name{Server: server, Tool: tool}, args: p["tool_input"]}, tool != ""
}

func cursorShellCall(p map[string]any) (called, bool) {
	command, ok := p["command"].(string)
	return called{text: "Shell", args: map[string]any{"command": command}}, ok
}

func geminiCall(p map[string]any) (called, bool) {
	if context, ok := p["mcp_context"]; ok {
		server, _ := context.(map[string]any)
		name := catalog.Name{Server: textOf(server, "server_name"), Tool: textOf(server, "tool_name")}
		return called{name: name, args: p["tool_input"]}, name.Tool != ""
	}
	return claudeCall(p)
}

func copilotCall(p map[string]any) (called, bool) {
	tool := textOf(p, "toolName")
	return called{text: tool, args: p["toolArgs"]}, tool != ""
}

func windsurfCall(p map[string]any) (called, bool) {
	info := objectOf(p, "tool_info")
	if textOf(p, "agent_action_name") == "pre_run_command" {
		command, ok := info["command_line"].(string)
		return called{text: "run_command", args: map[string]any{"command": command}}, ok
	}
	name := catalog.Name{Server: textOf(info, "mcp_server_name"), Tool: textOf(info, "mcp_tool_name")}
	return called{name: name, args: info["mcp_tool_arguments"]}, name.Tool != ""
}

func clineCall(p map[string]any) (called, bool) {
	call := objectOf(p, "tool_call")
	return clineNamed(textOf(call, "name"), call["input"])
}

func clineNamed(tool string, args any) (called, bool) {
	if server, rest, found := strings.Cut(tool, "__"); found && server != "mcp" {
		return called{name: catalog.Name{Server: server, Tool: rest}, args: args}, true
	}
	return called{text: tool, args: args}, tool != ""
}

func clineOldCall(p map[string]any) (called, bool) {
	call := objectOf(p, "preToolUse")
	tool, parameters := textOf(call, "toolName"), objectOf(call, "parameters")
	if tool == "use_mcp_tool" {
		name := catalog.Name{Server: textOf(parameters, "server_name"), Tool: textOf(parameters, "tool_name")}
		return called{name: name, args: parameters["arguments"]}, name.Tool != ""
	}
	return clineNamed(tool, call["parameters"])
}
