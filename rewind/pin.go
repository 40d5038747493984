package rewind

import (
	"context"
	"errors"
	"fmt"
)

// PinFirst has [Session.Recover] and [Session.RecoverTree] guard the VM as it is now before they bring anything back, so that
// putting it back can be taken back too: the new guard stands in the result, as Pinned. Every VPG that protects the VM is tagged, as
// [Session.Protect] does, with its errors; nothing is recovered when that fails. When the recovery fails after it, the
// tags stand all the same, and the error names their change. Nothing else takes this option.
func PinFirst() PlaceOption { return func(p *place) { p.pinFirst = true } }

// errPinFirst refuses the option where it would be ignored: whoever gives it counts on the guard.
var errPinFirst = errors.New("rewind: PinFirst is an option of Recover and RecoverTree alone")

// errOnPartition refuses what has no meaning where whole VMs are started.
var errOnPartition = errors.New("rewind: OnPartition is an option of what reads files")

// withoutPinFirst takes [PinFirst] out of options that are for Recover or RecoverTree.
func withoutPinFirst(opts []PlaceOption) (others []PlaceOption, first bool) {
	for _, o := range opts {
		var p place
		if o != nil {
			o(&p)
		}
		if p.pinFirst {
			first = true
			continue
		}
		others = append(others, o)
	}
	return others, first
}

// pin guards a VM before a change of it is taken back.
func (s *Session) pin(ctx context.Context, vm VM, changeID string) (*GuardRecord, error) {
	g, err := s.Protect(ctx, string(vm.ID), Change{Action: "take back change " + changeID})
	if err != nil {
		return nil, fmt.Errorf("pinning %s first: %w", shown(vm.Name), err)
	}
	record := g.Record()
	return &record, nil
}

// pinnedAllTheSame names the guard that stands although nothing was recovered.
func pinnedAllTheSame(pinned *GuardRecord, err error) error {
	if pinned == nil {
		return err
	}
	return fmt.Errorf("%w; the VM was pinned first, as change %s", err, shown(pinned.ChangeID))
}
