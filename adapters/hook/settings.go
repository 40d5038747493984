package hookadapter

import (
	"path"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
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

// settingsIn returns the file by which a call of the agent's own machine could rid itself of the hook, or "". An agent
// that was refused may look for one. It goes by the text of the call: a guard rail, not a sandbox.
func settingsIn(j judgement, args map[string]any, own []string) string {
	if j.verdict.Decision != gate.NoOpinion || j.verdict.Class == catalog.ReadOnly {
		return ""
	}
	shell := j.entry != nil && len(j.entry.Command) > 0
	found := ""
	eachText(args, func(text string) {
		for line := range strings.Lines(text) {
			// Of what a file tool is given, a path is one line, and a patch names its files on lines of its own.
			isPath := shell || len(line) == len(text) || strings.HasPrefix(line, "*** ") || strings.HasPrefix(line, "+++ ")
			if found == "" && isPath {
				found = settingsFile(line, own)
			}
		}
	})
	return found
}

func settingsFile(text string, own []string) string {
	text = strings.ToLower(strings.ReplaceAll(text, `\`, "/"))
	for strings.Contains(text, "//") {
		text = strings.ReplaceAll(text, "//", "/")
	}
	text = strings.ReplaceAll(text, "/./", "/")
	for _, file := range own {
		if file != "" && strings.Contains(text, strings.ToLower(strings.ReplaceAll(file, `\`, "/"))) {
			return "the settings of Zerto AI Rewind"
		}
	}
	cleaned := path.Clean(text)
	for _, file := range hookFiles {
		if strings.Contains(text, file) || strings.Contains(cleaned, file) {
			return "the host's settings of hooks (" + strings.TrimSuffix(file, "/") + ")"
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
		for _, item := range v {
			eachText(item, visit)
		}
	}
}
