package install

import (
	"encoding/json"
	"strings"
)

// CanaryVM is the machine that a canary's tool call would change. Nobody has one of this name, and nobody a guard of it.
const CanaryVM = "zerto-rewind-canary"

// Canary returns what a host writes to the hook before a tool changes [CanaryVM], for one of the events on which the hook
// runs there, and false for any other event.
func Canary(host, event string) (input string, ok bool) {
	const tool = `{"node":"pve1","vmid":"` + CanaryVM + `"}`
	const line = "ssh " + CanaryVM + " reboot"
	const claude = `{"session_id":"canary","transcript_path":"","cwd":"/","permission_mode":"bypassPermissions","hook_event_name":"PreToolUse",` +
		`"tool_name":"mcp__proxmox__delete_vm","tool_input":` + tool + `,"tool_use_id":"canary"`
	switch host + " " + event {
	case "claude PreToolUse":
		return claude + "}", true
	case "codex PreToolUse":
		return claude + `,"turn_id":"canary","model":"canary"}`, true
	case "cursor beforeMCPExecution":
		return `{"conversation_id":"canary","generation_id":"canary","model":"canary","hook_event_name":"beforeMCPExecution","cursor_version":"0",` +
			`"workspace_roots":[],"tool_name":"delete_vm","tool_input":` + quoted(tool) + `,"command":"proxmox-mcp"}`, true
	case "cursor beforeShellExecution":
		return `{"conversation_id":"canary","generation_id":"canary","model":"canary","hook_event_name":"beforeShellExecution","cursor_version":"0",` +
			`"workspace_roots":[],"command":"` + line + `","cwd":"/"}`, true
	case "gemini BeforeTool":
		return `{"session_id":"canary","transcript_path":"","cwd":"/","hook_event_name":"BeforeTool","timestamp":"2026-01-01T00:00:00Z",` +
			`"tool_name":"mcp_proxmox_delete_vm","tool_input":` + tool + `,"mcp_context":{"server_name":"proxmox","tool_name":"delete_vm"}}`, true
	case "copilot preToolUse":
		return `{"sessionId":"canary","timestamp":1767225600000,"cwd":"/","toolName":"proxmox-delete_vm","toolArgs":` + tool + `}`, true
	case "vscode preToolUse":
		return `{"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/","sessionId":"canary","hookEventName":"PreToolUse","transcript_path":"",` +
			`"tool_name":"mcp_proxmox_delete_vm","tool_input":` + tool + `,"tool_use_id":"canary"}`, true
	case "windsurf pre_mcp_tool_use":
		return `{"agent_action_name":"pre_mcp_tool_use","trajectory_id":"canary","execution_id":"canary","timestamp":"2026-01-01T00:00:00Z",` +
			`"tool_info":{"mcp_server_name":"proxmox","mcp_tool_name":"delete_vm","mcp_tool_arguments":` + tool + `}}`, true
	case "windsurf pre_run_command":
		return `{"agent_action_name":"pre_run_command","trajectory_id":"canary","execution_id":"canary","timestamp":"2026-01-01T00:00:00Z",` +
			`"tool_info":{"command_line":"` + line + `","cwd":"/"}}`, true
	case "cline PreToolUse":
		return `{"hookName":"tool_call","tool_call":{"id":"canary","name":"execute_command","input":{"command":"` + line + `"}}}`, true
	}
	return "", false
}

func quoted(text string) string { return compact(text) }

// Blocks reports whether a host that reads the outcome of its hook keeps the tool from running (hooks 0, 1.6 and 2). What
// the host's people do after a question does not count: only a refusal blocks.
func Blocks(host string, o Outcome) bool {
	exit2 := o.ExitCode == 2 && strings.TrimSpace(o.Stderr) != ""
	switch host {
	case "claude", "vscode":
		return exit2 || o.ExitCode == 0 && denies(o, "permissionDecision", "hookSpecificOutput")
	case "codex":
		return exit2 || o.ExitCode == 0 && denies(o, "permissionDecision", "hookSpecificOutput") && onlyMember(o, "hookSpecificOutput")
	case "copilot":
		return o.ExitCode != 0 || denies(o, "permissionDecision", "")
	case "cursor":
		return o.ExitCode == 2 || o.ExitCode == 0 && denies(o, "permission", "")
	case "gemini":
		if object(o.Stdout, "") != nil {
			return denies(o, "decision", "")
		}
		return exit2
	case "windsurf":
		return o.ExitCode == 2
	case "cline":
		return cancels(o)
	}
	return false
}

// denies reports whether the one JSON object on stdout holds a denial with its reason.
func denies(o Outcome, member, within string) bool {
	answer := object(o.Stdout, within)
	if answer[member] != "deny" && answer[member] != "block" {
		return false
	}
	for _, name := range []string{member + "Reason", "reason", "user_message"} {
		if text, ok := answer[name].(string); ok && strings.TrimSpace(text) != "" {
			return true
		}
	}
	return false
}

func cancels(o Outcome) bool { return object(o.Stdout, "")["cancel"] == true }

func onlyMember(o Outcome, name string) bool {
	answer := object(o.Stdout, "")
	_, ok := answer[name]
	return ok && len(answer) == 1
}

// object returns the one JSON object that text is, or the one within it, and nil for anything else.
func object(text, within string) map[string]any {
	var answer map[string]any
	if json.Unmarshal([]byte(text), &answer) != nil {
		return nil
	}
	if within != "" {
		answer, _ = answer[within].(map[string]any)
	}
	return answer
}
