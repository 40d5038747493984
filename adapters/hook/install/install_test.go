package install_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

var update = flag.Bool("update", false, "write the golden files")

const binary = "/opt/zerto/bin/zerto-rewind"

// bench is a home, a project, and the file of one host's hook.
type bench struct {
	t     *testing.T
	place install.Place
	hook  install.Hook
	path  string
}

func newBench(t *testing.T, host string) *bench {
	t.Helper()
	root := t.TempDir()
	b := &bench{
		t: t, place: install.Place{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "project"), OS: "linux"},
		hook: install.Hook{Host: host, Scope: install.User, Binary: binary},
	}
	c, err := install.Plan(b.hook, b.place)
	if err != nil {
		t.Fatal(err)
	}
	b.path = c.Path
	return b
}

func (b *bench) write(text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// text returns what the file holds, and "-" when it is not there.
func (b *bench) text() string {
	b.t.Helper()
	data, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) install() {
	b.t.Helper()
	b.apply(install.Plan(b.hook, b.place))
}

func (b *bench) uninstall() {
	b.t.Helper()
	b.apply(install.PlanRemoval(b.hook, b.place))
}

func (b *bench) apply(c *install.Change, err error) {
	b.t.Helper()
	if err == nil {
		err = c.Apply()
	}
	if err != nil {
		b.t.Fatalf("%s: %v", b.hook.Host, err)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// files are settings as people have them, with an event of the host for EVENT.
var files = map[string]string{
	"empty":      "",
	"blank":      "\n\n",
	"object":     "{}",
	"spaced":     "{\n}\n",
	"minified":   `{"model":"x","hooks":{"EVENT":[{"matcher":"Edit","hooks":[{"type":"command","command":"lint"}]}]}}`,
	"no hooks":   "{\n  \"model\": \"x\",\n  \"z\": {\"a\": [1, 2]},\n  \"b\": \"\\u00e9\\/\"\n}\n",
	"no newline": "{\n    \"model\": \"x\"\n}",
	"tabs":       "{\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}\n",
	"crlf":       "{\r\n  \"model\": \"x\",\r\n  \"hooks\": {}\r\n}\r\n",
	"marked":     "\ufeff{\n  \"model\": \"x\"\n}\n",
	"commented": "// mine\n{\n  // the model\n  \"model\": \"x\", // best\n  \"hooks\": { // all of them\n    \"EVENT\": [ /* none */ ], // yet\n" +
		"  },\n  // the end\n}\n// bye\n",
	"last comment": "{\n  \"model\": \"x\" // best\n  // end\n}\n",
	"foreign": "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": []}],\n    \"EVENT\": [\n      {\n        \"matcher\": \"Edit\",\n        \"hooks\": [\n" +
		"          {\"type\": \"command\", \"command\": \"lint\"},\n          { \"type\": \"command\", \"command\": \"zerto\", \"args\": [\"hook\"] }\n        ]\n      },\n" +
		"      {\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"audit | tee log\"}]}\n    ]\n  },\n  \"zz\": null\n}\n",
	"trailing":        "{\n  \"hooks\": {\n    \"EVENT\": [\n      {\"matcher\": \"a\", \"hooks\": [],},\n    ],\n  },\n}\n",
	"empty event":     "{\n  \"hooks\": {\n    \"EVENT\": []\n  }\n}\n",
	"one line":        "{ \"hooks\": { \"EVENT\": [ ] }, \"a\": 1 }\n",
	"comments within": "{ // a\n \"hooks\": { // b\n  \"EVENT\": [ // c\n  ] // d\n } // e\n}",
	"escaped name":    "{\n  \"ho\\u006fks\": {\n    \"Stop\": []\n  }\n}\n",
}

// fileOf puts the host's event into one of the files above.
func fileOf(host, text string) string {
	event, isNested := events(host)
	if !isNested {
		text = strings.ReplaceAll(text, `{"matcher":"Edit","hooks":[{"type":"command","command":"lint"}]}`, `{"command":"lint"}`)
	}
	return strings.ReplaceAll(text, "EVENT", event)
}

func events(host string) (event string, isNested bool) {
	switch host {
	case "claude", "codex":
		return "PreToolUse", true
	case "gemini":
		return "BeforeTool", true
	case "cursor":
		return "beforeShellExecution", false
	case "windsurf":
		return "pre_run_command", false
	}
	return "preToolUse", false
}

func TestGoldenSettings(t *testing.T) {
	t.Parallel()
	for _, host := range install.Hosts() {
		for _, name := range []string{"nothing", "commented", "foreign", "minified"} {
			if host == "cline" && name != "nothing" {
				continue
			}
			t.Run(host+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, host)
				if name != "nothing" {
					b.write(fileOf(host, files[name]))
				}
				b.install()
				golden(t, host+"-"+name+".golden", b.text())
			})
		}
	}
}

