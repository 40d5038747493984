package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) recover() *cobra.Command {
	var change, vm, dest string
	var force bool
	c := a.command(cobra.Command{
		Use:   "recover --change ID [--vm VM] PATH -o DEST [--force]",
		Short: "Bring one file back as it was at the tagged checkpoint of a change",
		Long: `Recover mounts the VM from the change's tagged checkpoint by file-level recovery, downloads one file, and closes the
session. The VM itself is not touched. DEST appears only when every byte arrived.`,
		Args: cobra.ExactArgs(1),
	}, 0, func(ctx context.Context, args []string) error {
		if dest == "" {
			return &usageError{errors.New("--output is empty")}
		}
		session, guard, err := a.findGuard(ctx, change, vm)
		if err != nil {
			return err
		}
		var options []rewind.FileOption
		if force {
			options = append(options, rewind.Replace())
		}
		recovery, err := session.Recover(ctx, guard, args[0], rewind.ToFile(dest, options...))
		if recovery == nil {
			return err
		}
		return errors.Join(a.result(recovery, func(t *table) { showRecovery(t, recovery) }), err)
	})
	changeFlags(c, &change, &vm)
	c.Flags().StringVarP(&dest, "output", "o", "", "`file` to write")
	c.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	_ = c.MarkFlagRequired("output") // fails only for a flag that does not exist
	return c
}

func showRecovery(t *table, r *rewind.Recovery) {
	t.row("file", r.Dest)
	t.row("bytes", strconv.FormatInt(r.Bytes, 10))
	t.row("sha256", r.SHA256)
	t.row("from", r.GuestPath)
	t.row("vm", r.VM)
	t.row("checkpoint", string(r.CheckpointID))
	t.row("session", string(r.FLRSessionID)+", "+closedOrOpen(r.Unmounted))
}

func closedOrOpen(unmounted bool) string {
	if unmounted {
		return "unmounted"
	}
	return "still mounted"
}
