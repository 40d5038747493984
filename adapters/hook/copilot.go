package hookadapter

// copilot is GitHub Copilot's CLI, cloud agent and app, with the members of its own (hooks 2.4). The CLI asks, the cloud
// agent takes a question for no, the app for yes, and the payload does not tell them apart.
func copilot() host {
	return host{
		name: HostCopilot, title: "Copilot",
		marked: func(p *payload) bool { return p.has("toolName") || p.has("toolArgs") },
		read: func(p *payload) (toolCall, error) {
			c := toolCall{
				event: cursorBeforeTool, tool: p.text("toolName"), input: p.fields["toolArgs"], session: p.text("sessionId"),
			}
			switch {
			case p.has("toolResult"): // its events have no name, and this one comes after the tool
				return c, wrongEvent(cursorBeforeTool)
			case c.tool == "":
				return c, errNoTool
			}
			return c, nil
		},
		asks: func(toolCall) certainty { return fallible },
		pass: answer{exitCode: exitAnswered, stdout: "{}\n"},
		ask:  func(_ toolCall, reason string) answer { return copilotDecision("ask", reason) },
		deny: func(_ toolCall, reason string) answer { return copilotDecision("deny", reason) },
	}
}

func copilotDecision(decision, reason string) answer {
	return object(struct {
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}{decision, cut(reason)}, reason)
}

// isEithers reports whether a payload without marks is one of Copilot or VS Code in the manner of Claude Code, as both
// send it to the hooks of Claude Code's settings.
func (p *payload) isEithers() bool {
	return p.has("timestamp") && p.has("hook_event_name") && p.has("tool_name") && !p.has("permission_mode")
}

// copilotOrVSCode answers what both understand, since the two read JSON of different shapes.
func copilotOrVSCode() host {
	return host{
		name: HostCopilot, title: "Copilot or VS Code",
		read: func(p *payload) (toolCall, error) {
			if p.text("hook_event_name") != preToolUse {
				return toolCall{}, wrongEvent(preToolUse)
			}
			return p.claudeCall()
		},
		asks: func(toolCall) certainty { return never },
		pass: answer{exitCode: exitAnswered},
		deny: func(_ toolCall, reason string) answer { return blocked(reason) },
	}
}
