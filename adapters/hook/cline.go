package hookadapter

import (
	"bytes"
	"errors"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// cline is Cline, as an extension of VS Code and as the SDK of its command line (hooks 2.7). It reads stdout whatever
// the exit code. Its answers have a "review", which the SDK reads and does not act upon (cline@08a0ae50
// hook-file-hooks.ts): the tool would run, so a question becomes a refusal.
func cline() host {
	return host{
		name: HostCline, title: "Cline",
		marked: func(p *payload) bool {
			return p.has("clineVersion") || p.has("hookName") || p.has("tool_call") || p.has("preToolUse")
		},
		read: clineCall,
		asks: func(toolCall) certainty { return never },
		pass: answer{exitCode: exitAnswered, stdout: "{}\n"},
		deny: func(_ toolCall, reason string) answer { return clineCancel(reason) },
	}
}

// clineCall prefers what the SDK tells to its copy in the older form, in which every argument has become text.
func clineCall(p *payload) (toolCall, error) {
	c := toolCall{event: p.text("hookName"), agent: p.text("agent_id"), session: p.text("taskId")}
	var tool string
	switch {
	case c.event == "tool_call", p.has("tool_call"):
		call, err := p.within("tool_call")
		if err != nil {
			return c, err
		}
		tool, c.id, c.input = call.text("name"), call.text("id"), call.fields["input"]
	case p.has("preToolUse"):
		call, err := p.within("preToolUse")
		if err != nil {
			return c, err
		}
		tool, c.input = call.text("toolName"), call.fields["parameters"]
	default:
		return c, wrongEvent("PreToolUse or tool_call")
	}
	switch {
	case tool == "":
		return c, errNoTool
	case tool == "use_mcp_tool":
		return c.clineServerTool()
	case strings.Contains(tool, "__") && !strings.HasPrefix(tool, "mcp__"):
		tool = "mcp__" + tool // the SDK writes <server>__<tool>
	}
	c.tool = tool
	return c, nil
}

// clineServerTool reads the call of a server's tool that is an argument of a tool of Cline's own.
func (c toolCall) clineServerTool() (toolCall, error) {
	call, err := parsePayload(c.input)
	if err != nil {
		return c, errors.New("the call of a server's tool could not be read: " + err.Error())
	}
	c.name = catalog.Name{Server: call.text("server_name"), Tool: call.text("tool_name")}
	c.input = call.fields["arguments"]
	if c.name.Server == "" || c.name.Tool == "" {
		return c, errors.New("the payload names no server and tool, so the call did not run")
	}
	return c, nil
}

func clineCancel(reason string) answer {
	return object(struct {
		Cancel       bool   `json:"cancel"`
		ErrorMessage string `json:"errorMessage"`
	}{true, cut(reason)}, reason)
}

// mayBeClines reports whether an input that could not be understood may have come from Cline, which a plain block does
// not stop.
func mayBeClines(told string, input []byte) bool {
	if bytes.Contains(input, []byte(`"hook_event_name"`)) || bytes.Contains(input, []byte(`"agent_action_name"`)) {
		return false
	}
	for _, mark := range []string{`"hookName"`, `"preToolUse"`, `"clineVersion"`} {
		if bytes.Contains(input, []byte(mark)) {
			return true
		}
	}
	return told == HostCline
}
