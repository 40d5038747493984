package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

func (a *app) freeze() *cobra.Command {
	var reason string
	c := a.command(cobra.Command{
		Use:   "freeze [--reason TEXT]",
		Short: "Stop every call of an agent's tools but reads and what stays on its own machine, until thaw",
		Long: `Freeze has the hook and the proxy deny every call but reads and what stays on the agent's own machine, guarded or not,
approved or not, on this machine and for this user, and the MCP server refuse whatever inserts, starts, stops or closes
anything. Anybody may freeze; thaw takes a person at a terminal.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		by, err := a.person()
		if err != nil {
			return err
		}
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		if err := l.Freeze(ctx, by, reason); err != nil {
			return err
		}
		inForce, err := l.Frozen(ctx)
		if err != nil {
			return err
		}
		return a.result(struct {
			Frozen *gate.Freeze `json:"frozen"`
		}{inForce}, func(t *table) {
			t.row("frozen by", inForce.By)
			t.row("since", moment(inForce.At))
			t.row("reason", orDash(inForce.Reason))
		})
	})
	c.Flags().StringVar(&reason, "reason", "", "`words` for whoever meets the freeze")
	return c
}

func (a *app) thaw() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "thaw",
		Short: "Lift a freeze: a person's decision, at a terminal",
		Args:  exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		by, err := a.confirmed(ctx, "This lets the tools of agents change machines again.", "thaw")
		if err != nil {
			return err
		}
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		thawed, err := l.Thaw(ctx, by)
		if err != nil {
			return err
		}
		return a.result(struct {
			Thawed bool `json:"thawed"`
		}{thawed}, func(t *table) {
			if thawed {
				t.row("thawed")
				return
			}
			t.row("nothing was frozen")
		})
	})
}
