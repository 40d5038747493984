package rewind

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// PlaceOption says which VM and which checkpoint of a guard is meant, where there are several.
type PlaceOption func(*place)

// FromVM names the VM, by name or id, when a guard covers several.
func FromVM(vm string) PlaceOption { return func(p *place) { p.vm = vm } }

// InVPG names the VPG, by name or id, whose checkpoint is taken.
func InVPG(vpg string) PlaceOption { return func(p *place) { p.vpg = vpg } }

// OnPartition names the partition that a guest path is on, as [Session.Browse] lists it, or by its drive letter. It settles
// an [*AmbiguousPathError]: the path is looked for there and nowhere else. One that is not there is a
// [*PartitionNotFoundError].
func OnPartition(name string) PlaceOption { return func(p *place) { p.partition = name } }

type place struct {
	vm, vpg, partition string

	pinFirst bool
	lasts    *time.Duration
}

// covered is a checkpoint of a guard with the VMs that are wanted from it.
type covered struct {
	TaggedCheckpoint

	change string
	vms    []VM
	// at is the session on the ZVM that mounts the checkpoint, and mountAs the one VM as that ZVM knows it. Both are empty
	// as long as no mount was chosen.
	at      *Session
	mountAs VM
	// partition is where a guest path is looked for, empty for everywhere.
	partition string
}

// choose returns the checkpoints of a guard that cover what the options name, local ones first, each with the VMs that
// are meant. It reads nothing.
func (g *Guard) choose(opts []PlaceOption) ([]covered, error) {
	if !g.Proven() {
		return nil, ErrNotProven
	}
	var p place
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("rewind: an option is nil")
		}
		o(&p)
	}
	if p.pinFirst {
		return nil, errPinFirst
	}
	if p.lasts != nil {
		return nil, errFor
	}
	if meant := slices.DeleteFunc(slices.Clone(g.record.VMs), func(vm VM) bool { return !p.means(vm) }); p.vm != "" && len(meant) > 1 {
		ambiguous := &AmbiguousVMError{Wanted: p.vm}
		for _, vm := range meant {
			ambiguous.Candidates = append(ambiguous.Candidates, Protection{VM: vm})
		}
		return nil, ambiguous
	}
	if p.vm != "" && !slices.ContainsFunc(g.record.VMs, p.means) {
		return nil, &NotFoundError{Wanted: p.vm, What: "VM in the guard of change " + g.record.ChangeID + " named"}
	}
	var found []covered
	for _, c := range g.record.Checkpoints {
		if p.vpg != "" && string(c.VPGID) != p.vpg && c.VPGName != p.vpg {
			continue
		}
		vms := slices.Clone(g.members[c.VPGID])
		if p.vm != "" {
			vms = slices.DeleteFunc(vms, func(vm VM) bool { return !p.means(vm) })
		}
		if len(vms) > 0 {
			found = append(found, covered{TaggedCheckpoint: c, change: g.record.ChangeID, vms: vms, partition: p.partition})
		}
	}
	if len(found) == 0 {
		return nil, &NotFoundError{Wanted: p.vpg, What: "checkpoint of change " + g.record.ChangeID + " in a VPG named"}
	}
	slices.SortStableFunc(found, func(a, b covered) int {
		switch {
		case a.Local == b.Local:
			return 0
		case a.Local:
			return -1
		}
		return 1
	})
	return found, nil
}

func (p place) means(vm VM) bool { return string(vm.ID) == p.vm || strings.EqualFold(vm.Name, p.vm) }

// chooseMount picks the one VM and the checkpoint to mount it from, the local one if there is, and reads it in its journal
// once more: mounting what is gone would fail late and in the server's words.
func (s *Session) chooseMount(ctx context.Context, g *Guard, opts []PlaceOption) (covered, error) {
	found, err := g.choose(opts)
	if err != nil {
		return covered{}, err
	}
	var vms []VM
	for _, c := range found {
		for _, vm := range c.vms {
			if !slices.Contains(vms, vm) {
				vms = append(vms, vm)
			}
		}
	}
	if len(vms) > 1 {
		ambiguous := &AmbiguousVMError{Wanted: "change " + g.record.ChangeID}
		for _, vm := range vms {
			ambiguous.Candidates = append(ambiguous.Candidates, Protection{VM: vm})
		}
		return covered{}, ambiguous
	}
	from := found[0]
	if from.Local {
		from.at, from.mountAs = s, from.vms[0]
		_, err = s.readPin(ctx, from.TaggedCheckpoint)
	} else {
		from, err = s.chooseRemote(ctx, g.record.ChangeID, found)
	}
	if err == nil {
		err = from.at.failedThere(from.at.checkMount(ctx, from))
	}
	return from, err
}

// chooseStart picks the checkpoint from which VMs are started or cloned, and reads it in its journal: the only one, or the
// only local one, if it covers every VM that is meant.
func (s *Session) chooseStart(ctx context.Context, g *Guard, opts []PlaceOption) (covered, error) {
	found, err := g.choose(opts)
	if err != nil {
		return covered{}, err
	}
	if found[0].partition != "" {
		return covered{}, errOnPartition
	}
	from, err := obvious(found)
	if err != nil {
		return covered{}, err
	}
	_, err = s.readPin(ctx, from.TaggedCheckpoint)
	return from, err
}

// obvious returns the checkpoint that is meant where none was named.
func obvious(found []covered) (covered, error) {
	all := map[VM]bool{}
	locals := 0
	for _, c := range found {
		if c.Local {
			locals++
		}
		for _, vm := range c.vms {
			all[vm] = true
		}
	}
	if len(found) > 1 && locals != 1 || len(all) > len(found[0].vms) {
		return covered{}, ambiguousVPG(found)
	}
	return found[0], nil
}

func ambiguousVPG(found []covered) *AmbiguousVPGError {
	ambiguous := &AmbiguousVPGError{ChangeID: found[0].change}
	for _, c := range found {
		ambiguous.VPGs = append(ambiguous.VPGs, c.VPGName)
	}
	return ambiguous
}

func (c covered) ids() []zvm.VMID {
	ids := make([]zvm.VMID, len(c.vms))
	for i, vm := range c.vms {
		ids[i] = vm.ID
	}
	return ids
}
