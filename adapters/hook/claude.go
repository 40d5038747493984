package hookadapter

// claude is Claude Code (hooks 1).
func claude() host {
	return host{
		name: HostClaude, title: "Claude Code",
		read: func(p *payload) (toolCall, error) {
			event := p.text("hook_event_name")
			if event != preToolUse && event != permissionRequest {
				return toolCall{}, wrongEvent(preToolUse)
			}
			return p.claudeCall()
		},
		asks: func(c toolCall) certainty {
			switch c.mode {
			case "default", "acceptEdits", "plan":
				return surely
			case "auto":
				return fallible
			}
			return never
		},
		elsewhere: "A person can also run the call in Claude Code's default mode and answer there.",
		// Its own permissions apply, which "allow" would skip.
		pass: answer{exitCode: exitAnswered},
		ask: func(c toolCall, reason string) answer {
			if c.event == permissionRequest {
				return answer{exitCode: exitAnswered} // a person is being asked already
			}
			return claudeDecision("ask", reason)
		},
		deny: func(c toolCall, reason string) answer {
			if c.event == permissionRequest {
				return claudeRefusal(reason)
			}
			return claudeDecision("deny", reason)
		},
	}
}

const (
	preToolUse        = "PreToolUse"
	permissionRequest = "PermissionRequest"
)

// isClaudes reports whether a payload that bears no other host's mark is Claude Code's.
func (p *payload) isClaudes() bool {
	return p.has("permission_mode") && (p.has("tool_use_id") || p.text("hook_event_name") == permissionRequest)
}

// claudeCall reads the members that Claude Code has, and the hosts that copy it.
func (p *payload) claudeCall() (toolCall, error) {
	c := toolCall{
		tool: p.text("tool_name"), input: p.fields["tool_input"],
		event: p.text("hook_event_name"), mode: p.text("permission_mode"),
		agent: p.text("agent_id"), session: p.text("session_id"), id: p.text("tool_use_id"),
	}
	if c.tool == "" {
		return c, errNoTool
	}
	return c, nil
}

// claudeDecision writes exactly the members that Claude Code and the hosts that copy it agree on: one more makes some of
// them drop the decision (hooks 2.1).
func claudeDecision(decision, reason string) answer {
	type output struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	return object(struct {
		Output output `json:"hookSpecificOutput"`
	}{output{preToolUse, decision, cut(reason)}}, reason)
}

// claudeRefusal answers the event at which a prompt is about to be shown: exit 2 is not honoured there (hooks 1.8).
func claudeRefusal(reason string) answer {
	type decision struct {
		Behaviour string `json:"behavior"`
		Message   string `json:"message"`
	}
	type output struct {
		Event    string   `json:"hookEventName"`
		Decision decision `json:"decision"`
	}
	return object(struct {
		Output output `json:"hookSpecificOutput"`
	}{output{permissionRequest, decision{"deny", cut(reason)}}}, reason)
}
