package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// startLimit is what a hook gets to start and to answer. It answers within 4 s, and hosts wait 15 s at least.
const startLimit = 10 * time.Second

// hookState tells how one hook is installed.
type hookState struct {
	Host      string        `json:"host"`
	Scope     install.Scope `json:"scope"`
	Path      string        `json:"path"`
	Installed bool          `json:"installed"`
	Entries   []hookEntry   `json:"entries"`
	// Drift is what is otherwise than an installation writes it, Warnings what keeps the host from running the hook.
	Drift    []string `json:"drift"`
	Warnings []string `json:"warnings"`
	// Problem is why the file could not be read, or why the hook does not start. Empty when all is well.
	Problem string `json:"problem,omitempty"`
}

// hookEntry is one place at which a host's settings run the hook.
type hookEntry struct {
	Event   string   `json:"event"`
	Binary  string   `json:"binary"`
	Command []string `json:"command,omitempty"` // without a shell
	Line    string   `json:"line,omitempty"`    // through a shell
	Starts  bool     `json:"starts"`            // exactly as it stands there
}

func (a *app) hookStatus() *cobra.Command {
	var w where
	c := a.command(cobra.Command{
		Use:   "status [HOST]... [--scope user|project]",
		Short: "Show in which settings the hook is installed, and whether it starts",
		Long: `Status reads the settings of agent hosts, and starts each hook that it finds there exactly as it stands there, with no
input. In settings of a project it starts nothing but this program. It exits 1 if a hook does not start, or if settings cannot be read.`,
	}, time.Minute, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			args = install.Hosts()
		}
		states := []hookState{}
		for _, host := range args {
			hook, place, err := a.hookPlace(host, w)
			if err != nil {
				return err
			}
			states = append(states, hookStateOf(ctx, hook, place))
		}
		for _, s := range states {
			if s.Problem != "" {
				a.exit = exitFailed
			}
		}
		return a.result(states, func(t *table) { showHookStates(t, states) })
	})
	w.register(c, false)
	return c
}

func hookStateOf(ctx context.Context, hook install.Hook, place install.Place) hookState {
	s := hookState{Host: hook.Host, Scope: hook.Scope, Entries: []hookEntry{}, Drift: []string{}, Warnings: []string{}}
	found, err := install.Inspect(hook, place)
	s.Path, s.Installed = found.Path, len(found.Entries) > 0
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	s.Drift, s.Warnings = append(s.Drift, found.Drift()...), append(s.Warnings, found.Warnings...)
	for _, e := range found.Entries {
		problem := notOurs
		if hook.Scope == install.User || isOwn(e) {
			problem = whyNotStarted(ctx, e, place)
		}
		if !e.After && isScript(e.Binary) {
			s.Warnings = append(s.Warnings, e.Binary+" is a script: when its interpreter is missing the host lets every call run")
		}
		s.Entries = append(s.Entries, hookEntry{e.Event, e.Binary, e.Argv, e.Line, problem == ""})
		if s.Problem == "" {
			s.Problem = problem
		}
	}
	return s
}

// notOurs is why an entry of a project is not started: whoever wrote the project would choose what runs here, and where it
// logs in.
const notOurs = "the project's settings do not start this program as an installation writes it, so it was not started"

// isOwn reports whether an entry starts this very program, with what an installation writes and nothing else.
func isOwn(e install.Entry) bool {
	self, err := os.Executable()
	return err == nil && len(e.Drift) == 0 && sameFile(e.Binary, self)
}

// whyNotStarted starts a hook as its host does and gives it nothing to judge. It returns an empty text if it answers.
func whyNotStarted(ctx context.Context, e install.Entry, place install.Place) string {
	if _, err := exec.LookPath(e.Binary); err != nil {
		return fmt.Sprintf("the hook does not start: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	o, err := e.Run(ctx, place, nil, "")
	switch {
	case err != nil:
		return fmt.Sprintf("the hook does not start: %v", err)
	case e.After && o.ExitCode == exitDone && o.Stdout == "":
		return ""
	case !o.Answered():
		return fmt.Sprintf("what the settings start does not answer as the hook does: it exits %d: %s", o.ExitCode, firstLine(o.Stderr, o.Stdout))
	}
	return ""
}

// isScript reports whether a program needs another one to run it.
func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it is read
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}

// firstLine returns the first line with anything on it, cut short.
func firstLine(texts ...string) string {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				return fmt.Sprintf("%.200s", line)
			}
		}
	}
	return "(nothing)"
}

func showHookStates(t *table, states []hookState) {
	t.row("HOST", "SCOPE", "STATE", "PROGRAM")
	for _, s := range states {
		state, program := "not installed", "-"
		if s.Installed {
			state, program = "installed", s.Entries[0].Binary
		}
		if s.Installed && len(s.Drift)+len(s.Warnings) > 0 {
			state = "installed, with differences"
		}
		if s.Problem != "" {
			state = "broken"
		}
		t.row(s.Host, string(s.Scope), state, program)
	}
	for _, s := range states {
		if s.Problem != "" {
			t.row(s.Host + ": " + s.Problem)
		}
		for _, text := range append(append([]string{}, s.Drift...), s.Warnings...) {
			t.row(s.Host + ": " + text)
		}
	}
}
