package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// target names the guard of a change, and which of its checkpoints is meant.
type target struct{ change, vm, vpg, partition string }

// guardFlags adds the flags that name a guard.
func (t *target) guardFlags(c *cobra.Command) {
	c.Flags().StringVar(&t.change, "change", "", "`id` of the guarded change")
	c.Flags().StringVar(&t.vm, "vm", "", "the `VM` that is meant, by name or id; needed when the change concerns several")
	_ = c.MarkFlagRequired("change") // fails only for a flag that does not exist
}

// vpgFlag adds the flag that chooses among the guard's checkpoints.
func (t *target) vpgFlag(c *cobra.Command) {
	c.Flags().StringVar(&t.vpg, "vpg", "", "the `VPG` whose checkpoint is meant, by name or id; needed when several would do")
}

// fileFlags adds the flags that say where a file is looked for.
func (t *target) fileFlags(c *cobra.Command) {
	t.vpgFlag(c)
	c.Flags().StringVar(&t.partition, "partition", "", "`name` of the partition that PATH is on, as browse / lists it; needed when several would do")
}

func (t *target) options() []rewind.PlaceOption {
	var options []rewind.PlaceOption
	if t.vpg != "" {
		options = append(options, rewind.InVPG(t.vpg))
	}
	if t.partition != "" {
		options = append(options, rewind.OnPartition(t.partition))
	}
	return options
}

// command returns a command line about the same target.
func (t *target) command(verb string) string {
	line := "zerto-rewind " + verb + " --change " + shellWord(t.change)
	if t.vm != "" {
		line += " --vm " + shellWord(t.vm)
	}
	if t.vpg != "" {
		line += " --vpg " + shellWord(t.vpg)
	}
	return line
}

// findGuard finds the guard of a change again, in the journals. It is one of a single VM.
func (a *app) findGuard(ctx context.Context, t target) (*rewind.Session, *rewind.Guard, error) {
	if t.change == "" {
		return nil, nil, &usageError{errors.New("--change is empty")}
	}
	session, _, err := a.session()
	if err != nil {
		return nil, nil, err
	}
	guard, err := session.FindGuard(ctx, t.change, t.vm)
	var missing *rewind.NotFoundError
	if errors.As(err, &missing) && missing.Wanted == t.change {
		vm := "VM"
		if t.vm != "" {
			vm = shellWord(t.vm)
		}
		err = hinted(err, "the changes of a VM are listed by: zerto-rewind guards %s", vm)
	}
	return session, guard, err
}
