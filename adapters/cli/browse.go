package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) browse() *cobra.Command {
	var from target
	c := a.command(cobra.Command{
		Use:   "browse --change ID [--vm VM] [--partition NAME] PATH",
		Short: "List a folder of a VM as it was at the tagged checkpoint of a change",
		Long: `Browse mounts the VM from the change's tagged checkpoint by file-level recovery, lists one folder, and closes the
session. The path "/" lists the partitions, and with --partition what is at the top of that one.` + recoverySiteHelp,
		Args: exactly("PATH"),
	}, 30*time.Minute, func(ctx context.Context, args []string) error {
		session, guard, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		listing, err := session.Browse(ctx, guard, args[0], from.options()...)
		if listing == nil {
			return err
		}
		if !listing.Complete {
			a.log.Warn("the server seems to hold back items of this folder")
		}
		return errors.Join(a.result(listing, func(t *table) { showListing(t, listing) }), err)
	})
	from.guardFlags(c)
	from.fileFlags(c)
	a.recoverySiteFlag(c)
	return c
}

func showListing(t *table, l *rewind.Listing) {
	noted := false
	for _, i := range l.Items {
		noted = noted || note(i) != ""
	}
	switch {
	case len(l.Items) == 0:
		t.row("empty folder")
		return
	case len(l.Items) == 1 && l.Items[0].Path == l.GuestPath:
		t.row(l.GuestPath + " is a file, " + size(l.Items[0]) + " bytes; use recover")
		return
	}
	titles := []string{"TYPE", "BYTES", "WRITTEN", "NAME"}
	if noted {
		titles = append(titles, "NOTE")
	}
	t.row(titles...)
	for _, i := range l.Items {
		written := "-"
		if i.Written != nil {
			written = moment(*i.Written)
		}
		t.row(i.Type, size(i), written, i.Name, note(i))
	}
}

func size(i rewind.ListedItem) string {
	if i.Bytes == nil {
		return "-"
	}
	return strconv.FormatInt(*i.Bytes, 10)
}

func note(i rewind.ListedItem) string {
	if i.Downloadable || i.Reason == "" {
		return ""
	}
	return "not downloadable: " + i.Reason
}
