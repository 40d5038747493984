package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) sweep() *cobra.Command {
	var apply bool
	c := a.command(cobra.Command{
		Use:   "sweep [--apply]",
		Short: "Find the FLR sessions that a crash left open, and close them with --apply",
		Long: `Sweep lists the FLR sessions whose checkpoint bears a tag of ours, as the ZVM lists them. It closes nothing without
--apply, never touches a session on any other checkpoint, and leaves one alone that is in use.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		session, _, err := a.session()
		if err != nil {
			return err
		}
		var opts []rewind.SweepOption
		if apply {
			opts = append(opts, rewind.Apply())
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
		if !apply && len(left) > 0 && !a.json {
			a.say("--apply closes them")
		}
		return err
	})
	c.Flags().BoolVar(&apply, "apply", false, "close what is found")
	return c
}

func showLeft(t *table, left []rewind.Leftover) {
	if len(left) == 0 {
		t.row("nothing of ours is open")
		return
	}
	t.row("FLR SESSION", "VPG", "CHANGE", "MOUNTED", "IN USE", "CLOSED")
	for _, l := range left {
		t.row(string(l.FLRSessionID), l.VPGName, l.ChangeID, moment(l.MountedAt), yesNo(l.InUse), yesNo(l.Closed))
	}
}
