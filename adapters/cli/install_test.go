package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// A test binary that is started under the program's name is the program.
func init() {
	if filepath.Base(os.Args[0]) == "zerto-rewind" {
		os.Exit(cli.Run(context.Background(), cli.OS(), os.Args[1:]))
	}
}

// program puts zerto-rewind into a folder, and makes an environment whose home is another.
func (w *world) program(dir ...string) (*world, string) {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	folder := filepath.Join(append([]string{w.t.TempDir()}, dir...)...)
	binary := filepath.Join(folder, "zerto-rewind")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(self, binary); err != nil {
		w.t.Fatal(err)
	}
	return w.with("HOME", w.t.TempDir()), binary
}

type hookState struct {
	Host      string
	Path      string
	Installed bool
	Drift     []string
	Warnings  []string
	Problem   string
	Entries   []struct {
		Event  string
		Starts bool
	}
}

func (w *world) hookStates(code int, args ...string) map[string]hookState {
	w.t.Helper()
	o := w.run(append([]string{"hook", "status", "--json"}, args...)...)
	o.want(w.t, code)
	var states []hookState
	if err := json.Unmarshal([]byte(o.out), &states); err != nil {
		w.t.Fatalf("%v:\n%s", err, o.out)
	}
	byHost := map[string]hookState{}
	for _, s := range states {
		byHost[s.Host] = s
	}
	return byHost
}

// TestInstalledHookStartsByTheExactString covers pitfalls 14, 17, 18 and 40, and B75.
func TestInstalledHookStartsByTheExactString(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"plain", "First Last", "it's", "a$HOME&b;(c)", `back\slash`, "söder", `"quoted"`} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			w, binary := (&world{t: t}).program(folder)
			for _, host := range install.Hosts() {
				w.mustRun("hook", "install", host, "--binary", binary)
			}
			for host, s := range w.hookStates(0) {
				if !s.Installed || s.Problem != "" || len(s.Drift)+len(s.Warnings) > 0 {
					t.Errorf("%s: %+v", host, s)
				}
				for _, e := range s.Entries {
					if !e.Starts {
						t.Errorf("%s: %s does not start", host, e.Event)
					}
				}
			}
		})
	}
}

func TestStatusTellsAHookThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for behaviour, spoil := range map[string]func(t *testing.T, binary string){
		"it is gone": func(t *testing.T, binary string) {
			t.Helper()
			if err := os.Remove(binary); err != nil {
				t.Fatal(err)
			}
		},
		"it is not executable": func(t *testing.T, binary string) {
			t.Helper()
			replace(t, binary, "#!/bin/sh\nexit 2\n", 0o644)
		},
		"its interpreter is missing": func(t *testing.T, binary string) {
			t.Helper()
			replace(t, binary, "#!/nowhere/python\n", 0o755)
		},
		"it lets everything through": func(t *testing.T, binary string) {
			t.Helper()
			replace(t, binary, "#!/bin/sh\nexit 0\n", 0o755)
		},
		"it is something else that exits 2": func(t *testing.T, binary string) {
			t.Helper()
			replace(t, binary, "#!/bin/sh\necho usage >&2\nexit 2\n", 0o755)
		},
		"it is a folder": func(t *testing.T, binary string) {
			t.Helper()
			if err := os.Remove(binary); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(binary, 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			w, binary := (&world{t: t}).program()
			for _, host := range []string{"claude", "codex", "cline"} {
				w.mustRun("hook", "install", host, "--binary", binary)
			}
			spoil(t, binary)
			for _, host := range []string{"claude", "codex", "cline"} {
				s := w.hookStates(1, host)[host]
				if !s.Installed || s.Problem == "" || s.Entries[0].Starts {
					t.Errorf("%s: %+v", host, s)
				}
			}
		})
	}
}

func replace(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestDryRunShowsTheDifferenceAndWritesNothing(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t}).program()
	o := w.mustRun("hook", "install", "claude", "--binary", binary, "--dry-run")
	if !strings.Contains(o.out, `+            "onFailure": "block"`) {
		t.Errorf("stdout:\n%s", o.out)
	}
	if _, err := os.Stat(filepath.Join(w.env["HOME"], ".claude")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

func TestInstallationTellsWhatItDid(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t}).program()
	path := filepath.Join(w.env["HOME"], ".codex", "hooks.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	type did struct {
		Changed bool
		Path    string
		Backup  string
		Notes   []string
	}
	read := func(args ...string) (d did) {
		t.Helper()
		o := w.mustRun(append(args, "--json")...)
		if err := json.Unmarshal([]byte(o.out), &d); err != nil {
			t.Fatalf("%v:\n%s", err, o.out)
		}
		return d
	}
	note := []string{"Codex skips a new or changed hook until a person has reviewed it in /hooks"}
	for _, step := range []struct {
		args []string
		want did
	}{
		{[]string{"hook", "install", "codex", "--binary", binary}, did{true, path, path + ".zerto-rewind-backup", note}},
		{[]string{"hook", "install", "codex", "--binary", binary}, did{false, path, "", note}},
		{[]string{"hook", "uninstall", "codex"}, did{true, path, "", nil}},
		{[]string{"hook", "uninstall", "codex"}, did{false, path, "", nil}},
	} {
		if diff := cmp.Diff(step.want, read(step.args...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.args, diff)
		}
	}
}

func TestInstallersRefuse(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t}).program()
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"hook", "install"}, 64, "HOST"},
		{[]string{"hook", "install", "emacs"}, 64, "emacs"},
		{[]string{"hook", "install", "claude", "--scope", "managed"}, 64, "managed"},
		{[]string{"hook", "install", "claude", "--binary", "bin/zerto-rewind"}, 64, "absolute"},
		{[]string{"hook", "install", "claude", "--binary", filepath.Dir(binary)}, 1, "nothing was written"},
		{[]string{"hook", "install", "claude", "--binary", "/nowhere/zerto-rewind"}, 1, "nothing was written"},
		{[]string{"hook", "status", "emacs"}, 64, "emacs"},
	} {
		w.run(tt.args...).want(t, tt.code, tt.says)
	}
	w.without("HOME").run("hook", "install", "claude").want(t, 64, "HOME")
	path := filepath.Join(w.env["HOME"], ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{\n  'a': 1\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("hook", "install", "claude", "--binary", binary).want(t, 1, path+":2:3")
	if s := w.hookStates(1, "claude")["claude"]; s.Problem == "" {
		t.Errorf("%+v", s)
	}
}

// TestHookStillReadsACallBesideItsCommands: what hosts start is the command without another word.
func TestHookStillReadsACallBesideItsCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("Read", "--host", "claude").want(t, 0)
	w.hook("Read", "instal").want(t, 2)
}
