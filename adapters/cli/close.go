package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) closeChange() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "close CHANGE",
		Short: "End a change: its guard lets no further call run",
		Long: `Close records in the ledger that a change is over, whichever of its calls ran. From then on the hook and the proxy let no
call run because of its guard, however young it is. Its checkpoints stay, and so does what can be brought back from them.
Nothing opens a change again. For a change of another machine, verify has this machine's ledger know its guard first.`,
		Args: exactly("CHANGE"),
	}, 0, func(ctx context.Context, args []string) error {
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		known, err := l.CloseChange(ctx, args[0])
		if err != nil {
			return err
		}
		if !known {
			return hinted(&rewind.NotFoundError{Wanted: args[0], What: "known change"},
				"zerto-rewind verify --change %s looks for it in the journals, and records it", args[0])
		}
		return a.result(struct {
			ChangeID string `json:"changeId"`
			Closed   bool   `json:"closed"`
		}{args[0], true}, func(t *table) { t.row("closed", args[0]) })
	})
}