func TestLineEndingsAndMarkStay(t *testing.T) {
	t.Parallel()
	for _, host := range install.Hosts() {
		if host == "cline" {
			continue
		}
		b := newBench(t, host)
		b.write("\ufeff" + fileOf(host, files["crlf"]))
		b.install()
		text, marked := strings.CutPrefix(b.text(), "\ufeff")
		if n := strings.Count(text, "\n"); !marked || n < 8 || n != strings.Count(text, "\r\n") {
			t.Errorf("%s: %q", host, b.text())
		}
	}
}

// TestSecondInstallationChangesNoByte covers pitfall 9: Codex drops its trust in a hook whose definition changed.
func TestSecondInstallationChangesNoByte(t *testing.T) {
	t.Parallel()
	everyFile(t, func(t *testing.T, b *bench, before string) {
		b.install()
		once := b.text()
		c, err := install.Plan(b.hook, b.place)
		if err != nil {
			t.Fatal(err)
		}
		if c.Changed() || c.Backup != "" {
			t.Errorf("a second installation would write %q", c.After)
		}
		b.install()
		if diff := cmp.Diff(once, b.text()); diff != "" {
			t.Errorf("after a second installation (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(before, "-") && once == before {
			t.Error("nothing was installed")
		}
	})
}

func TestUninstallationGivesBackTheBytes(t *testing.T) {
	t.Parallel()
	everyFile(t, func(t *testing.T, b *bench, before string) {
		b.install()
		b.install()
		b.uninstall()
		if diff := cmp.Diff(before, b.text()); diff != "" {
			t.Errorf("after the uninstallation (-want +got):\n%s", diff)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(b.path), "*backup*"))
		if err != nil || len(left) > 0 {
			t.Errorf("backups are left: %v, %v", left, err)
		}
		b.uninstall()
		if diff := cmp.Diff(before, b.text()); diff != "" {
			t.Errorf("after a second uninstallation (-want +got):\n%s", diff)
		}
	})
}

// TestUninstallationKeepsWhatOthersWroteMeanwhile has no backup to go back to.
func TestUninstallationKeepsWhatOthersWroteMeanwhile(t *testing.T) {
	t.Parallel()
	everyFile(t, func(t *testing.T, b *bench, before string) {
		if b.hook.Host == "cline" {
			return
		}
		b.install()
		edited := strings.Replace(b.text(), "{", `{ "later": "MARKER-later",`, 1)
		b.write(edited)
		b.uninstall()
		got := b.text()
		if !strings.Contains(got, "MARKER-later") || strings.Contains(got, "zerto-rewind") {
			t.Errorf("after the uninstallation:\n%s", got)
		}
		for _, word := range []string{"// mine", "// best", "// yet", "// a", "// b", "// c", "// d", "// e", "// the end", "// bye", "// end", "lint", "audit | tee log", `"Stop"`} {
			if strings.Contains(before, word) && !strings.Contains(got, word) {
				t.Errorf("%s is gone:\n%s", word, got)
			}
		}
		b.install()
		if strings.Count(b.text(), "--host")+strings.Count(b.text(), `"--host"`) == 0 {
			t.Errorf("not installed again:\n%s", b.text())
		}
	})
}

