package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// finding is what one check came to.
type finding string

const (
	checkOK      finding = "ok"
	checkWarn    finding = "warn"
	checkFail    finding = "fail"
	checkSkipped finding = "skipped"
)

// check is one thing that doctor has looked at.
type check struct {
	Name     string  `json:"name"`
	Result   finding `json:"result"`
	Evidence string  `json:"evidence"`
	ToDo     string  `json:"toDo,omitempty"`
}

// diagnosis is all that doctor has to say.
type diagnosis struct {
	Checks []check `json:"checks"`
	// NotCovered tells for each host with a hook what is known to go past it.
	NotCovered map[string][]string `json:"notCovered"`

	refused bool // the login was
}

func (d *diagnosis) add(name string, result finding, evidence, toDo string) {
	if result == checkOK || result == checkSkipped {
		toDo = ""
	}
	d.Checks = append(d.Checks, check{name, result, evidence, toDo})
}

// fail adds a check that an error ended.
func (d *diagnosis) fail(name string, err error, toDo string) {
	if toDo == "" {
		if all := hints(err); len(all) > 0 {
			toDo = all[0]
		}
	}
	d.add(name, checkFail, err.Error(), toDo)
}

func (d *diagnosis) exitCode() int {
	code := exitDone
	for _, c := range d.Checks {
		if c.Result == checkFail {
			code = exitFailed
		}
	}
	if d.refused {
		code = exitAuth
	}
	return code
}

func (a *app) doctor() *cobra.Command {
	var live bool
	c := a.command(cobra.Command{
		Use:   "doctor [--live]",
		Short: "Check the ZVM, the login, the ledger, the catalogue and the hooks, and say what to do",
		Long: `Doctor looks at everything that a guard depends on, changes nothing, and says of each thing whether it is right, what it
found, and what to do. It reads the settings of a person and those of the project in the working directory.

With --live it starts each hook as its host does, with a call that would change a VM that has no guard, and nobody to ask.
That call has to be refused, by the rules of the host that reads the answer.

It exits 0 if nothing fails, 4 if the login is refused, and 1 if anything else fails.`,
		Args: exactly(),
	}, 2*time.Minute, func(ctx context.Context, _ []string) error {
		d := &diagnosis{Checks: []check{}, NotCovered: map[string][]string{}}
		a.checkZVM(ctx, d)
		a.checkLedger(ctx, d)
		a.checkCatalogue(d)
		a.checkHooks(ctx, d, live)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		a.exit = d.exitCode()
		return a.result(d, func(t *table) { d.show(t) })
	})
	c.Flags().BoolVar(&live, "live", false, "start each hook with a call that it has to refuse")
	return c
}

func (d *diagnosis) show(t *table) {
	for _, c := range d.Checks {
		t.row(string(c.Result), c.Name, c.Evidence)
	}
	for _, c := range d.Checks {
		if c.ToDo != "" {
			t.row(c.Name + ": " + c.ToDo)
		}
	}
	for _, host := range install.Hosts() {
		if gaps := d.NotCovered[host]; len(gaps) > 0 {
			t.blank()
			t.row("known to go past the hook of " + install.Title(host) + ":")
			for _, gap := range gaps {
				t.row("  - " + gap)
			}
		}
	}
}

func (a *app) checkCatalogue(d *diagnosis) {
	const name = "catalogue"
	rules, err := a.rules()
	if err != nil {
		d.fail(name, err, "mend the file; until then the hook blocks every call")
		return
	}
	evidence := "built in"
	if rules.file != nil {
		evidence = "built in, and the user's file"
		if path, _, err := a.catalogPath(); err == nil {
			evidence = "built in, and " + path
		}
	}
	d.add(name, checkOK, evidence, "")
}

