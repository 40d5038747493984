package hookadapter

import (
	"errors"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// windsurf is Windsurf Cascade (hooks 2.6). It reads the exit code, and nothing on stdout.
func windsurf() host {
	return host{
		name: HostWindsurf, title: "Windsurf",
		marked: func(p *payload) bool { return p.has("agent_action_name") },
		read:   windsurfCall,
		asks:   func(toolCall) certainty { return never },
		pass:   answer{exitCode: exitAnswered},
		deny:   func(_ toolCall, reason string) answer { return blocked(reason) },
	}
}

func windsurfCall(p *payload) (toolCall, error) {
	c := toolCall{event: p.text("agent_action_name"), session: p.text("trajectory_id"), id: p.text("execution_id")}
	if c.event != "pre_mcp_tool_use" && c.event != "pre_run_command" {
		return c, errors.New("this hook was called for another action than pre_mcp_tool_use or pre_run_command, so it blocks")
	}
	info, err := p.within("tool_info")
	if err != nil {
		return c, err
	}
	if c.event == "pre_run_command" {
		c.name = catalog.Name{Tool: "run_command", BuiltIn: true}
		c.input, err = info.commandInput("command_line")
		return c, err
	}
	c.name = catalog.Name{Server: info.text("mcp_server_name"), Tool: info.text("mcp_tool_name")}
	c.input = info.fields["mcp_tool_arguments"]
	if c.name.Server == "" || c.name.Tool == "" {
		return c, errors.New("the payload names no server and tool, so the call did not run")
	}
	return c, nil
}