// everyFile runs a test for every host without a file, and for one of each form with every file.
func everyFile(t *testing.T, test func(t *testing.T, b *bench, before string)) {
	t.Helper()
	for _, host := range install.Hosts() {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, host)
			test(t, b, "-")
			if host != "claude" && host != "cursor" && host != "windsurf" {
				return
			}
			for name, text := range files {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					b := newBench(t, host)
					text := fileOf(host, text)
					b.write(text)
					test(t, b, text)
				})
			}
		})
	}
}

func TestDamagedSettingsAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text      string
		line, col int
	}{
		"a missing comma":     {"{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3},
		"an open string":      {"{\n  \"a\": \"x\n}", 3, 2},
		"no end":              {"{\n  \"a\": 1,\n", 3, 1},
		"a second document":   {"{}\n{}", 2, 1},
		"a list":              {"\n [1]", 2, 2},
		"a single quote":      {"{'a': 1}", 1, 2},
		"Latin-1":             {"{\n \"a\": \"\xe9\"}", 2, 8},
		"UTF-16":              {"\xff\xfe{\x00}\x00", 0, 0},
		"hooks twice":         {"{\n\"hooks\": {},\n\"hooks\": {}}", 3, 1},
		"hooks is a list":     {"{\n \"hooks\": []}", 2, 11},
		"an event of text":    {"{\n \"hooks\": {\"PreToolUse\": \"x\"}}", 2, 26},
		"an event twice":      {"{\n \"hooks\": {\"Stop\": [], \"Stop\": []}}", 2, 24},
		"a flat entry":        {"{\"hooks\": {\"PreToolUse\": [\n{\"type\": \"command\", \"command\": \"x\"}]}}", 2, 1},
		"a flat entry beside": {"{\"hooks\": {\"Stop\": [\n{\"type\": \"command\", \"command\": \"x\"}]}}", 2, 1},
		"a matcher of parts":  {"{\"hooks\": {\"PreToolUse\": [{\"hooks\": [],\n\"matcher\": {\"tool\": \"x\"}}]}}", 2, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			b.write(tt.text)
			for what, plan := range map[string]func(install.Hook, install.Place) (*install.Change, error){"installing": install.Plan, "removing": install.PlanRemoval} {
				_, err := plan(b.hook, b.place)
				var damaged *install.DamagedError
				var shape *install.ShapeError
				got := [2]int{}
				switch {
				case errors.As(err, &damaged):
					got = [2]int{damaged.Line, damaged.Column}
				case errors.As(err, &shape):
					got = [2]int{shape.Line, shape.Column}
				default:
					t.Fatalf("%s: error %v", what, err)
				}
				if want := [2]int{tt.line, tt.col}; got != want {
					t.Errorf("%s: at %v, want %v: %v", what, got, want, err)
				}
				if !strings.Contains(err.Error(), b.path) || !strings.Contains(err.Error(), "left as it is") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if b.text() != tt.text {
				t.Errorf("the file was touched: %q", b.text())
			}
		})
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "cursor")
	b.write(`{"version": 2}`)
	if _, err := install.Plan(b.hook, b.place); err == nil || !strings.Contains(err.Error(), "1:13") {
		t.Errorf("error %v", err)
	}
}

