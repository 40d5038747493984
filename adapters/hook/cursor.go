package hookadapter

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

const (
	cursorBeforeMCP   = "beforeMCPExecution"
	cursorBeforeShell = "beforeShellExecution"
	cursorBeforeTool  = "preToolUse"
)

// cursor is Cursor (hooks 2.2). Where its settings say that a failed hook blocks, an empty stdout is one, so every
// answer is written out.
func cursor() host {
	return host{
		name: HostCursor, title: "Cursor",
		marked: func(p *payload) bool {
			return p.has("cursor_version") || strings.HasPrefix(p.text("tool_name"), "MCP:")
		},
		read: cursorCall,
		asks: func(c toolCall) certainty {
			if c.event == cursorBeforeMCP || c.event == cursorBeforeShell {
				return surely // or, as was seen, blocks without a question
			}
			return never
		},
		elsewhere: "Where the hook is installed for beforeMCPExecution and beforeShellExecution, Cursor can ask.",
		pass:      object(cursorAnswer{Permission: "allow"}, "the verdict could not be written"),
		ask:       func(_ toolCall, reason string) answer { return cursorPermission("ask", reason) },
		deny:      func(_ toolCall, reason string) answer { return cursorPermission("deny", reason) },
	}
}

func cursorCall(p *payload) (toolCall, error) {
	c := toolCall{
		event: p.text("hook_event_name"), input: p.fields["tool_input"],
		session: p.text("conversation_id"), id: p.text("tool_use_id"),
	}
	if c.session == "" {
		c.session = p.text("session_id")
	}
	var err error
	switch c.event {
	case cursorBeforeShell:
		c.name = catalog.Name{Tool: "Shell", BuiltIn: true}
		c.input, err = p.commandInput("command")
		return c, err
	case cursorBeforeMCP:
		c.name = catalog.Name{Server: startedServer(p.text("command")), Tool: strings.TrimPrefix(p.text("tool_name"), "MCP:")}
		if c.name.Tool == "" {
			err = errNoTool
		}
		return c, err
	case cursorBeforeTool, preToolUse:
		if c.tool = p.text("tool_name"); c.tool == "" {
			err = errNoTool
		}
		return c, err
	}
	return c, errors.New("this hook was called for an event at which Cursor starts no tool, so it blocks")
}

// startedServer returns the package that a server's command line starts, which is the one sign of the server that
// Cursor gives. It is empty for all but the plainest command lines: a server that is not known is never laxer.
func startedServer(command string) string {
	if strings.ContainsAny(command, "\"'`$;|&<>()\n") || strings.ContainsFunc(command, unusualSpace) {
		return ""
	}
	words := strings.Fields(strings.ReplaceAll(command, `\`, "/"))
	if len(words) > 1 && strings.TrimSuffix(baseName(words[0]), ".exe") == ourServer && words[1] == "mcp" {
		return ourServer
	}
	if len(words) > 1 && words[0] == "npx" && (words[1] == "-y" || words[1] == "--yes") {
		words = slices.Delete(words, 1, 2)
	}
	switch {
	case len(words) < 2, strings.HasPrefix(words[1], "-"):
		return ""
	case words[0] == "npx", words[0] == "bunx", words[0] == "uvx":
		name, _, _ := strings.Cut(baseName(words[1]), "@")
		return name
	}
	return ""
}

// unusualSpace reports whether strings.Fields cuts at a character that no shell does.
func unusualSpace(r rune) bool { return r != ' ' && r != '\t' && unicode.IsSpace(r) }

const ourServer = "zerto-rewind"

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

type cursorAnswer struct {
	Permission   string `json:"permission"`
	UserMessage  string `json:"user_message,omitempty"`
	AgentMessage string `json:"agent_message,omitempty"`
}

// cursorPermission tells the reason twice: the agent was seen to get the text that is meant for the user.
func cursorPermission(permission, reason string) answer {
	return object(cursorAnswer{permission, cut(reason), cut(reason)}, reason)
}
