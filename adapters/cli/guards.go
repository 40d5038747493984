package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// listedGuard is a guard's record and whether every protecting VPG has its checkpoint.
type listedGuard struct {
	rewind.GuardRecord

	Complete bool `json:"complete"`
}

func (a *app) guards() *cobra.Command {
	since := 24 * time.Hour
	c := a.command(cobra.Command{
		Use:   "guards VM [--since 24h|7d]",
		Short: "Find the guards of a VM again, newest first, from the journals of its VPGs",
		Args:  exactly("VM"),
	}, 10*time.Minute, func(ctx context.Context, args []string) error {
		session, _, err := a.session()
		if err != nil {
			return err
		}
		found, err := session.Guards(ctx, args[0], since)
		if err != nil {
			return err
		}
		list := struct {
			Guards []listedGuard `json:"guards"`
		}{make([]listedGuard, len(found))}
		for i, g := range found {
			list.Guards[i] = listedGuard{g.Record(), g.Complete()}
		}
		return a.result(list, func(t *table) { showGuards(t, list.Guards) })
	})
	c.Flags().Var((*span)(&since), "since", "how far back to look, as a `duration` such as 90m, 7d or 2w; 0 for as far as the journals reach")
	return c
}

func showGuards(t *table, guards []listedGuard) {
	if len(guards) == 0 {
		t.row("no guard stands in the journals within that time")
		return
	}
	t.row("STARTED", "CHANGE", "AGENT", "ACTION", "COMPLETE", "CHECKPOINTS")
	for _, g := range guards {
		pins := make([]string, len(g.Checkpoints))
		for i, c := range g.Checkpoints {
			pins[i] = fmt.Sprintf("%s %s", c.VPGName, c.CheckpointID)
		}
		t.row(moment(g.StartedAt), g.ChangeID, orDash(g.Agent), orDash(taggedAction(g.GuardRecord)), yesNo(g.Complete), strings.Join(pins, ", "))
	}
}
