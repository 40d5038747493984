package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// The golden files pin what each command prints: the JSON names are a promise.
func TestOutputOfEachCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"find", []string{"find", "web01"}},
		{"protect", []string{"protect", "web01", "--action", "upgrade nginx", "--change", "c2"}},
		{"guards", []string{"guards", "web01", "--since", "0"}},
		{"guards-none", []string{"guards", "db01"}},
		{"browse", []string{"browse", "--change", "c1", "/etc"}},
		{"task", []string{"task", "TASK"}},
		{"task-wait", []string{"task", "TASK", "--wait"}},
		{"check", []string{"check", "proxmox", "stop_vm"}},
		{"check-unknown", []string{"check", "nobody", "frob"}},
		{"check-built-in", []string{"check", "-", "Read"}},
		{"check-shell", []string{"check", "Bash"}},
		{"check-full-name", []string{"check", "mcp__ssh-mcp__run-command"}},
		{"check-undo", []string{"check", "proxmox", "delete_snapshot"}},
		{"catalog-show", []string{"catalog", "show", "ansible", "ansible-service-manager"}},
		{"catalog-show-unknown", []string{"catalog", "show", "nobody", "frob"}},
		{"catalog-list", []string{"catalog", "list", "--server", "esxi-mcp-server"}},
		{"catalog-list-none", []string{"catalog", "list", "--server", "nobody"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := afterOneGuard(t, tt.args)
			golden(t, tt.name+".txt", steady(text.out))
			document := afterOneGuard(t, append(tt.args, "--json"))
			golden(t, tt.name+".json", steady(document.out))
			if !json.Valid([]byte(document.out)) || text.err != "" || document.err != "" {
				t.Errorf("not one JSON document alone, or words on stderr:\n%s%s", text.err, document.err)
			}
		})
	}
}

// afterOneGuard runs a command in a world of its own that has change c1. TASK stands for the id of a task.
func afterOneGuard(t *testing.T, args []string) outcome {
	t.Helper()
	w := newWorld(t)
	w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	w.guard()
	w.sim.Advance(2 * time.Minute) // an insert that has just ended would be waited for by the next one
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "TASK" {
			args[i] = w.sim.Tasks()[0].ID
		}
	}
	return w.mustRun(args...)
}

func TestProtectWithoutAnAgentIsWarnedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.without("ZERTO_REWIND_AGENT").mustRun("protect", "web01", "--action", "x")
	o.want(t, 0, "level=WARN", "no agent is named", "ZERTO_REWIND_AGENT")
	if n := strings.Count(o.err, "no agent"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func TestGuardsShowTheActionAsProtectDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	protect := w.mustRun("protect", "web01", "--action", "stop | start\tnginx")
	guards := w.mustRun("guards", "web01")
	for _, o := range []outcome{protect, guards} {
		if !strings.Contains(o.out, "stop / start nginx") {
			t.Errorf("stdout:\n%s", o.out)
		}
	}
}

func TestGuardsReachAsFarBackAsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	w.sim.Advance(2 * time.Hour)
	for since, found := range map[string]bool{"1h": false, "119m": false, "3h": true, "1d": true, "0": true} {
		if o := w.mustRun("guards", "web01", "--since", since); strings.Contains(o.out, "c1") != found {
			t.Errorf("--since %s: want found %t:\n%s", since, found, o.out)
		}
	}
}

func TestRecoverWritesTheFileAndItsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	dest := filepath.Join(t.TempDir(), "hosts")
	text := w.mustRun("recover", "--change", "c1", "/etc/hosts", "-o", dest)
	golden(t, "recover.txt", strings.ReplaceAll(steady(text.out), dest, "DEST"))
	document := w.mustRun("recover", "--change", "c1", "--vm", "web01", "/etc/hosts", "-o", dest, "--force", "--json")
	golden(t, "recover.json", strings.ReplaceAll(steady(document.out), dest, "DEST"))
	if got, err := os.ReadFile(dest); err != nil || string(got) != "127.0.0.1 localhost\n" {
		t.Errorf("recovered %q, %v", got, err)
	}
	if live := w.sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", dest).want(t, 1, "exist")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	short := emptyWorld(t).mustRun("--version").out
	if long := emptyWorld(t).mustRun("version").out; !strings.HasPrefix(short, "zerto-rewind ") || strings.Fields(short)[1] != strings.Fields(long)[1] {
		t.Errorf("--version printed %q, version %q", short, long)
	}
	var got map[string]string
	o := emptyWorld(t).mustRun("version", "--json")
	if err := json.Unmarshal([]byte(o.out), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"version", "revision", "go"} {
		if _, ok := got[name]; !ok || len(got) != 3 {
			t.Errorf("version --json printed %s", o.out)
		}
	}
}

