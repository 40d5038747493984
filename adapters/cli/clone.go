package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// aborted says of which change the clone was that the ZVM was told to abort.
type aborted struct {
	ChangeID string      `json:"changeId"`
	VMs      []rewind.VM `json:"vms"`
	Aborted  bool        `json:"aborted"` // its task ended without a clone
}

func (a *app) clone() *cobra.Command {
	return group(cobra.Command{
		Use:   "clone",
		Short: "Make a powered-off copy of a guarded VM as it was at its tagged checkpoint",
	}, a.cloneStart(), a.cloneAbort())
}

func (a *app) cloneStart() *cobra.Command {
	var at target
	var yes consent
	c := a.command(cobra.Command{
		Use:   "start --change ID [--vm VM] [--vpg VPG] [--yes]",
		Short: "Make the clone, and wait until it is made",
		Long: `Start makes a copy of the VM from the change's tagged checkpoint at the VPG's recovery site, powered off and not
protected. Zerto never removes it: it belongs to you. When the waiting ends before the clone is made, by the time limit
or an interrupt, the clone is aborted.

On a terminal it asks before it starts anything; scripts say --yes.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		if err := a.canAsk(yes, "make a clone"); err != nil {
			return err
		}
		session, guard, err := a.findGuard(ctx, at)
		if err != nil {
			return err
		}
		vm := nameOf(guard)
		if err := a.ask(ctx, yes, vm, "This makes a copy of "+vm+" at the recovery site, which Zerto never removes."); err != nil {
			return err
		}
		clone, err := session.Clone(ctx, guard, at.options()...)
		if err != nil {
			return err
		}
		return a.result(clone, func(t *table) { showClone(t, clone) })
	})
	at.guardFlags(c)
	at.vpgFlag(c)
	yes.flag(c)
	return c
}

func (a *app) cloneAbort() *cobra.Command {
	var at target
	var yes consent
	c := a.command(cobra.Command{
		Use:   "abort --change ID [--vm VM] [--vpg VPG] [--yes]",
		Short: "Abort the clone that is being made at the VPG of a guard",
		Long: `Abort has the ZVM stop the clone that is being made at the VPG of the change's tagged checkpoint, whoever started it, and
waits until its task has ended without a clone. The ZVM does not say of which checkpoint a clone is. Exit code 5 says that
none is being made, and 9 that it goes on or was complete first: Zerto never removes a clone. On a terminal it asks first;
scripts say --yes.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		if err := a.canAsk(yes, "abort a clone"); err != nil {
			return err
		}
		session, guard, err := a.findGuard(ctx, at)
		if err != nil {
			return err
		}
		vm := nameOf(guard)
		if err := a.ask(ctx, yes, vm, "This aborts the clone that is being made at the VPG of "+vm+"."); err != nil {
			return err
		}
		if err := session.AbortClone(ctx, guard, at.options()...); err != nil {
			return err
		}
		done := aborted{at.change, guard.Record().VMs, true}
		return a.result(done, func(t *table) { t.row("the clone of " + vm + " was aborted") })
	})
	at.guardFlags(c)
	at.vpgFlag(c)
	yes.flag(c)
	return c
}

func showClone(t *table, c *rewind.Cloned) {
	t.row("change", c.ChangeID)
	t.row("vms", vmNames(c.VMs))
	t.row("vpg", c.VPGName)
	t.row("site", c.RecoverySite)
	t.row("checkpoint", string(c.CheckpointID)+" of "+moment(c.Timestamp))
	t.row("task", string(c.TaskID))
	t.row("note", c.Note)
}
