package cli

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
)

// exitBlocked is the one code that makes the hosts of agents block a tool call. Of a hook no other failure may come out:
// hosts let the tool run then.
const exitBlocked = 2

const hookName = "hook"

// hookLimit is far below the 30 s after which the least patient host lets the tool run (hooks 0).
const hookLimit = 4 * time.Second

func (a *app) hook() *cobra.Command {
	var host string
	c := a.inSteps(cobra.Command{
		Use:   hookName + " [--host claude]",
		Short: "Judge one tool call of an agent before it runs: the body of a pre-tool-use hook",
		Long: `Hook reads one tool call from stdin and answers as its host expects: a tool that changes a machine runs only while a
guard of that machine stands; for a tool that is unknown the human is asked. A shell's call is judged by the machines
that its command line addresses. It exits 0, or 2 to block the call. Nothing is logged, not even with -v.`,
		Args: exactly(),
	}, hookLimit, "`limit` for the verdict, which has to be shorter than the host's own for a hook", func(ctx context.Context, _ []string) error {
		a.log = slog.New(slog.DiscardHandler) // with -v too: hosts read stderr as the reason of a refusal
		a.exit = hookadapter.Run(ctx, a.io.In, a.io.Out, a.io.Err,
			hookadapter.Config{Host: host, Gate: a.gate, Deadline: a.limit})
		return nil
	})
	c.Flags().StringVar(&host, "host", "", "the `host` that calls; recognised by what it sends if not given")
	c.AddCommand(a.hookCommands()...)
	return c
}

// isHook reports whether a command line that failed was meant to be the hook's. One that is broken in front of the
// command's name never got to it.
func isHook(command *cobra.Command, args []string) bool {
	return command.Name() == hookName || !command.HasParent() && slices.Contains(args, hookName)
}
