package cli

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// exitBlocked is the one code that makes the hosts of agents block a tool call. Of a hook no other failure may come out:
// hosts let the tool run then.
const exitBlocked = 2

const hookName = "hook"

func (a *app) hook() *cobra.Command {
	var host string
	c := a.command(cobra.Command{
		Use:   hookName + " [--host claude]",
		Short: "Judge one tool call of an agent before it runs: the body of a pre-tool-use hook",
		Long: `Hook reads one tool call from stdin and answers as its host expects: a tool that changes a machine runs only while a
guard of that machine stands; for a tool that is unknown the human is asked. It exits 0, or 2 to block the call.`,
		Args: cobra.NoArgs,
	}, 0, func(ctx context.Context, _ []string) error {
		if !a.verbose {
			a.log = slog.New(slog.DiscardHandler) // hosts read stderr as the reason of a refusal
		}
		a.exit = hookadapter.Run(ctx, a.io.In, a.io.Out, a.io.Err,
			hookadapter.Config{Host: host, Gate: a.gate, Deadline: a.limit})
		return nil
	})
	c.Flags().StringVar(&host, "host", "", "the `host` that calls; recognised by what it sends if not given")
	return c
}

// isHook reports whether a command line that failed was meant to be the hook's. One that is broken in front of the
// command's name never got to it.
func isHook(command *cobra.Command, args []string) bool {
	return command.Name() == hookName || !command.HasParent() && slices.Contains(args, hookName)
}

// gate returns the gate, which opens a session only for a verdict that needs guards.
func (a *app) gate() (*gate.Gate, error) {
	known, err := a.catalogue()
	if err != nil {
		return nil, err
	}
	return gate.New(known, func() (gate.Guards, error) {
		session, _, err := a.session()
		return session, err
	}, gate.Policy{Commands: shell.Reader{}})
}
