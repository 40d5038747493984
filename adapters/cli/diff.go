package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) diff() *cobra.Command {
	var from target
	var to string
	var unified bool
	c := a.command(cobra.Command{
		Use:   "diff --change ID [--to ID] [--vm VM] [--partition NAME] [--unified] PATH",
		Short: "Tell what came to differ in a folder since the tagged checkpoint of a change",
		Long: `Diff mounts the VM from the tagged checkpoints of two changes, one after the other, by file-level recovery, and tells
what was added, removed and changed below PATH: by size, write time and, for files of up to 1 MiB, SHA-256. PATH may be
a single file; "/" means all partitions.

Without --to it compares with the VM as it is now: it says so, and guards the VM first. The tagged checkpoint that this
inserts into the journal of every protecting VPG stays there until it ages out.

With --unified the changes of text files follow as unified diffs, with --json as "texts". They are for reading: what a
terminal would not print as it is, is escaped, but in JSON. What is larger than 1 MiB, binary or not UTF-8 is said to be
so and not shown.

What the server does not let be read is listed as not compared, with the reason. The exit code is 0 whether anything
differs or not, and 3 when not every folder was read whole: what differs there is not told.` + recoverySiteHelp,
		Args: exactly("PATH"),
	}, 0, func(ctx context.Context, args []string) error {
		session, before, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		var options []rewind.DiffOption
		for _, place := range from.options() {
			options = append(options, place)
		}
		if unified {
			options = append(options, rewind.WithContents())
		}
		found, err := a.compare(ctx, session, before, to, args[0], options)
		if found == nil {
			return err
		}
		if !found.Complete {
			a.log.Warn("not every folder was read whole: what differs there is not told")
			a.exit = exitPartial
		}
		d := &difference{Difference: found}
		if unified {
			if failed := d.takeTexts(ctx); failed != nil {
				return errors.Join(failed, err)
			}
		}
		return errors.Join(a.showDifference(d), err)
	})
	from.guardFlags(c)
	from.fileFlags(c)
	a.recoverySiteFlag(c)
	c.Flags().StringVar(&to, "to", "", "`id` of the guarded change to compare with; a fresh guard if not given")
	c.Flags().BoolVarP(&unified, "unified", "u", false, "show the changes of text files")
	return c
}

// compare compares with another change of the same VM, or without one with the VM as it is now.
func (a *app) compare(
	ctx context.Context, session *rewind.Session, before *rewind.Guard, to, path string, options []rewind.DiffOption,
) (*rewind.Difference, error) {
	vm := before.Record().VMs[0]
	if to != "" {
		_, after, err := a.findGuard(ctx, target{change: to, vm: string(vm.ID)})
		if err != nil {
			return nil, err
		}
		return session.Diff(ctx, before, after, path, options...)
	}
	if a.json {
		a.log.Warn("guarding the VM as it is now, to compare with", "vm", vm.Name)
	} else {
		a.say("guarding %s as it is now, to compare with", vm.Name)
	}
	difference, err := session.DiffNow(ctx, before, path, options...)
	if difference != nil {
		a.noteMade(ctx, session, difference.After.ChangeID, vm.ID)
	}
	return difference, err
}

func (a *app) showDifference(d *difference) error {
	err := a.result(d, func(t *table) { showDifference(t, d) })
	if a.json {
		return err
	}
	var lines strings.Builder
	for _, text := range d.Texts {
		text.show(&lines)
	}
	if lines.Len() > 0 {
		_, failed := io.WriteString(a.io.Out, "\n"+lines.String())
		err = errors.Join(err, failed)
	}
	return err
}

func showDifference(t *table, d *difference) {
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
	name := func(at string) string { return nameBelow(cmp.Or(d.After.GuestPath, d.Before.GuestPath), at) }
	for _, i := range d.Added {
		t.row("added", name(i.Path), bytesOf(i.ItemState))
	}
	for _, i := range d.Removed {
		t.row("removed", name(i.Path), bytesOf(i.ItemState))
	}
	for _, i := range d.Changed {
		t.row("changed", name(i.Path), bytesOf(i.Before)+" -> "+bytesOf(i.After), "by "+strings.Join(i.By, ", "))
	}
	for _, i := range d.Texts {
		if i.Reason != "" {
			t.row("not shown", name(i.Path), "-", i.Reason)
		}
	}
	for _, i := range d.Unread {
		t.row("not compared", name(i.Path), "-", i.Reason)
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
