package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) diff() *cobra.Command {
	var from target
	var to string
	c := a.command(cobra.Command{
		Use:   "diff --change ID [--to ID] [--vm VM] PATH",
		Short: "Tell what came to differ in a folder since the tagged checkpoint of a change",
		Long: `Diff mounts the VM from the tagged checkpoints of two changes, one after the other, by file-level recovery, and tells
what was added, removed and changed below PATH: by size, write time and, for files of up to 1 MiB, SHA-256. PATH may be
a single file; "/" means all partitions.

Without --to it compares with the VM as it is now: it says so, and guards the VM first. The tagged checkpoint that this
inserts into the journal of every protecting VPG stays there until it ages out.

The exit code is 0 whether anything differs or not.`,
		Args: exactly("PATH"),
	}, 0, func(ctx context.Context, args []string) error {
		session, before, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		after, err := a.laterGuard(ctx, session, before, to)
		if err != nil {
			return err
		}
		difference, err := session.Diff(ctx, before, after, args[0])
		if difference == nil {
			return err
		}
		if !difference.Complete {
			a.log.Warn("not every folder was read whole: what differs there is not told")
		}
		return errors.Join(a.result(difference, func(t *table) { showDifference(t, difference) }), err)
	})
	from.guardFlags(c)
	c.Flags().StringVar(&to, "to", "", "`id` of the guarded change to compare with; a fresh guard if not given")
	return c
}

// laterGuard finds the guard of a change of the same VM, or without one makes one now.
func (a *app) laterGuard(ctx context.Context, session *rewind.Session, before *rewind.Guard, to string) (*rewind.Guard, error) {
	vm := before.Record().VMs[0]
	if to != "" {
		_, after, err := a.findGuard(ctx, target{change: to, vm: string(vm.ID)})
		return after, err
	}
	if a.json {
		a.log.Warn("guarding the VM as it is now, to compare with", "vm", vm.Name)
	} else {
		a.say("guarding %s as it is now, to compare with", vm.Name)
	}
	return session.Protect(ctx, string(vm.ID), rewind.Change{Action: "compare with change " + before.ChangeID()})
}

func showDifference(t *table, d *rewind.Difference) {
	for _, side := range []struct {
		title string
		of    rewind.DiffSide
	}{{"before", d.Before}, {"after", d.After}} {
		t.row(side.title, "change "+side.of.ChangeID, "checkpoint "+string(side.of.CheckpointID), moment(side.of.CheckpointTime))
	}
	t.blank()
	if len(d.Added)+len(d.Removed)+len(d.Changed) == 0 {
		t.row("no difference seen")
	}
	for _, i := range d.Added {
		t.row("added", i.Path, bytesOf(i.ItemState))
	}
	for _, i := range d.Removed {
		t.row("removed", i.Path, bytesOf(i.ItemState))
	}
	for _, i := range d.Changed {
		t.row("changed", i.Path, bytesOf(i.Before)+" -> "+bytesOf(i.After), "by "+strings.Join(i.By, ", "))
	}
	for _, i := range d.Unread {
		t.row("not compared", i.Path, "-", i.Reason)
	}
	t.blank()
	t.row("files that are the same", strconv.Itoa(d.Same))
}

func bytesOf(i rewind.ItemState) string {
	if i.Bytes == nil {
		return "-"
	}
	return strconv.FormatInt(*i.Bytes, 10)
}
