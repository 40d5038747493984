package hookadapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// payload is what a host tells of one tool call. Unknown members are the normal case: hosts add them often.
type payload struct {
	fields map[string]json.RawMessage
	event  string
	tool   string
	mode   string // Claude Code's permission mode, empty when it is not told
}

func parsePayload(text []byte) (*payload, error) {
	fields, err := gate.Members(text)
	if err != nil {
		return nil, err
	}
	p := &payload{fields: fields}
	p.event, p.tool, p.mode = p.text("hook_event_name"), p.text("tool_name"), p.text("permission_mode")
	return p, nil
}

// text returns a member that is text, and "" for any other.
func (p *payload) text(name string) string {
	var text string
	if json.Unmarshal(p.fields[name], &text) != nil {
		return ""
	}
	return text
}

func (p *payload) has(name string) bool {
	_, ok := p.fields[name]
	return ok
}

// recognise returns why the payload is not one of Claude Code before a tool use, nil when it is.
func (p *payload) recognise(host string) error {
	if host != "" && host != HostClaude {
		return fmt.Errorf("this hook does not know the agent host %.40q, so the call did not run", host)
	}
	if other := p.otherHost(); other != "" {
		return fmt.Errorf("this hook was called by %s, whose answers it does not know yet, so the call did not run", other)
	}
	if host == "" && !(p.has("permission_mode") && p.has("tool_use_id")) {
		return errors.New("this hook does not recognise the agent host that called it, so the call did not run")
	}
	if p.event != "PreToolUse" {
		return errors.New("this hook was called for another event than PreToolUse, so it blocks")
	}
	if p.tool == "" {
		return errors.New("the payload names no tool, so the call did not run")
	}
	return nil
}

// otherHost returns the host other than Claude Code that the payload bears the marks of (hooks 2.8).
func (p *payload) otherHost() string {
	switch {
	case p.has("cursor_version"), strings.HasPrefix(p.tool, "MCP:"):
		return "Cursor"
	case p.has("agent_action_name"):
		return "Windsurf"
	case p.event == "BeforeTool", p.has("mcp_context"):
		return "Gemini CLI"
	case p.has("toolName"), p.has("toolArgs"):
		return "Copilot CLI"
	case p.has("hookEventName"), p.has("timestamp") && !p.has("permission_mode"):
		return "VS Code or Copilot"
	case p.has("turn_id"):
		return "Codex"
	case p.has("hookName"), p.has("preToolUse"):
		return "Cline"
	case strings.Contains(p.tool, "___") && !strings.HasPrefix(p.tool, "mcp__"):
		return "Factory Droid"
	}
	return ""
}

// arguments returns the tool's arguments, which some hosts write as a text that holds JSON.
func (p *payload) arguments() (map[string]any, error) {
	text := []byte(p.fields["tool_input"])
	if len(text) > 0 && text[0] == '"' {
		if gate.HasLoneSurrogate(text) {
			return nil, errors.New("it holds half of a character")
		}
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return nil, errors.New("it is not JSON")
		}
		text = []byte(inner)
	}
	return gate.Arguments(text)
}
