package hookadapter

import (
	"errors"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

const beforeTool = "BeforeTool"

// gemini is Gemini CLI (hooks 2.3). An answer that it takes for a question becomes a prompt even where the user's own
// policy says no, and its documents know of none.
func gemini() host {
	return host{
		name: HostGemini, title: "Gemini CLI",
		marked: func(p *payload) bool { return p.text("hook_event_name") == beforeTool || p.has("mcp_context") },
		read:   geminiCall,
		asks:   func(toolCall) certainty { return fallible },
		pass:   answer{exitCode: exitAnswered, stdout: "{}\n"},
		ask:    func(_ toolCall, reason string) answer { return geminiDecision("ask", reason) },
		deny:   func(_ toolCall, reason string) answer { return geminiDecision("deny", reason) },
	}
}

// geminiCall takes the server's name from the context, since the tool's name has no unique split and may be cut. The
// context also holds how the server was started, which may be secret.
func geminiCall(p *payload) (toolCall, error) {
	if p.text("hook_event_name") != beforeTool {
		return toolCall{}, wrongEvent(beforeTool)
	}
	c, err := p.claudeCall()
	if err != nil || !p.has("mcp_context") {
		return c, err
	}
	server, err := p.within("mcp_context")
	if err != nil {
		return c, err
	}
	c.tool, c.name = "", catalog.Name{Server: server.text("server_name"), Tool: server.text("tool_name")}
	if c.name.Server == "" || c.name.Tool == "" {
		return c, errors.New("the payload's mcp_context names no server and tool, so the call did not run")
	}
	return c, nil
}

func geminiDecision(decision, reason string) answer {
	return object(struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}{decision, cut(reason)}, reason)
}
