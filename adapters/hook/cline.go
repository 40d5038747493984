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
	case strings.HasPrefix(tool, "mcp__"):
	default:
		// The SDK writes <server>__<tool>. A prefix that means something in Claude Code is a part of the server's name here.
		if server, name, ok := strings.Cut(tool, "__"); ok {
			c.name = catalog.Name{Server: server, Tool: name}
			return c, nil
		}
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

// mayBeClines reports whether what came of an input may be read by Cline, which a plain block does not stop. Of an input that
// can be read it never goes by what an agent chose, so that no argument of a call hides a refusal from Cline.
func (r run) mayBeClines(told string, p *payload, input []byte) bool {
	switch {
	case r.host != nil:
		return r.host.name == HostCline
	case told == HostCline:
		return true
	case p != nil:
		return cline().marked(p)
	}
	return seemsClines(input)
}

// seemsClines goes by the first mark in an input that could not be read: hosts write their own members before those of
// the call.
func seemsClines(input []byte) bool {
	first := func(names ...string) int {
		at := len(input)
		for _, name := range names {
			if i := bytes.Index(input, []byte(`"`+name+`"`)); i >= 0 {
				at = min(at, i)
			}
		}
		return at
	}
	return first("hookName", "preToolUse", "clineVersion") < first("hook_event_name", "agent_action_name")
}