// TestOneEntryIsLeft mends what older versions, other paths and hands have left (B76).
func TestOneEntryIsLeft(t *testing.T) {
	t.Parallel()
	const right = `{"type":"command","command":"/opt/zerto/bin/zerto-rewind","args":["hook","--host","claude"],"timeout":15,"onFailure":"block","statusMessage":"Is there a guard?"}`
	moved := strings.Replace(right, "/opt/zerto/bin", "/usr/bin", 1)
	for name, groups := range map[string]string{
		"another path":        `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + moved + `]}`,
		"two of them":         `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + right + `]},{"matcher":"*","hooks":[` + moved + `]}`,
		"two in one group":    `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + right + `,` + moved + `]}`,
		"the same twice":      `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + right + `]},{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + right + `]}`,
		"a shell's line":      `{"matcher":"*","hooks":[{"type":"command","command":"/old/zerto-rewind hook --host claude"}]}`,
		"a quoted line":       `{"matcher":"*","hooks":[{"type":"command","command":"'/my tools/zerto-rewind' hook --host=claude"}]}`,
		"a narrow matcher":    `{"matcher":"mcp__zerto","hooks":[` + right + `]}`,
		"no matcher":          `{"hooks":[` + right + `]}`,
		"a foreign member":    `{"matcher":"x","note":"mine","hooks":[` + right + `]}`,
		"a foreign handler":   `{"matcher":"x","hooks":[` + right + `,{"type":"command","command":"lint"}]}`,
		"asynchronous":        `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + strings.Replace(right, `"timeout"`, `"async":true,"timeout"`, 1) + `]}`,
		"a short time-out":    `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + strings.Replace(right, "15", "1", 1) + `]}`,
		"an endless one":      `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + strings.Replace(right, "15", "1e400", 1) + `]}`,
		"fails open":          `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","hooks":[` + strings.Replace(right, `"onFailure":"block",`, "", 1) + `]}`,
		"blocks the group":    `{"matcher":"mcp__.*|Bash|PowerShell|Edit|Write","onFailure":"block","hooks":[` + strings.Replace(right, `"onFailure":"block",`, "", 1) + `]}`,
		"a binary of Windows": `{"matcher":"*","hooks":[{"type":"command","command":"C:\\Users\\First Last\\zerto-rewind.exe","args":["hook","--host","claude"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			b.write(`{"hooks":{"PreToolUse":[{"matcher":"a","hooks":[{"type":"command","command":"first"}]},` + groups + `,{"matcher":"z","hooks":[{"type":"command","command":"last"}]}]}}`)
			b.install()
			s, err := install.Inspect(b.hook, b.place)
			if err != nil {
				t.Fatal(err)
			}
			s.Entries = slices.DeleteFunc(s.Entries, func(e install.Entry) bool { return e.After })
			if len(s.Entries) != 1 || len(s.Drift()) != 0 || s.Entries[0].Binary != binary {
				t.Errorf("%+v, drift %v, in:\n%s", s.Entries, s.Drift(), b.text())
			}
			for _, foreign := range []string{`"first"`, `"last"`} {
				if !strings.Contains(b.text(), foreign) {
					t.Errorf("%s is gone:\n%s", foreign, b.text())
				}
			}
			for _, foreign := range []string{`"lint"`, `"mine"`} {
				if strings.Contains(groups, foreign) && foreign != `"mine"` && !strings.Contains(b.text(), foreign) {
					t.Errorf("%s is gone:\n%s", foreign, b.text())
				}
			}
			b.uninstall()
			if strings.Contains(b.text(), "zerto-rewind") {
				t.Errorf("left behind:\n%s", b.text())
			}
		})
	}
}

func TestForeignCommandsAreNotTakenForOurs(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"zerto-rewind", "zerto-rewind verify --host x", "other hook --host claude", "echo zerto-rewind hook --host claude",
		"zerto-rewind hook --host claude || true", "sh -c 'zerto-rewind hook --host claude'", "zerto-rewind hook --host $HOST", "zerto-rewind hook 'x",
	} {
		b := newBench(t, "codex")
		b.write(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"` + command + `"}]}]}}`)
		before := b.text()
		b.install()
		if !strings.Contains(b.text(), command) {
			t.Errorf("%s was taken for ours:\n%s", command, b.text())
		}
		b.uninstall()
		if diff := cmp.Diff(before, b.text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

func TestAnotherHookScriptIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, "cline")
	b.write("#!/bin/sh\nexec mine\n")
	if _, err := install.Plan(b.hook, b.place); err == nil || !strings.Contains(err.Error(), "exec "+binary+" hook --host cline") {
		t.Errorf("error %v", err)
	}
	b.uninstall()
	if b.text() != "#!/bin/sh\nexec mine\n" {
		t.Errorf("the script is %q", b.text())
	}
}
