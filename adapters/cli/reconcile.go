package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
)

// differError says that two things which should be alike are not.
type differError struct{ differences int }

func (e *differError) Error() string {
	return fmt.Sprintf("ledger and ZVM differ in %d ways", e.differences)
}

func (a *app) reconcile() *cobra.Command {
	ago := 24 * time.Hour
	c := a.command(cobra.Command{
		Use:   "reconcile [--since 24h|7d]",
		Short: "Compare the ledger with the journals, tasks and events of the ZVM",
		Long: `Reconcile reports calls that were let run without a guard, guards under which no call is known to have run, checkpoints
that have vanished, tags with our prefix of which the ledger knows nothing, journals that hold fewer tagged checkpoints
than the events tell of, and inserts that failed. It changes nothing. The exit code is 3 when it reports anything.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		found, err := l.Reconcile(ctx, client, ago)
		if err != nil {
			return err
		}
		list := struct {
			Differences []ledger.Difference `json:"differences"`
		}{found}
		if err := a.result(list, func(t *table) { showDifferences(t, found) }); err != nil {
			return err
		}
		if len(found) > 0 {
			return &differError{len(found)}
		}
		return nil
	})
	c.Flags().Var((*span)(&ago), "since", "how far back to look, as a `duration` such as 90m, 7d or 2w")
	return c
}

func showDifferences(t *table, found []ledger.Difference) {
	if len(found) == 0 {
		t.row("the ledger and the ZVM agree")
		return
	}
	t.row("TIME", "DIFFERENCE", "CHANGE", "VMS", "VPG", "CHECKPOINT", "WHAT")
	for _, d := range found {
		vpg := d.VPGName
		if vpg == "" {
			vpg = string(d.VPGID)
		}
		t.row(moment(d.At), strings.ReplaceAll(string(d.Kind), "_", " "), orDash(d.ChangeID), orDash(strings.Join(d.VMs, ", ")),
			orDash(vpg), orDash(string(d.CheckpointID)), d.What)
	}
}
