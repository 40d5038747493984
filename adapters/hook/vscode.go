package hookadapter

// vsCode is VS Code's own agent (hooks 2.5). It starts a hook for every tool, whatever its settings say.
func vsCode() host {
	return host{
		name: HostVSCode, title: "VS Code",
		marked: func(p *payload) bool { return p.has("hookEventName") },
		read: func(p *payload) (toolCall, error) {
			c, err := p.claudeCall()
			if event := p.text("hookEventName"); event != "" {
				c.event = event
			}
			if c.session == "" {
				c.session = p.text("sessionId")
			}
			if c.event != preToolUse {
				return c, wrongEvent(preToolUse)
			}
			return c, err
		},
		asks: func(toolCall) certainty { return surely },
		pass: answer{exitCode: exitAnswered, stdout: `{"continue":true}` + "\n"},
		ask:  func(_ toolCall, reason string) answer { return claudeDecision("ask", reason) },
		deny: func(_ toolCall, reason string) answer { return claudeDecision("deny", reason) },
	}
}
