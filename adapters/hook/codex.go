package hookadapter

// codex is the Codex CLI (hooks 2.1). It takes a question, or a decision with one member more than these, for a failure
// of the hook, and lets the tool run.
func codex() host {
	return host{
		name: HostCodex, title: "Codex",
		marked: func(p *payload) bool {
			return p.has("turn_id") || p.has("model") && p.isClaudes() && !p.has("cursor_version")
		},
		read: func(p *payload) (toolCall, error) {
			if p.text("hook_event_name") != preToolUse {
				return toolCall{}, wrongEvent(preToolUse)
			}
			return p.claudeCall()
		},
		asks: func(toolCall) certainty { return never },
		pass: answer{exitCode: exitAnswered},
		deny: func(_ toolCall, reason string) answer { return claudeDecision("deny", reason) },
	}
}