// checkHooks looks at every host in both scopes.
func (a *app) checkHooks(ctx context.Context, d *diagnosis, live bool) {
	place, err := a.place()
	if err != nil {
		d.fail("hooks", err, "")
		return
	}
	installed := 0
	for _, host := range install.Hosts() {
		seen := ""
		for _, scope := range []install.Scope{install.User, install.Project} {
			hook := install.Hook{Host: host, Scope: scope}
			s := hookStateOf(ctx, hook, place)
			if !s.Installed && s.Problem == "" || s.Path == seen { // the project is the person's home
				continue
			}
			seen = s.Path
			installed++
			d.addHook(s)
			d.NotCovered[host] = install.Gaps(host)
			if live && s.Problem == "" {
				d.tryHook(ctx, hook, place)
			}
		}
	}
	if _, ok := d.NotCovered["claude"]; ok {
		d.checkClaude(ctx, lookIn(a.io.variable("PATH"), "claude"))
	}
	if installed == 0 {
		d.add("hooks", checkWarn, "no agent host runs the hook: nothing keeps an agent from changing a VM without a guard",
			"zerto-rewind hook install HOST, or put zerto-rewind proxy in front of the MCP servers")
	}
}

// checkClaude looks whether the Claude Code of this machine knows the setting that blocks a call when the hook itself fails,
// which an older one ignores without a word (hooks 1.6).
func (d *diagnosis) checkClaude(ctx context.Context, program string) {
	const name = "Claude Code"
	if program == "" {
		d.add(name, checkSkipped, "PATH does not lead to it", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		d.add(name, checkSkipped, fmt.Sprintf("%s does not tell its version: %v", program, err), "")
		return
	}
	var version [3]int
	if n, _ := fmt.Sscanf(string(said), "%d.%d.%d", &version[0], &version[1], &version[2]); n < len(version) {
		d.add(name, checkSkipped, "its version is not known: "+firstLine(string(said)), "")
		return
	}
	evidence := fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2])
	if slices.Compare(version[:], []int{2, 1, 295}) < 0 {
		d.add(name, checkWarn, evidence+" lets a call run when the hook cannot start or is too slow", "update Claude Code to 2.1.295 or later")
		return
	}
	d.add(name, checkOK, evidence+" blocks a call when the hook fails", "")
}

func hookLabel(host string, scope install.Scope) string {
	return fmt.Sprintf("hook of %s (%s)", host, scope)
}

func (d *diagnosis) addHook(s hookState) {
	name := hookLabel(s.Host, s.Scope)
	again := fmt.Sprintf("zerto-rewind hook install %s --scope %s", s.Host, s.Scope)
	differences := append(append([]string{}, s.Drift...), s.Warnings...)
	switch {
	case s.Problem != "" && !s.Installed:
		d.add(name, checkFail, s.Problem, "mend the file; the host may run no hook at all")
	case s.Problem != "":
		d.add(name, checkFail, s.Problem, again)
	case len(differences) > 0:
		result := checkWarn
		if len(s.Drift) > 0 {
			result = checkFail // each of them can let a call through
		}
		d.add(name, result, s.Path+": "+strings.Join(differences, "; "), again)
	default:
		d.add(name, checkOK, s.Path+" starts "+s.Entries[0].Binary, "")
	}
}

// tryHook gives a hook a call that it has to refuse.
func (d *diagnosis) tryHook(ctx context.Context, hook install.Hook, place install.Place) {
	status, err := install.Inspect(hook, place)
	if err != nil {
		d.fail(hookLabel(hook.Host, hook.Scope), err, "")
		return
	}
	for _, e := range status.Entries {
		input, ok := install.Canary(hook.Host, e.Event)
		if !ok {
			continue
		}
		name := fmt.Sprintf("canary of %s (%s, %s)", hook.Host, hook.Scope, e.Event)
		limited, cancel := context.WithTimeoutCause(ctx, startLimit, errors.New("it gave no answer within "+inWords(startLimit)))
		// Where the host would ask a person, the hook is told that there is none: what is tried is the refusal.
		outcome, err := e.Run(limited, place, append(os.Environ(), setAsk+"=never"), input)
		cancel()
		switch {
		case err != nil:
			d.fail(name, err, "the host would let the call run")
		case install.Blocks(hook.Host, outcome):
			d.add(name, checkOK, fmt.Sprintf("refused with exit %d: %.80s", outcome.ExitCode, firstLine(outcome.Stdout, outcome.Stderr)), "")
		default:
			d.add(name, checkFail, fmt.Sprintf("%s would let the call run: exit %d, %s", install.Title(hook.Host), outcome.ExitCode, firstLine(outcome.Stdout, outcome.Stderr)),
				fmt.Sprintf("look at what it answers: zerto-rewind explain --host %s", hook.Host))
		}
	}
}
