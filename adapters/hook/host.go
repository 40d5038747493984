package hookadapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// The hosts that the hook speaks to. HostAuto recognises the one that calls by its payload.
const (
	HostAuto     = "auto"
	HostClaude   = "claude"   // Claude Code
	HostCodex    = "codex"    // Codex CLI
	HostCursor   = "cursor"   // Cursor
	HostGemini   = "gemini"   // Gemini CLI
	HostCopilot  = "copilot"  // GitHub Copilot CLI and cloud agent
	HostVSCode   = "vscode"   // VS Code's own agent
	HostWindsurf = "windsurf" // Windsurf Cascade
	HostCline    = "cline"    // Cline
)

// Hosts returns the names of all hosts, without HostAuto.
func Hosts() []string {
	var names []string
	for _, h := range hosts() {
		names = append(names, h.name)
	}
	return names
}

// host is what one agent host sends before a tool runs, and what it honours in return.
type host struct {
	name  string // of [Config.Host]
	title string // for people

	// marked reports whether a payload can be no other host's (hooks 2.8). Nil for one that has no mark of its own.
	marked func(p *payload) bool
	// read finds the call in a payload. Its error says why there is none that could be judged.
	read func(p *payload) (toolCall, error)
	// asks says whether a question about a call reaches a person.
	asks func(c toolCall) certainty
	// elsewhere says how a person could be asked by this host after all, as a sentence; empty if nothing is known.
	elsewhere string

	pass answer // lets the host go on by its own rules
	ask  func(c toolCall, reason string) answer
	deny func(c toolCall, reason string) answer
}

func hosts() []host {
	return []host{claude(), codex(), cursor(), gemini(), copilot(), vsCode(), windsurf(), cline()}
}

// certainty is how sure it is that a host puts a question to a person.
type certainty int

const (
	never    certainty = iota
	fallible           // in some versions or programs of the host only; others let the call run
	surely             // and a version that does not blocks the call
)

// toolCall is one call as its host tells it.
type toolCall struct {
	// tool is the whole name, if the host tells server and tool in one; name is it otherwise.
	tool string
	name catalog.Name
	// input are the arguments, as an object or as text that holds one.
	input json.RawMessage

	event, mode        string
	agent, session, id string
	cwd                string // in which relative paths begin, empty where the host does not tell
}

func (c toolCall) nameIn(known *catalog.Catalog) catalog.Name {
	if c.tool == "" {
		return c.name
	}
	// A name that was split by guess belongs to an unknown server, which the gate is told by the name itself.
	name, _ := known.ParseToolName(c.tool)
	return name
}

var errNoTool = errors.New("the payload names no tool, so the call did not run")

func wrongEvent(want string) error {
	return fmt.Errorf("this hook was called for another event than %s, so it blocks", want)
}

// recognise returns the host that a payload comes from. Several hosts run the hooks of others' settings, so what the
// payload shows beats what was told at installation.
func (p *payload) recognise(told string) (host, error) {
	all := hosts()
	at := slices.IndexFunc(all, func(h host) bool { return h.name == told })
	if at < 0 && told != "" && told != HostAuto {
		return host{}, fmt.Errorf("this hook does not know the agent host %.40q, so the call did not run", told)
	}
	var marked []host
	for _, h := range all {
		if h.marked != nil && h.marked(p) {
			marked = append(marked, h)
		}
	}
	isTold := func(h host) bool { return h.name == told }
	switch {
	case slices.ContainsFunc(marked, isTold):
		return all[at], nil
	case len(marked) > 1:
		return host{}, fmt.Errorf("the payload bears the marks of both %s and %s, so the call did not run", marked[0].title, marked[1].title)
	case len(marked) == 1:
		return marked[0], nil
	case p.isDroids():
		return host{}, errors.New("this hook was called by Factory Droid, whose answers it does not know, so the call did not run")
	case p.isClaudes() && told != HostCodex:
		return claude(), nil
	case p.isEithers():
		return copilotOrVSCode(), nil
	case at >= 0:
		return all[at], nil
	}
	return host{}, errors.New("this hook does not recognise the agent host that called it, so the call did not run")
}

func (p *payload) isDroids() bool {
	tool := p.text("tool_name")
	return strings.Contains(tool, "___") && !strings.HasPrefix(tool, "mcp_")
}
