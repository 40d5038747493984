package install

// gaps tells what a host does not show to its hooks, or does in spite of them, as far as is known (hooks 1.4, 1.6, 1.7 and 2;
// the reports behind it are in hooks 3).
var gaps = map[string][]string{
	"claude": {
		"before version 2.1.295 the setting that blocks when the hook itself fails is ignored: a call runs when the hook cannot start or is too slow",
		"files that a person mentions with @ and skills that a person starts are not shown to the hook",
		"--bare, --safe-mode and disableAllHooks switch hooks off; only those of managed settings stay",
		"a session in the cloud does not read the settings of a person",
		"there are reports of calls by subagents, and of MCP calls on Windows, that no hook saw",
		"an agent that may write files may write these settings: the hook asks about the plain ways of doing so, and knows no other",
	},
	"codex": {
		"the call runs when the hook fails, cannot start or is too slow, and no setting changes that",
		"a hook that was not reviewed in /hooks is skipped without a word, and each change has to be reviewed again",
		"commands that nested exec of code mode runs are not shown to the hook",
		"on Windows some ways of running commands and apply_patch go past it",
		"a question to a person is not possible: it becomes a refusal",
	},
	"cursor": {
		"what writes files is not shown to the hook, settings of hooks included",
		"a hooks.json with one event name that Cursor does not know is dropped as a whole, without a word",
		"print mode runs fewer hooks, and an agent in the cloud reads the settings of the project alone",
		"a question to a person was seen to be refused without being shown",
	},
	"gemini": {
		"the call runs when the hook is killed, is too slow or exits with 1, and no setting changes that",
		"the names of MCP tools are cut to 63 characters; the hook goes by the server's own names, which an older version does not send",
		"a folder that is not trusted runs no hooks of its project",
	},
	"copilot": {
		"the call runs when the hook is too slow, and no setting changes that",
		"the Copilot App runs a call on a question without asking it",
		"an agent in the cloud reads the project's file alone, and has none of the programs of this machine",
	},
	"vscode": {
		"agent hooks are a preview: an organisation can switch them off, and an agent that is not VS Code's own has hooks of its own",
		"the call runs when the hook is too slow or exits with another code than 2",
		"the name of an MCP tool carries its server's name cut short",
		"with approvals bypassed, a refusal was reported not to stop the call",
		"it may be that hooks of a person are read only where chat.hookFilesLocations names their folder",
	},
	"windsurf": {
		"what writes files is not shown to the hook, settings of hooks included",
		"the call runs when the hook exits with another code than 2; what happens when it is too slow is not documented",
		"a question to a person is not possible: it becomes a refusal",
	},
	"cline": {
		"the call runs when the hook fails, is too slow or is not executable, and no setting changes that",
		"hooks have to be switched on in the settings of Cline",
	},
}

// Gaps tells what is known not to be covered by a hook of that host, one sentence each.
func Gaps(host string) []string { return append([]string(nil), gaps[host]...) }
