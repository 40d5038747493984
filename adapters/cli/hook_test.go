package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

func (w *world) feed(stdin string, args ...string) outcome {
	w.t.Helper()
	var out, stderr strings.Builder
	code := cli.Run(w.t.Context(), cli.IO{In: strings.NewReader(stdin), Out: &out, Err: &stderr, Env: w.lookup}, args)
	return outcome{code, out.String(), stderr.String()}
}

func TestHookAsksWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	call := strings.Replace(hookCall, "TOOL", "mcp__someone__do_it", 1)
	inAuto := strings.Replace(call, `"default"`, `"auto"`, 1)
	for _, tt := range []struct {
		behaviour, call, variable string
		args                      []string
		want                      string
	}{
		{"by default, where the host asks", call, "", nil, `"ask"`},
		{"by default, where it may not", inAuto, "", nil, `"deny"`},
		{"never", call, "", []string{"--ask", "never"}, `"deny"`},
		{"never, by the environment", call, "never", nil, `"deny"`},
		{"where it may, by the environment", inAuto, "possible", nil, `"ask"`},
		{"a flag beats the environment", call, "never", []string{"--ask", "sure"}, `"ask"`},
	} {
		w := (&world{t: t}).with("ZERTO_REWIND_ASK", tt.variable).with("ZERTO_REWIND_STATE_DIR", filepath.Join(t.TempDir(), "state"))
		if o := w.feed(tt.call, append([]string{"hook"}, tt.args...)...); o.code != 0 || !strings.Contains(o.out, tt.want) {
			t.Errorf("%s: %+v, want %s", tt.behaviour, o, tt.want)
		}
	}
	if o := (&world{t: t}).with("ZERTO_REWIND_ASK", "maybe").feed(call, "hook"); o.code != 2 || o.out != "" {
		t.Errorf("a word that means nothing: %+v", o)
	}
}

