package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// approvalLife is how long an approval can be used.
const approvalLife = 10 * time.Minute

func (a *app) approve() *cobra.Command {
	var approval gate.Approval
	life := approvalLife
	c := a.command(cobra.Command{
		Use:   "approve --server SERVER --tool TOOL {--target VM... | --call DIGEST} [--ttl 10m]",
		Short: "Let one call run that the gate would deny or ask about: a person's decision, at a terminal",
		Long: `Approve lets one call of a tool run that lacks a guard, or that nobody has classified. Zerto may be unable to take back
what it does. It is for agent hosts whose question reaches nobody.

With --call it is for the call with exactly these arguments: a denial shows the whole command line. With --target it is for
the first call that names no other machine than these. SERVER is "-" for a tool of the agent host itself. An approval is
used up by one call, whichever agent makes it, and recorded; a freeze is stronger.

It takes a person: stdin and stderr have to be terminals, the process has to have a controlling one (except on Windows),
and the word is typed on stdin. No flag gets around it; a program that makes a terminal of its own does.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		switch {
		case approval.Server == "" || approval.Tool == "":
			return &usageError{errors.New("--server or --tool is empty")}
		case len(approval.Targets) == 0 && approval.Digest == "":
			return &usageError{errors.New("say what is approved: --target VM, or --call DIGEST from the denial")}
		case life == 0:
			return &usageError{errors.New("--ttl is 0, so the approval could never be used")}
		}
		by, err := a.confirmed(ctx, approvalQuestion(approval, life), "approve")
		if err != nil {
			return err
		}
		approval.By = by
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		given, err := l.Approve(ctx, approval, life)
		if err != nil {
			return err
		}
		return a.result(given, func(t *table) {
			t.row("approval", given.ID)
			t.row("until", moment(given.Until))
		})
	})
	c.Flags().StringVar(&approval.Server, "server", "", "key of the MCP `server`, or - for a tool of the agent host itself")
	c.Flags().StringVar(&approval.Tool, "tool", "", "name of the `tool`")
	c.Flags().StringSliceVar(&approval.Targets, "target", nil, "a `VM` that the call may name, as the call names it; may be repeated")
	c.Flags().StringVar(&approval.Digest, "call", "", "`digest` of the one call's arguments, from its denial")
	c.Flags().Var((*span)(&life), "ttl", "`duration` for which it can be used, such as 10m or 2h")
	_ = c.MarkFlagRequired("server") // fails only for a flag that does not exist
	_ = c.MarkFlagRequired("tool")
	return c
}

func approvalQuestion(a gate.Approval, life time.Duration) string {
	what := "the call " + a.Digest
	if len(a.Targets) > 0 {
		what = "one call that names " + strings.Join(a.Targets, ", ")
		if a.Digest != "" {
			what += ", with the digest " + a.Digest
		}
	}
	return fmt.Sprintf("This lets %s of %s/%s run without a guard, within %s. Zerto may be unable to take it back.",
		what, a.Server, a.Tool, inWords(life))
}
