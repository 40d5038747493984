package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
)

const hookName = "hook"

// hookLimit is far below the 30 s after which the least patient host lets the tool run (hooks 0).
const hookLimit = 4 * time.Second

func (a *app) hook() *cobra.Command {
	var flags hookFlags
	var event string
	c := a.inSteps(cobra.Command{
		Use:   hookName + " [--host " + strings.Join(append([]string{hookadapter.HostAuto}, hookadapter.Hosts()...), "|") + "]",
		Short: "Judge one tool call of an agent before it runs: the body of a pre-tool-use hook",
		Long: `Hook reads one tool call from stdin and answers as its host expects: a tool that changes a machine runs only while a
guard of that machine stands; for a tool that is unknown the human is asked. A shell's call is judged by the machines
that its command line addresses. It exits 0, or 2 to block the call. Nothing is logged, not even with -v.

A host that runs the hooks of another's settings is recognised by what it sends, whatever --host says. Where a host would
not put a question to a person, the call is denied with what it takes. To see why a call got its answer, give the same
input to: zerto-rewind explain

Installed for Claude Code's PostToolUse with --event post, it notes that a person said yes to a call, and asks no more
about that tool while the change goes on.`,
		Args: exactly(),
	}, hookLimit, "`limit` for the verdict, which has to be shorter than the host's own for a hook", func(ctx context.Context, _ []string) error {
		a.log = slog.New(slog.DiscardHandler) // with -v too: hosts read stderr as the reason of a refusal
		config, err := a.hookConfig(flags)
		if err != nil {
			return err
		}
		switch event {
		case "pre":
			a.exit = hookadapter.Run(ctx, a.io.In, a.io.Out, a.io.Err, config)
			return nil
		case "post":
			return a.afterCall(ctx, config)
		}
		return &usageError{fmt.Errorf("--event takes pre or post, not %.40q", event)}
	})
	flags.register(c)
	c.Flags().StringVar(&event, "event", "pre", "`when` the host calls: pre, before a tool runs, or post, after it has")
	c.AddCommand(a.hookCommands()...)
	return c
}

// afterCall notes a call that ran. It has no say in anything, so it says nothing but why it could not: on stderr, with an
// exit code that means nothing to the host.
func (a *app) afterCall(ctx context.Context, config hookadapter.Config) error {
	err := hookadapter.After(ctx, a.io.In, config, func(ctx context.Context, session, call string) error {
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		_, err = l.Ran(ctx, session, call)
		return err
	})
	if err != nil {
		a.say("not noted: %v", err)
	}
	return nil
}

// hookFlags are what hook and explain are told.
type hookFlags struct{ host, ask string }

func (f *hookFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.host, "host", hookadapter.HostAuto, "the `host` that the hook is installed for")
	c.Flags().StringVar(&f.ask, "ask", "", "`where` a question is put to a person: never, sure (where the host is known to ask), or "+
		"possible (also in Claude Code's auto mode, Gemini CLI and Copilot) (default sure) [$"+setAsk+"]")
}

// setAsk is the variable behind --ask. Whoever starts a session that nobody watches sets it, without touching the
// settings of the host.
const setAsk = "ZERTO_REWIND_ASK"

func (a *app) hookConfig(flags hookFlags) (hookadapter.Config, error) {
	word := cmp.Or(flags.ask, a.io.variable(setAsk), "sure")
	questions, known := hookadapter.QuestionsNamed(word)
	if !known {
		return hookadapter.Config{}, &usageError{fmt.Errorf("--ask takes never, sure or possible, not %.40q", word)}
	}
	c := hookadapter.Config{Host: flags.host, Gate: a.gate, Deadline: a.limit, Questions: questions}
	c.Home = cmp.Or(a.io.variable("HOME"), a.io.variable("USERPROFILE"))
	r := a.reader()
	if dir, err := r.stateDir(); err == nil {
		c.Settings = withReal(c.Settings, dir)
	}
	if path := r.text(setCatalog); path != "" {
		c.Settings = withReal(c.Settings, path)
	}
	return c, nil
}

// withReal adds a path as it is configured, and the one that it leads to.
func withReal(all []string, path string) []string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return all
	}
	all = append(all, absolute)
	if real, err := filepath.EvalSymlinks(absolute); err == nil && real != absolute {
		all = append(all, real)
	}
	return all
}

// refuseCall answers for a hook that never came to judge its call.
func (a *app) refuseCall(args []string, err error) int {
	host := ""
	if i := slices.Index(args, "--host"); i >= 0 && i+1 < len(args) {
		host = args[i+1]
	}
	if slices.Contains(args, "--host="+hookadapter.HostCline) {
		host = hookadapter.HostCline
	}
	return hookadapter.Refuse(a.io.Out, a.io.Err, host, plain(err.Error()))
}

// isHook reports whether a command line that failed was meant to be the hook's. One that is broken in front of the
// command's name never got to it.
func isHook(command *cobra.Command, args []string) bool {
	return command.Name() == hookName || !command.HasParent() && slices.Contains(args, hookName)
}