// Names that a guest chose must not forge lines or steer a terminal; JSON keeps them exact.
func TestHostileNamesStayOnTheirLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hostile := []string{
		"esc\x1b[2J", "line\nFile  1  forged", "osc\x1b]8;;x\a", "cr\rx", "bidi\u202etxt", "zero\u200bwidth",
		"sep\u2028x", "tag\U000e0041",
	}
	for _, name := range hostile {
		w.write("/in/"+name, "x")
	}
	w.guard()
	text := w.mustRun("browse", "--change", "c1", "/in").out
	if lines := strings.Count(text, "\n"); lines != len(hostile)+1 {
		t.Errorf("%d lines for %d files:\n%q", lines, len(hostile), text)
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); at >= 0 {
		t.Errorf("%q got through", text[at:])
	}
	var listing struct{ Items []struct{ Name string } }
	if err := json.Unmarshal([]byte(w.mustRun("browse", "--change", "c1", "/in", "--json").out), &listing); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, i := range listing.Items {
		names[i.Name] = true
	}
	for _, name := range hostile {
		if !names[name] {
			t.Errorf("JSON lost %q", name)
		}
	}
	dest := filepath.Join(t.TempDir(), "out")
	w.mustRun("recover", "--change", "c1", "/in/"+hostile[0], "-o", dest)
	o := w.run("recover", "--change", "c1", "/in/none\x1b[2J", "-o", dest)
	if strings.ContainsRune(o.err, '\x1b') {
		t.Errorf("the error shows %q", o.err)
	}
}

func TestAFolderThatIsNotWholeIsWarnedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.BrowseAlwaysFirstPage))
	if err := w.web01.Guest().WriteManyFiles("/many", 2500); err != nil {
		t.Fatal(err)
	}
	w.guard()
	w.mustRun("browse", "--change", "c1", "/many").want(t, 0, "level=WARN", "hold back")
}

func TestProgressIsForPeopleOrOnRequest(t *testing.T) {
	t.Parallel()
	protect := []string{"protect", "web01", "--action", "upgrade nginx"}
	for _, tt := range []struct {
		name     string
		terminal bool
		more     []string
		want     bool
	}{
		{"a pipe", false, nil, false},
		{"a terminal", true, nil, true},
		{"a terminal and JSON", true, []string{"--json"}, false},
		{"a pipe and -v", false, []string{"-v"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var out, err strings.Builder
			code := cli.Run(t.Context(), cli.IO{Out: &out, Err: &err, Env: w.lookup, Terminal: tt.terminal}, slices.Concat(protect, tt.more))
			if got := strings.Contains(err.String(), "proven"); code != 0 || got != tt.want {
				t.Errorf("exit code %d, progress %t, want %t:\n%s", code, got, tt.want, err.String())
			}
			if strings.Contains(out.String(), "inserting") {
				t.Errorf("progress on stdout:\n%s", out.String())
			}
		})
	}
}

// A task is looked at many times, and told of when its state changes.
func TestATaskIsToldOfWhenItsStateChanges(t *testing.T) {
	t.Parallel()
	for _, mode := range [][]string{{}, {"-v"}} {
		w := newWorld(t, zvmtest.WithInsertTime(time.Hour))
		var err strings.Builder
		args := append(mode, "protect", "web01", "--action", "x", "--timeout", "3s")
		cli.Run(t.Context(), cli.IO{Out: io.Discard, Err: &err, Env: w.lookup, Terminal: true}, args)
		said := 0
		for line := range strings.Lines(err.String()) {
			if (strings.HasPrefix(line, "task ") || strings.Contains(line, "stage=task")) && strings.Contains(line, "InProgress") {
				said++
			}
		}
		if looks := w.sim.Count("GET", "/v1/tasks/*"); said != 2 || looks <= 2 {
			t.Errorf("%v: two tasks were looked at %d times and told of %d times:\n%s", mode, looks, said, err.String())
		}
	}
}

func TestCommandsWithoutAZVMDoNotShowItsSettings(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	for command, shown := range map[string]string{
		"version": "", "sim": "", "check": "--catalog", "find": "--catalog --url --cert-sha256", "hook": "--catalog --url --cert-sha256",
	} {
		help := w.mustRun(command, "--help").out
		for _, flag := range []string{"--catalog", "--url", "--cert-sha256"} {
			if got, want := strings.Contains(help, flag+" "), strings.Contains(shown, flag); got != want {
				t.Errorf("the help of %s shows %s: %t, want %t", command, flag, got, want)
			}
		}
	}
	w.mustRun("--url", "https://zvm.example.com", "version")
}

func TestVerboseHasALinePerRequestAndStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.mustRun("find", "web01", "-v")
	if lines := strings.Count(o.err, "zvm request"); lines != len(w.sim.Requests()) {
		t.Errorf("%d lines for %d requests:\n%s", lines, len(w.sim.Requests()), o.err)
	}
	for line := range strings.Lines(w.mustRun("find", "web01", "-v", "--json").err) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a JSON line: %s", line)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	var all strings.Builder
	for _, command := range []string{
		"", "find", "protect", "guards", "browse", "recover", "test", "test start", "test status", "test stop", "clone", "clone start",
		"clone abort", "sweep", "task", "check", "catalog", "catalog list", "catalog show", "catalog rule", "catalog add-mutating", "catalog validate",
		"catalog import", "hook", "explain", "mcp", "sim", "version",
	} {
		args := []string{"--help"}
		if command != "" {
			args = append(strings.Fields(command), "--help")
		}
		help := w.mustRun(args...).out
		if local, _, ok := strings.Cut(help, "\nGlobal Flags:"); ok {
			help = local // the same for all, and shown by the first
		}
		all.WriteString("$ zerto-rewind " + strings.Join(args, " ") + "\n" + help + "\n")
	}
	golden(t, "help.txt", all.String())
}
