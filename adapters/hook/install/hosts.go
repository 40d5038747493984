package install

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// hookSeconds is what a host waits for the hook: well above the 4 s in which it answers, and above the time that a loaded
// machine takes to start it (hooks 3, pitfall 20).
const hookSeconds = 15

// A host is where and how one agent host keeps its hooks (hooks 1.1 and 2).
type host struct {
	name, title   string
	user, project func(Place) string
	form          form
	events        []string // on which the hook runs, in the host's spelling
	matcher       string   // of a nested entry
	// after is the one of the events, if any, that comes after a tool: the hook notes there that a person has agreed.
	after, afterMatcher string
	// known are all events of a host that drops a file in which another stands (hooks 3, pitfall 25).
	known []string
	// versioned files hold "version": 1.
	versioned bool
	// strict hosts are not known to read comments.
	strict bool
	// entry is the handler, for the system on which it will run.
	entry func(binary, system string) (handler, error)
}

// form is how entries are laid out.
type form int

const (
	nested form = iota // hooks.EVENT[].hooks[]
	flat               // hooks.EVENT[]
	script             // the file is the hook
)

// handler holds the members that hosts know. Each host's entry sets its own.
type handler struct {
	Type          string   `json:"type,omitempty"`
	Name          string   `json:"name,omitempty"`
	Command       string   `json:"command,omitempty"`
	PowerShell    string   `json:"powershell,omitempty"`
	Args          []string `json:"args,omitempty"`
	Timeout       int      `json:"timeout,omitempty"`
	TimeoutSec    int      `json:"timeoutSec,omitempty"`
	OnFailure     string   `json:"onFailure,omitempty"`
	FailClosed    bool     `json:"failClosed,omitempty"`
	ShowOutput    bool     `json:"show_output,omitempty"`
	StatusMessage string   `json:"statusMessage,omitempty"`
}

func below(dir func(Place) string, parts ...string) func(Place) string {
	return func(p Place) string { return filepath.Join(append([]string{dir(p)}, parts...)...) }
}

func home(p Place) string    { return p.Home }
func dir(p Place) string     { return p.Dir }
func claude(p Place) string  { return p.homeOr("CLAUDE_CONFIG_DIR", ".claude") }
func codex(p Place) string   { return p.homeOr("CODEX_HOME", ".codex") }
func copilot(p Place) string { return p.homeOr("COPILOT_HOME", ".copilot") }

// shared is a file of ours alone, in a folder of which every .json is read.
var shared = filepath.Join("hooks", "zerto-rewind.json")

// shellEntry is an entry whose command is a line for a shell.
func shellEntry(host string, fill func(h *handler, line string)) func(binary, system string) (handler, error) {
	return func(binary, system string) (handler, error) {
		line, err := shellLine(system, binary, "hook", "--host", host)
		if err != nil {
			return handler{}, err
		}
		var h handler
		fill(&h, line)
		return h, nil
	}
}

// copilotEntry serves Copilot and VS Code alike. They read the same folders, so that two entries would judge each call twice,
// and an approval that counts once would be used up by the first.
var copilotEntry = shellEntry("auto", func(h *handler, line string) {
	h.Type, h.Command, h.TimeoutSec = "command", line, hookSeconds
})

