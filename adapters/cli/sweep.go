package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) sweep() *cobra.Command {
	var apply, all bool
	c := a.command(cobra.Command{
		Use:   "sweep [--apply [--all]]",
		Short: "Find the mounts, failover tests and clones that a crash left open, and close them with --apply",
		Long: `Sweep lists, from the ZVM's own records, what a crash left open: FLR sessions on checkpoints that bear a tag of ours, and
the failover tests and clones that a mark in the journal announces as ours. It closes nothing without --apply.

With --apply it closes FLR sessions that are not in use, and stops tests and clones that are past the deadline they were
started with, which is two hours for a test without another. With --all as well it does not wait for deadlines, and closes
FLR sessions on our checkpoints that somebody else has mounted. What cannot be shown to be ours, such as an FLR session
whose checkpoint has left the journal, is listed with the reason and never touched. A finished clone is listed and stays:
Zerto never removes it.

At the ZVM of each --recovery-site it looks for FLR sessions; see recover --help.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		session, _, err := a.session()
		if err != nil {
			return err
		}
		var opts []rewind.SweepOption
		if all && !apply {
			return &usageError{errors.New("--all is for what --apply closes")}
		}
		if apply {
			opts = append(opts, rewind.Apply())
		}
		if all {
			opts = append(opts, rewind.All())
		}
		left, err := session.Sweep(ctx, opts...)
		if left == nil {
			return err
		}
		list := struct {
			Left []rewind.Leftover `json:"left"`
		}{left}
		if showErr := a.result(list, func(t *table) { showLeft(t, left) }); showErr != nil && err == nil {
			return showErr
		}
		if !apply && !a.json && slices.ContainsFunc(left, func(l rewind.Leftover) bool { return l.Reason == "" }) {
			a.say("--apply closes them")
		}
		return err
	})
	a.recoverySiteFlag(c)
	c.Flags().BoolVar(&apply, "apply", false, "close what is found")
	c.Flags().BoolVar(&all, "all", false, "before their deadlines too, and whoever has mounted a checkpoint of ours")
	return c
}

func showLeft(t *table, left []rewind.Leftover) {
	if len(left) == 0 {
		t.row("nothing of ours is open")
		return
	}
	t.row("KIND", "ID", "VPG", "CHANGE", "OPENED", "CLOSED", "LEFT ALONE")
	for _, l := range left {
		id := string(l.FLRSessionID)
		if l.Kind != rewind.LeftFLR {
			id = string(l.TaskID)
		}
		vpg := cmp.Or(l.VPGName, string(l.VPGID))
		if l.RecoverySiteID != "" {
			vpg += " at site " + string(l.RecoverySiteID)
		}
		t.row(string(l.Kind), orDash(id), vpg, orDash(l.ChangeID), moment(l.OpenedAt), yesNo(l.Closed), orDash(l.Reason))
	}
}
