package catalog

import "strings"

// maxToolText is far above the 64 or 128 bytes that hosts allow.
const maxToolText = 512

// ParseToolName reads a tool's name as an agent host hands it to a hook (hooks 1.3 and 2.1 to 2.7):
//
//	mcp__<server>__<tool>                    Claude Code, Codex
//	mcp__plugin_<plugin>_<server>__<tool>    Claude Code, server of a plugin
//	mcp__claude_ai_<server>__<tool>          Claude Code, connector
//	mcp_<server>_<tool>                      Gemini CLI, VS Code
//	<server>___<tool>                        Factory Droid
//	<server>-<tool>                          Copilot CLI
//	MCP:<tool>                               Cursor; the server is not told
//	<tool>                                   a built-in of the host
//
// Most of these have no unique split, since either part may hold the separator. The longest server that the catalogue
// knows wins; "mcp__" and "___" forms of other servers are split at the first separator. It is false, with the whole
// text as tool of an unknown server, where the split is a guess. The verdict on such a name is never a safe one.
//
// A host that hands over server and tool in fields of their own, or a bare tool name that is known to come from an MCP
// server, needs no parsing: make the [Name] of them, without BuiltIn.
func (c *Catalog) ParseToolName(text string) (Name, bool) {
	whole := Name{Tool: text}
	if len(text) > maxToolText {
		return whole, false
	}
	if tool, ok := strings.CutPrefix(text, "MCP:"); ok {
		return Name{Tool: tool}, tool != ""
	}
	if rest, ok := strings.CutPrefix(text, "mcp__"); ok {
		return c.split(rest, "__", whole, true)
	}
	if rest, ok := strings.CutPrefix(text, "mcp_"); ok {
		// A name that was too long for the host has its middle cut out.
		if strings.Contains(rest, "...") {
			return whole, false
		}
		return c.split(rest, "_", whole, false)
	}
	if strings.Contains(text, "___") {
		return c.split(text, "___", whole, true)
	}
	if strings.Contains(text, "-") {
		return c.split(text, "-", whole, false)
	}
	if text == "" || strings.IndexFunc(text, notWord) >= 0 {
		return whole, false
	}
	return Name{Tool: text, BuiltIn: true}, true
}

// split cuts text after the longest known server. Without one it cuts at the first separator where firstWill.
func (c *Catalog) split(text, separator string, whole Name, firstWill bool) (Name, bool) {
	for end := strings.LastIndex(text, separator); end >= 0; {
		tool := text[end+len(separator):]
		if server, known := c.knownServer(text[:end]); known && tool != "" {
			return Name{Server: server, Tool: tool}, true
		}
		// In a run of underscores separators overlap: the next may begin one byte before this one.
		end = strings.LastIndex(text[:end+len(separator)-1], separator)
	}
	server, tool, found := strings.Cut(text, separator)
	if !firstWill || !found || server == "" || tool == "" {
		return whole, false
	}
	return Name{Server: server, Tool: tool}, true
}

// knownServer finds the server in what stands before the tool. Before a plugin's server stands the plugin's name, and
// the underscore between the two is no better than any other: the longest known server at the end wins.
func (c *Catalog) knownServer(text string) (string, bool) {
	if c.knows(text) {
		return text, true
	}
	if server, ok := strings.CutPrefix(text, "claude_ai_"); ok && c.knows(server) {
		return server, true
	}
	rest, ok := strings.CutPrefix(text, "plugin_")
	for ok {
		if _, rest, ok = strings.Cut(rest, "_"); ok && c.knows(rest) {
			return rest, true
		}
	}
	return "", false
}

func (c *Catalog) knows(server string) bool {
	var buf [maxNameLength]byte
	folded, ok := appendFolded(buf[:0], server)
	if !ok {
		return false
	}
	if c.servers[string(folded)] {
		return true
	}
	_, alias := c.aliases[string(folded)]
	return alias
}