var hosts = []host{
	{
		name: "claude", title: "Claude Code",
		user:    below(claude, "settings.json"),
		project: below(dir, ".claude", "settings.json"),
		form:    nested, events: []string{"PreToolUse", "PostToolUse"}, strict: true,
		// A person's yes counts only for tools of servers.
		after: "PostToolUse", afterMatcher: "mcp__.*",
		// Without ".*" an MCP matcher matches nothing; where there is no Git Bash, PowerShell takes Bash's place (hooks 1.2).
		// What writes files may write these settings (hooks 3, pitfall 48), or be the change of a machine of the person's own.
		matcher: "mcp__.*|Bash|PowerShell|Edit|Write",
		entry: func(binary, _ string) (handler, error) {
			return handler{
				Type: "command", Command: binary, Args: []string{"hook", "--host", "claude"},
				Timeout: hookSeconds, OnFailure: "block", StatusMessage: "Is there a guard?",
			}, nil
		},
	},
	{
		name: "codex", title: "Codex",
		user:    below(codex, "hooks.json"),
		project: below(dir, ".codex", "hooks.json"),
		form:    nested, events: []string{"PreToolUse"}, strict: true, matcher: "mcp__.*|Bash|apply_patch",
		entry: shellEntry("codex", func(h *handler, line string) {
			h.Type, h.Command, h.Timeout = "command", line, hookSeconds
		}),
	},
	{
		name: "cursor", title: "Cursor",
		user:    below(home, ".cursor", "hooks.json"),
		project: below(dir, ".cursor", "hooks.json"),
		// preToolUse would run a second time for the same call (hooks 2.2).
		form: flat, events: []string{"beforeMCPExecution", "beforeShellExecution"}, versioned: true, strict: true,
		known: []string{
			"sessionStart", "sessionEnd", "preToolUse", "postToolUse", "postToolUseFailure", "subagentStart", "subagentStop",
			"beforeShellExecution", "afterShellExecution", "beforeMCPExecution", "afterMCPExecution", "beforeReadFile", "afterFileEdit",
			"beforeSubmitPrompt", "preCompact", "stop", "afterAgentResponse", "afterAgentThought", "beforeTabFileRead", "afterTabFileEdit",
		},
		// No timeout: whether its unit is a second or a millisecond is told both ways (hooks 2.2).
		entry: shellEntry("cursor", func(h *handler, line string) { h.Command, h.FailClosed = line, true }),
	},
	{
		name: "gemini", title: "Gemini CLI",
		user:    below(home, ".gemini", "settings.json"),
		project: below(dir, ".gemini", "settings.json"),
		form:    nested, events: []string{"BeforeTool"}, matcher: "mcp_.*|run_shell_command|write_file|replace",
		entry: shellEntry("gemini", func(h *handler, line string) {
			h.Type, h.Name, h.Command, h.Timeout = "command", "zerto-rewind", line, hookSeconds*1000
		}),
	},
	{
		name: "copilot", title: "Copilot",
		user:    below(copilot, shared),
		project: below(dir, ".github", shared),
		form:    flat, events: []string{"preToolUse"}, versioned: true, strict: true, entry: copilotEntry,
	},
	{
		name: "vscode", title: "VS Code",
		user:    below(home, ".copilot", shared),
		project: below(dir, ".github", shared),
		form:    flat, events: []string{"preToolUse"}, versioned: true, entry: copilotEntry,
	},
	{
		name: "windsurf", title: "Windsurf",
		user:    below(home, ".codeium", "windsurf", "hooks.json"),
		project: below(dir, ".windsurf", "hooks.json"),
		form:    flat, events: []string{"pre_mcp_tool_use", "pre_run_command"}, strict: true,
		entry: shellEntry("windsurf", func(h *handler, line string) { h.Command, h.ShowOutput = line, true }),
	},
	{
		name: "cline", title: "Cline",
		user:    below(home, "Documents", "Cline", "Hooks", "PreToolUse"),
		project: below(dir, ".clinerules", "hooks", "PreToolUse"),
		form:    script, events: []string{"PreToolUse"},
		entry: func(binary, system string) (handler, error) {
			if system == "windows" {
				return handler{}, fmt.Errorf("how Cline starts a hook on Windows is not known, so none is installed")
			}
			return shellEntry("cline", func(h *handler, line string) { h.Command = line })(binary, system)
		},
	},
}

// entryFor returns the handler of one event. After a tool there is nothing to block.
func (h *host) entryFor(event, binary, system string) (handler, error) {
	entry, err := h.entry(binary, system)
	if event == h.after {
		entry.Args = append(entry.Args, "--event", "post")
		entry.OnFailure, entry.StatusMessage = "", ""
	}
	return entry, err
}

func (h *host) matcherFor(event string) string {
	if event == h.after {
		return h.afterMatcher
	}
	return h.matcher
}

func (h *host) mode(scope Scope) fs.FileMode {
	switch {
	case h.form == script:
		return 0o755
	case scope == User:
		return 0o600
	}
	return 0o644
}
