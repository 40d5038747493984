package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
)

// operating runs a command in front of a person who types in.
func (w *world) operating(in string, args ...string) outcome {
	w.t.Helper()
	var out, err bytes.Buffer
	code := cli.Run(w.t.Context(), cli.IO{
		In: strings.NewReader(in), Out: &out, Err: &err, Env: w.lookup, Operator: func() bool { return true },
	}, args)
	return outcome{code, out.String(), err.String()}
}

// stateful is a world without a ZVM that may keep things.
func stateful(t *testing.T) (w *world, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, env: map[string]string{"ZERTO_REWIND_STATE_DIR": dir, "ZERTO_REWIND_AGENT": "patch-bot"}}, dir
}

// recorded returns what the ledger's record says of rulings.
func recorded(t *testing.T, dir string) []string {
	t.Helper()
	l, err := ledger.Open(t.Context(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var events []string
	err = l.Lines(t.Context(), time.Time{}, func(line ledger.Line) error {
		text, err := json.Marshal(line)
		events = append(events, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func (w *world) class(server, tool string) string {
	w.t.Helper()
	var got struct{ Class string }
	if err := json.Unmarshal([]byte(w.mustRun("check", server, tool, "--json").out), &got); err != nil {
		w.t.Fatal(err)
	}
	return got.Class
}

// Law 6: what would let a tool run without a guard is a person's to decide, and nobody else gets so far.
func TestLaw6OnlyAPersonMakesAToolReadOnly(t *testing.T) {
	t.Parallel()
	rule := []string{"catalog", "rule", "home-made", "look", "read_only"}
	for _, tt := range []struct {
		behaviour string
		run       func(w *world) outcome
		code      int
		says      string
		basis     string // of the ruling, empty if there is none
	}{
		{"nobody there", func(w *world) outcome { return w.run(rule...) }, 64, "--i-am-a-human-operator", ""},
		{"somebody who answers something else", func(w *world) outcome { return w.operating("y\n", rule...) }, 1, "nothing was done", ""},
		{"somebody who answers nothing", func(w *world) outcome { return w.operating("", rule...) }, 1, "nothing was done", ""},
		{"a person", func(w *world) outcome { return w.operating("look\n", rule...) }, 0, "home-made/look is read_only", "operator-proven"},
		{"somebody who says to be one", func(w *world) outcome { return w.run(append(rule, "--i-am-a-human-operator")...) }, 0, "", "operator-claimed"},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			w, dir := stateful(t)
			w.env["ZERTO_REWIND_HUMAN"] = "Jane"
			tt.run(w).want(t, tt.code, tt.says)
			text, _ := os.ReadFile(filepath.Join(dir, "catalog.json"))
			if tt.basis == "" {
				if len(text) > 0 || w.class("home-made", "look") != "unknown" {
					t.Errorf("a ruling was written:\n%s", text)
				}
				return
			}
			if !strings.Contains(string(text), `"by": "Jane (`) || !strings.Contains(string(text), tt.basis) || w.class("home-made", "look") != "read_only" {
				t.Errorf("the file is\n%s", text)
			}
			events := recorded(t, dir)
			if len(events) != 1 || !strings.Contains(events[0], `"ruled"`) || !strings.Contains(events[0], tt.basis) || !strings.Contains(events[0], "Jane (") {
				t.Errorf("the record is %s", events)
			}
		})
	}
}

// An agent may rule what is stricter, without a terminal, and it is recorded as the agent's.
func TestLaw6AnAgentMakesToolsStricterAlone(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	if got := w.class("ssh-mcp", "read-command"); got != "read_only" {
		t.Fatalf("before: %s", got)
	}
	w.mustRun("catalog", "add-mutating", "ssh-mcp", "read-command")
	w.mustRun("catalog", "add-mutating", "home-made", "look")
	for _, name := range [][2]string{{"ssh-mcp", "read-command"}, {"home-made", "look"}} {
		if got := w.class(name[0], name[1]); got != "mutating" {
			t.Errorf("%s is %s, want mutating", name, got)
		}
	}
	if o := w.mustRun("catalog", "add-mutating", "ssh-mcp", "run-command"); !strings.Contains(o.out, "nothing was written") {
		t.Errorf("stdout:\n%s", o.out)
	}
	w.run("catalog", "add-mutating", "zerto-rewind", "zerto_guard_before_mutate").want(t, 1, "lock out every change")
	events := recorded(t, dir)
	if len(events) != 2 || !strings.Contains(events[0], "patch-bot") {
		t.Errorf("the record is %s", events)
	}
}

func TestRulingInJSON(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	o := w.mustRun("catalog", "add-mutating", "ssh-mcp", "read-command", "--json")
	text := strings.ReplaceAll(steady(o.out), dir, "STATE")
	at := strings.Index(text, `"at": "`) + len(`"at": "`)
	golden(t, "catalog-add-mutating.json", text[:at]+"NOW"+text[at+len("2026-11-29T10:00:00Z"):])
}

// A ruling that the ledger cannot take still counts, and that is said.
func TestARulingWithoutLedgerStands(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	w.env = map[string]string{"ZERTO_REWIND_CATALOG": filepath.Join(dir, "mine.json")}
	o := w.mustRun("catalog", "add-mutating", "home-made", "look", "--json")
	o.want(t, 0, "could not be recorded")
	if !strings.Contains(o.out, `"recorded": false`) || w.class("home-made", "look") != "mutating" {
		t.Errorf("stdout:\n%s", o.out)
	}
	w.env = nil
	w.run("catalog", "add-mutating", "home-made", "look").want(t, 64, "ZERTO_REWIND_CATALOG")
}

const toolsList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[
	{"name":"look","description":"Looks.","inputSchema":{"type":"object","properties":{"vm":{}}},"annotations":{"readOnlyHint":true}},
	{"name":"restart","description":"Restarts\n\u001b[2J // ]} \u202e","inputSchema":{"type":"object","properties":{"host":{},"\n// x":{}}},"annotations":{"readOnlyHint":false}},
	{"name":"wipe","annotations":{"destructiveHint":true}},
	{"name":"flr.browse"}, {"name":"Look"}]}}`

func TestARulingIsBoundToTheDefinitionThatWasSeen(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	list := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(list, []byte(strings.Replace(toolsList, `, {"name":"Look"}`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.operating("wipe\n", "catalog", "rule", "svc", "wipe", "read_only", "--fingerprint-from", list, "--expires", "7d", "--json")
	o.want(t, 0, "it is not read-only")
	var got struct {
		Entry struct {
			Ruling struct {
				At, Until   time.Time
				Fingerprint map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(o.out), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Entry.Ruling; r.Until.Sub(r.At) != 7*24*time.Hour || len(r.Fingerprint) != 5 {
		t.Errorf("ruling %+v", r)
	}
	w.run("catalog", "rule", "svc", "nowhere", "read_only", "--fingerprint-from", list, "--i-am-a-human-operator").want(t, 1, "has no tool nowhere")
	w.run("catalog", "rule", "svc", "look", "safe", "--i-am-a-human-operator").want(t, 64, "CLASS is")
	w.run("catalog", "rule", "-", "Bash", "read_only", "--i-am-a-human-operator").want(t, 1, "command lines")
}

func TestImportDraftsAndBelievesNothing(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	list := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(list, []byte(toolsList), 0o600); err != nil {
		t.Fatal(err)
	}
	run := []string{"catalog", "import", "--from-tools-list", list, "--server", "svc"}
	printed := w.mustRun(run...)
	golden(t, "catalog-import.txt", printed.out)
	printed.want(t, 0, "no draft for flr.browse: hosts refuse", "no draft for Look: another tool")
	if _, err := os.Stat(filepath.Join(dir, "catalog.json")); err == nil {
		t.Error("an import without --write has written")
	}
	golden(t, "catalog-import.json", w.mustRun(append(run, "--json")...).out)
	w.mustRun(append(run, "--write")...)
	text, err := os.ReadFile(filepath.Join(dir, "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed.out, string(text)); diff != "" {
		t.Errorf("what is written differs from what was printed (-printed +written):\n%s", diff)
	}
	again := w.mustRun(append(run, "--write")...)
	again.want(t, 0, "no draft for look: the catalogue has it as unknown")
	for tool, want := range map[string]string{"look": "unknown", "restart": "mutating", "wipe": "mutating"} {
		if got := w.class("svc", tool); got != want {
			t.Errorf("%s is %s, want %s", tool, got, want)
		}
	}
	w.run("catalog", "import", "--server", "svc").want(t, 64, "from-tools-list")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	path := filepath.Join(dir, "catalog.json")
	for _, tt := range []struct {
		name, text string
		code       int
	}{
		{"valid", "// mine\n{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\", \"b\"], \"class\": \"mutating\"}, {\"names\": [\"c\"], \"class\": \"read_only\",\n" +
			"\"ruling\": {\"by\": \"jane\", \"at\": \"2020-01-01T00:00:00Z\", \"until\": \"2020-02-01T00:00:00Z\", \"basis\": \"operator-proven\"}}]}]}", 0},
		{"damaged", "{\"version\": 2,\n\"servrs\": []}", 1},
		{"dangling", `{"version": 1, "aliases": {"mine": "nobody"}}`, 1},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for format, args := range map[string][]string{"txt": {"catalog", "validate"}, "json": {"catalog", "validate", path, "--json"}} {
			o := w.run(args...)
			o.want(t, tt.code)
			golden(t, "catalog-validate-"+tt.name+"."+format, strings.ReplaceAll(o.out, path, "FILE"))
		}
	}
	w.run("catalog", "validate", filepath.Join(dir, "none")).want(t, 1, "none")
	(&world{t: t}).run("catalog", "validate").want(t, 64, "name one")
}

func TestTheStateFoldersCatalogueIsUsedIfItIsThere(t *testing.T) {
	t.Parallel()
	w, dir := stateful(t)
	if got := w.class("mine", "frob"); got != "unknown" {
		t.Errorf("without a file: %s", got)
	}
	w.mustRun("catalog", "add-mutating", "mine", "frob")
	if got := w.class("mine", "frob"); got != "mutating" {
		t.Errorf("with one: %s", got)
	}
	if o := w.mustRun("catalog", "list", "--server", "mine"); !strings.Contains(o.out, filepath.Join(dir, "catalog.json")) {
		t.Errorf("stdout:\n%s", o.out)
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("check", "mine", "frob").want(t, 64, "catalog.json:1:2: ")
}

// answers passes on what a server writes, and closes seen at the answer to request 2.
type answers struct {
	all  bytes.Buffer
	seen chan struct{}
}

func (a *answers) Write(b []byte) (int, error) {
	n, err := a.all.Write(b)
	if bytes.Contains(b, []byte(`"id":2`)) {
		close(a.seen)
	}
	return n, err
}

// What an agent rules over MCP is in the file and in the record before the answer is.
func TestAddMutatingOverMCP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t).with("ZERTO_REWIND_STATE_DIR", dir)
	in, send := io.Pipe()
	out := &answers{seen: make(chan struct{})}
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(t.Context(), cli.IO{In: in, Out: out, Err: &stderr, Env: w.lookup}, []string{"mcp"})
	}()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"zerto_add_mutating_tool","arguments":{"server":"home-made","tool":"look"}}}`,
	} {
		if _, err := io.WriteString(send, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-out.seen:
	case code := <-ended:
		t.Fatalf("exit code %d, stderr:\n%s", code, &stderr)
	}
	send.Close()
	<-ended
	if got := w.class("home-made", "look"); got != "mutating" || !strings.Contains(out.all.String(), `"changed":true`) {
		t.Errorf("the tool is %s; answers:\n%s", got, &out.all)
	}
	if events := recorded(t, dir); len(events) != 1 || !strings.Contains(events[0], "patch-bot") {
		t.Errorf("the record is %s; stderr:\n%s", events, &stderr)
	}
}
