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
	var change, vm string
	c := a.command(cobra.Command{
		Use:   "browse --change ID [--vm VM] PATH",
		Short: "List a folder of a VM as it was at the tagged checkpoint of a change",
		Long: `Browse mounts the VM from the change's tagged checkpoint by file-level recovery, lists one folder, and closes the
session. The path "/" lists the partitions.`,
		Args: cobra.ExactArgs(1),
	}, 30*time.Minute, func(ctx context.Context, args []string) error {
		session, guard, err := a.findGuard(ctx, change, vm)
		if err != nil {
			return err
		}
		listing, err := session.Browse(ctx, guard, args[0])
		if listing == nil {
			return err
		}
		if !listing.Complete {
			a.log.Warn("the server seems to hold back items of this folder")
		}
		return errors.Join(a.result(listing, func(t *table) { showListing(t, listing) }), err)
	})
	changeFlags(c, &change, &vm)
	return c
}

// changeFlags adds the flags that name a guard.
func changeFlags(c *cobra.Command, change, vm *string) {
	c.Flags().StringVar(change, "change", "", "`id` of the guarded change")
	c.Flags().StringVar(vm, "vm", "", "the `VM` to look at, by name or id; needed when the change concerns several")
	_ = c.MarkFlagRequired("change") // fails only for a flag that does not exist
}

// findGuard finds the guard of a change again, in the journals.
func (a *app) findGuard(ctx context.Context, change, vm string) (*rewind.Session, *rewind.Guard, error) {
	if change == "" {
		return nil, nil, &usageError{errors.New("--change is empty")}
	}
	session, _, err := a.session()
	if err != nil {
		return nil, nil, err
	}
	guard, err := session.FindGuard(ctx, change, vm)
	return session, guard, err
}

func showListing(t *table, l *rewind.Listing) {
	t.row("TYPE", "BYTES", "WRITTEN", "NAME", "NOTE")
	for _, i := range l.Items {
		size, written, note := "-", "-", ""
		if i.Bytes != nil {
			size = strconv.FormatInt(*i.Bytes, 10)
		}
		if i.Written != nil {
			written = moment(*i.Written)
		}
		if !i.Downloadable && i.Reason != "" {
			note = "not downloadable: " + i.Reason
		}
		t.row(i.Type, size, written, i.Name, note)
	}
}