// Cline reads stdout alone, so a hook that never came to its call has to cancel there.
func TestLaw6HookForClineCancelsWhateverFails(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"hook", "--host", "cline", "--bogus"},
		{"hook", "--host=cline", "extra"},
		{"hook", "--host", "cline", "--ask", "maybe"},
		{"hook", "--host", "cline"},
	} {
		o := (&world{t: t}).feed("", args...)
		var said struct{ Cancel bool }
		if err := json.Unmarshal([]byte(o.out), &said); err != nil || !said.Cancel || o.code != 2 || o.err == "" {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

func TestHookGuardsItsOwnSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := (&world{t: t}).with("ZERTO_REWIND_STATE_DIR", dir).with("ZERTO_REWIND_CATALOG", "")
	call := func(path string) string {
		input, _ := json.Marshal(map[string]any{"file_path": path, "content": "x"})
		return strings.Replace(strings.Replace(hookCall, "TOOL", "Write", 1), `{"node":"pve1","vmid":"web01"}`, string(input), 1)
	}
	if o := w.feed(call(dir+"/ledger.db"), "hook"); !strings.Contains(o.out, `"ask"`) {
		t.Errorf("the state folder: %+v", o)
	}
	linked := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	if o := w.with("ZERTO_REWIND_STATE_DIR", linked).feed(call(dir+"/ledger.db"), "hook"); !strings.Contains(o.out, `"ask"`) {
		t.Errorf("what the state folder leads to: %+v", o)
	}
	if o := w.with("HOME", filepath.Dir(dir)).feed(call("~/"+filepath.Base(dir)+"/ledger.db"), "hook"); !strings.Contains(o.out, `"ask"`) {
		t.Errorf("the state folder from home: %+v", o)
	}
	if lines := w.mustRun("audit", "--json").out; strings.Count(lines, `"decision":"ask"`) != 3 {
		t.Errorf("the record of the questions: %s", lines)
	}
	if o := w.feed(call("/src/main.go"), "hook"); o != (outcome{}) {
		t.Errorf("another file: %+v", o)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := strings.Replace(hookCall, "TOOL", "mcp__proxmox__stop_vm", 1)
	denied := w.feed(call, "explain", "--host", "claude")
	denied.want(t, 0)
	hook := w.feed(call, "hook", "--host", "claude")
	asJSON := w.feed(call, "explain", "--host", "claude", "--json")
	asJSON.want(t, 0)
	var explained struct {
		Host, Stdout, Stderr, Decision string
		ExitCode                       int
		Verdict                        struct {
			Decision string
			Targets  []string
		}
		Entry struct{ Tool string }
	}
	if err := json.Unmarshal([]byte(asJSON.out), &explained); err != nil {
		t.Fatal(err)
	}
	if got := (outcome{explained.ExitCode, explained.Stdout, explained.Stderr}); got != hook {
		t.Errorf("explained as %+v, answered as %+v", got, hook)
	}
	if explained.Host != "claude" || explained.Decision != "deny" || explained.Entry.Tool != "stop_vm" || len(explained.Verdict.Targets) != 1 {
		t.Errorf("%+v", explained)
	}
	golden(t, "explain-deny.txt", steady(denied.out))
	golden(t, "explain-broken.txt", w.feed("{}", "explain").out)
	golden(t, "explain-ask-degraded.txt", steady(w.feed(
		`{"turn_id":"1","model":"m","hook_event_name":"PreToolUse","tool_name":"mcp__someone__do_it","tool_input":{}}`, "explain").out))
	golden(t, "explain-read.json", w.feed(
		`{"hookName":"tool_call","tool_call":{"id":"1","name":"proxmox__get_vms","input":{}}}`, "explain", "--json").out)
}

func TestHookNotesThatAPersonSaidYes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := strings.Replace(hookCall, "TOOL", "mcp__someone__do_it", 1)
	after := strings.Replace(call, "PreToolUse", "PostToolUse", 1)
	noted := func() int { return strings.Count(w.mustRun("audit", "--json").out, `"kind":"ran"`) }
	if o := w.feed(call, "hook"); !strings.Contains(o.out, `"ask"`) {
		t.Fatalf("%+v", o)
	}
	for _, stdin := range []string{"{}", strings.Replace(after, `"default"`, `"auto"`, 1), strings.Replace(after, `"u"`, `"another"`, 1)} {
		if o := w.feed(stdin, "hook", "--event", "post"); o.code != 0 || o.out != "" || noted() != 0 {
			t.Errorf("%s: %+v, and %d calls were noted", stdin, o, noted())
		}
	}
	for range 2 {
		if o := w.feed(after, "hook", "--event", "post"); o != (outcome{}) || noted() != 1 {
			t.Errorf("%+v, and %d calls were noted, want 1", o, noted())
		}
	}
	if o := w.feed(after, "hook", "--event", "later"); o.code != 2 || o.out != "" {
		t.Errorf("%+v", o)
	}
}

// TestPersonIsAskedOncePerChangeByTheHook is the whole way of a yes: the question, the host that runs the call and tells so,
// and the calls that follow while the change goes on.
func TestPersonIsAskedOncePerChangeByTheHook(t *testing.T) {
	t.Parallel()
	known := filepath.Join(t.TempDir(), "catalog.json")
	text := `{"version": 1, "servers": [{"server": "mine", "tools": [{"names": ["poke"], "class": "unknown", "target": ["vmid"]}]}]}`
	if err := os.WriteFile(known, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t).with("ZERTO_REWIND_CATALOG", known)
	w.guard()
	call := func(id, vm string) string {
		return strings.NewReplacer("TOOL", "mcp__mine__poke", `"u"`, `"`+id+`"`, "web01", vm).Replace(hookCall)
	}
	asks := func(behaviour, stdin string, want bool) {
		t.Helper()
		if o := w.feed(stdin, "hook"); strings.Contains(o.out, `"ask"`) != want || !want && o != (outcome{}) {
			t.Errorf("%s: %+v, want a question: %v", behaviour, o, want)
		}
	}
	ran := func(id, vm string) {
		t.Helper()
		if o := w.feed(strings.Replace(call(id, vm), "PreToolUse", "PostToolUse", 1), "hook", "--event", "post"); o != (outcome{}) {
			t.Errorf("%+v, want silence", o)
		}
	}
	asks("the first call", call("1", "web01"), true)
	ran("2", "web01")
	asks("after a call that nobody was asked about", call("3", "web01"), true)
	ran("1", "web01")
	asks("after the yes", call("4", "web01"), false)
	asks("another machine", call("5", "db01"), true)
	w.mustRun("close", "c1")
	asks("after the change", call("6", "web01"), true)
}
