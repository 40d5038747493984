package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) verify() *cobra.Command {
	var from target
	c := a.command(cobra.Command{
		Use:   "verify --change ID [--vm VM]",
		Short: "Look at a guard again: does it still stand, can a file come back, and until when",
		Long: `Verify reads every checkpoint of the change in its journal now, asks the ZVM whether it would mount it, and tells until
when it will stand. Crash consistency is per VPG, never across VPGs. The exit code is 5 when a checkpoint is gone or may
be going.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		session, guard, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		verification, err := session.Verify(ctx, guard)
		if err != nil {
			return err
		}
		horizon, err := session.Horizon(ctx, guard)
		if err != nil {
			return err
		}
		switch {
		case slices.ContainsFunc(verification.Checkpoints, func(c rewind.VerifiedCheckpoint) bool { return !c.Listed }):
			a.noteVoid(ctx, guard.ChangeID(), "a checkpoint is gone")
		case verification.Valid:
			a.noteGuard(ctx, guard.Record())
		}
		result := struct {
			*rewind.Verification

			Complete bool            `json:"complete"`
			Horizon  *rewind.Horizon `json:"horizon"`
		}{verification, guard.Complete(), horizon}
		err = a.result(result, func(t *table) { showVerification(t, verification, horizon) })
		if !verification.Valid || !guard.Complete() {
			err = errors.Join(err, errNotWhole)
		}
		return err
	})
	from.guardFlags(c)
	return c
}

// errNotWhole is a guard that was found and is not what it was.
var errNotWhole = &notWholeError{}

type notWholeError struct{}

func (*notWholeError) Error() string {
	return "the guard is no longer whole: see the checkpoints above"
}

// Is makes the error one of what is not there.
func (*notWholeError) Is(target error) bool { return target == rewind.ErrCheckpointGone }

func showVerification(t *table, v *rewind.Verification, h *rewind.Horizon) {
	t.row("valid", yesNo(v.Valid))
	t.row("recoverable", yesNo(v.Recoverable))
	if h.Until.IsZero() {
		t.row("until", "unknown: "+h.Reason)
	} else {
		t.row("until", moment(h.Until)+", "+h.Reason)
	}
	for i, c := range v.Checkpoints {
		state := "stands"
		if !c.Listed {
			state = "GONE"
		}
		if c.Threat != "" {
			state += ", threatened: " + c.Threat
		}
		t.row(c.VPGName, string(c.CheckpointID)+" "+state)
		for _, m := range c.Mountable {
			if !m.OK {
				t.row("", m.VM.Name+" cannot be mounted: "+m.Reason)
			}
		}
		for _, warning := range h.Checkpoints[i].Warnings {
			t.row("", "warning: "+warning)
		}
	}
}
