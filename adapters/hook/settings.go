package hookadapter

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// hookFiles are parts of the paths at which hosts keep their hooks, and what switches hooks off (hooks 1.1 and 2).
var hookFiles = []string{
	".claude/settings", "claude-code/managed-settings", "claudecode/managed-settings",
	".codex/hooks.json", ".codex/config.toml", ".codex/requirements.toml",
	".cursor/hooks.json", "cursor/hooks.json",
	".gemini/settings.json", "gemini-cli/settings.json",
	".github/hooks/", ".github/copilot/settings", ".copilot/hooks/", ".copilot/settings.json", "github-copilot/policy.d/",
	".windsurf/hooks.json", ".codeium/windsurf/hooks.json",
	".clinerules/hooks/", "cline/rules/hooks/", "cline/hooks/", ".cline/settings.json",
}

// authored are parts of the paths of texts that bring commands, or hooks of their own, with them: what a skill or a command
// runs as it is loaded never comes to the hook (hooks 1.1). A shell that names one mostly runs a program beside it.
var authored = []string{".claude/skills/", ".claude/commands/", ".claude/agents/", ".claude/plugins/"}

// settingsIn returns the file by which a call of the agent's own machine could rid itself of the hook, or "". An agent
// that was refused may look for one. It goes by the text of the call: a guard rail, not a sandbox.
func settingsIn(j judgement, cwd string, args map[string]any, c Config) string {
	if !j.name.BuiltIn {
		return ""
	}
	shell := j.entry != nil && len(j.entry.Command) > 0
	own := c.ownFiles()
	if cwd = slashed(cwd); len(cwd) > maxFolder {
		cwd = "" // no system has such a folder
	}
	found := ""
	eachText(args, func(text string) {
		for line := range strings.Lines(text) {
			// Of what a file tool is given, a path is one line, and a patch names its files on lines of its own.
			isPath := shell || len(line) == len(text) || strings.HasPrefix(line, "*** ") || strings.HasPrefix(line, "+++ ")
			if !isPath || found != "" {
				continue
			}
			for _, spelling := range spellings(line, cwd) {
				found = cmp.Or(found, settingsFile(spelling, own, shell))
			}
		}
	})
	return found
}

// ownFiles are the settings as a call may spell them: in full, and from the home folder on.
func (c Config) ownFiles() []string {
	var all []string
	for _, file := range c.Settings {
		if file = slashed(file); file == "" {
			continue
		}
		all = append(all, file)
		if below, isBelow := strings.CutPrefix(file, strings.TrimSuffix(slashed(c.Home), "/")+"/"); c.Home != "" && isBelow {
			if !strings.Contains(below, "/") {
				below = "/" + below
			}
			all = append(all, below)
		}
	}
	return all
}

const (
	maxSplit  = 64 << 10 // how long a text may be to be read word by word
	maxFolder = 4 << 10  // how long the folder is in which a call runs
)

// spellings are the ways to read a text as a path: as it stands, without its detours, and each word of it, from the folder
// in which the call runs.
func spellings(text, cwd string) []string {
	text = slashed(strings.TrimSpace(text))
	all := []string{text, path.Clean(text)}
	if len(text) > maxSplit {
		return all
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;|&<>(){}=,", r) }) {
		if !path.IsAbs(word) {
			word = cwd + "/" + word
		}
		all = append(all, path.Clean(word))
	}
	return all
}

func slashed(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, `\`, "/"))
	for strings.Contains(text, "//") {
		text = strings.ReplaceAll(text, "//", "/")
	}
	return strings.ReplaceAll(text, "/./", "/")
}

func settingsFile(text string, own []string, shell bool) string {
	for _, file := range own {
		if strings.Contains(text, file) {
			return "the settings of Zerto AI Rewind"
		}
	}
	for _, file := range hookFiles {
		if strings.Contains(text, file) {
			return "the host's settings of hooks (" + strings.TrimSuffix(file, "/") + ")"
		}
	}
	for _, folder := range authored {
		if !shell && strings.Contains(text, folder) {
			return "what runs commands that no hook sees (" + strings.TrimSuffix(folder, "/") + ")"
		}
	}
	return ""
}

func eachText(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachText(item, visit)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // of several finds, the same one is told each time
			eachText(v[name], visit)
		}
	}
}
