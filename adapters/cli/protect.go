package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// protectLimit is above what the session waits for by itself: a tag in a journal, and the effect of a lost insert.
const protectLimit = 5 * time.Minute

func (a *app) protect() *cobra.Command {
	var change rewind.Change
	c := a.command(cobra.Command{
		Use:   "protect VM... --action TEXT [--change ID]",
		Short: "Guard a change: tag every protecting VPG of the VMs, and prove it",
		Long: `Protect guards one change of one or several VMs: it inserts a tagged checkpoint into the journal of every VPG that
protects one of them, waits for each task, reads each checkpoint back, and prints the guard. It is all or nothing: with
exit code 0 the change is guarded, with any other it is not.

A tagged checkpoint is crash-consistent within its VPG, and never across VPGs. Checkpoints cannot be deleted: a tag stays
in its journal until it ages out. Running protect again under the same --change uses the tagged checkpoints that stand.`,
		Args: atLeastOne("VM"),
	}, protectLimit, func(ctx context.Context, args []string) error {
		if strings.TrimSpace(change.Action) == "" {
			return &usageError{errors.New("--action is empty: say what is about to be done")}
		}
		session, _, err := a.session()
		if err != nil {
			return err
		}
		if session.Agent() == "" {
			a.log.Warn("no agent is named, so the tag will read \"-\": give --agent or " + setAgent.variable)
		}
		guard, err := session.ProtectAll(ctx, args, change)
		if err != nil {
			return err
		}
		a.noteGuard(ctx, guard.Record())
		return a.result(guard.Record(), func(t *table) { showGuard(t, guard.Record()) })
	})
	c.Flags().StringVar(&change.Action, "action", "", "what is about to be done, in `words` for people")
	c.Flags().StringVar(&change.ID, "change", "", "`id` of the change; a new one if not given")
	_ = c.MarkFlagRequired("action") // fails only for a flag that does not exist
	return c
}

func showGuard(t *table, g rewind.GuardRecord) {
	t.row("change", g.ChangeID)
	t.row("action", orDash(taggedAction(g)))
	t.row("vms", vmNames(g.VMs))
	t.row("proof", string(g.Proof)+" at "+moment(g.ProvenAt))
	t.blank()
	t.row("VPG", "CHECKPOINT", "TIME", "LOCAL", "TASK", "STATE")
	for _, c := range g.Checkpoints {
		t.row(c.VPGName, string(c.CheckpointID), moment(c.Timestamp), yesNo(c.Local), orDash(string(c.TaskID)), orDash(c.TaskState))
	}
	for _, v := range g.Skipped {
		t.row(v.VPGName, "-", "-", "-", "-", "not tagged: "+v.Reason)
	}
}

// taggedAction returns the action as the journal tells it, which is what everybody sees later.
func taggedAction(g rewind.GuardRecord) string {
	for _, c := range g.Checkpoints {
		if tag, ok := rewind.ParseTag(c.Tag); ok {
			return tag.Action
		}
	}
	return g.Action
}

func vmNames(vms []rewind.VM) string {
	names := make([]string, len(vms))
	for i, vm := range vms {
		names[i] = vm.Name
	}
	return strings.Join(names, ", ")
}
