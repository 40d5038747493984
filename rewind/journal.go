package rewind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

const (
	// journalChunk is how much of a journal one request lists: at a checkpoint every 5 s, 17,280 rows.
	journalChunk = 24 * time.Hour
	// longestJournal is the most history a VPG can be set to (zvm-wire 4.3), with room for rounding.
	longestJournal = 31 * 24 * time.Hour
)

// standing is a tagged checkpoint of ours, found in a journal.
type standing struct {
	zvm.Checkpoint

	tag Tag
}

// ourTags yields the tagged checkpoints of ours in one journal from a moment on, as [Session.tagged] does.
func (s *Session) ourTags(ctx context.Context, vpg VPGProtection, from, now time.Time) iter.Seq2[standing, error] {
	return func(yield func(standing, error) bool) {
		for cp, err := range s.tagged(ctx, vpg, from, now) {
			tag, ours := ParseTag(cp.Tag)
			if (ours || err != nil) && !yield(standing{cp, tag}, err) {
				return
			}
		}
	}
}

// tagged yields the checkpoints of one journal whose names begin as ours do, from a moment on, oldest first as far as the
// server keeps order. It holds on to nothing but those rows.
func (s *Session) tagged(ctx context.Context, vpg VPGProtection, from, now time.Time) iter.Seq2[zvm.Checkpoint, error] {
	return func(yield func(zvm.Checkpoint, error) bool) {
		seen := map[zvm.CheckpointID]bool{}
		for cp, err := range s.rows(ctx, vpg, from, now) {
			if err == nil && (!strings.HasPrefix(strings.TrimSpace(cp.Tag), tagPrefix) || cp.Time.IsZero() || seen[cp.ID]) {
				continue
			}
			seen[cp.ID] = err == nil
			if !yield(cp, err) {
				return
			}
		}
	}
}

// rows yields every checkpoint of one journal, from a moment on, piece by piece, and some of them twice. An error ends it.
func (s *Session) rows(ctx context.Context, vpg VPGProtection, from, now time.Time) iter.Seq2[zvm.Checkpoint, error] {
	return func(yield func(zvm.Checkpoint, error) bool) {
		from := latest(from, vpg.earliest, now.Add(-longestJournal)).Add(-windowMargin)
		for ; from.Before(now); from = from.Add(journalChunk) {
			// Pieces overlap, since a server may leave out what lies exactly on a bound.
			window := zvm.Window{From: from, To: from.Add(journalChunk + windowMargin)}
			if !window.To.Before(now) {
				window.To = time.Time{}
			}
			for cp, err := range s.zvm.ListCheckpoints(ctx, vpg.VPGID, window) {
				if !yield(cp, err) || err != nil {
					return
				}
			}
		}
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// findStanding returns the earliest checkpoint in a VPG's journal, from a moment on, that was tagged for the change and all
// the change's VMs there. The earliest is the one from before the change began.
func (s *Session) findStanding(ctx context.Context, p *plan, t target, from time.Time) (earliest zvm.Checkpoint, found bool, err error) {
	for st, err := range s.ourTags(ctx, t.vpg, from, p.clock.now()) {
		if err != nil {
			return zvm.Checkpoint{}, false, err
		}
		if !st.tag.Names(p.record.ChangeID) || !concernsAll(st.tag, t.names) {
			continue
		}
		if !found || compareCheckpoints(st.Checkpoint, earliest) < 0 {
			earliest, found = st.Checkpoint, true
		}
	}
	return earliest, found, nil
}

func concernsAll(tag Tag, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !tag.Concerns(name) })
}

// Guards finds the guards of a VM again, newest first, from the journals of its VPGs: they are the store of truth. Since
// bounds how far back is looked; zero means as far as the journals reach.
//
// A change is listed as far as its checkpoints still stand. See [Guard.Complete].
func (s *Session) Guards(ctx context.Context, vm string, since time.Duration) ([]*Guard, error) {
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("guards of %s: %w", vm, err)
	}
	protection, err := s.resolve(ctx, inv, vm)
	if err != nil {
		return nil, err
	}
	var from time.Time
	if since > 0 {
		from = clock.now().Add(-since)
	}
	found, err := s.findPins(ctx, inv, protection, from, clock, func(Tag) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("guards of %s: %w", vm, err)
	}
	guards := make([]*Guard, 0, len(found))
	for change := range found {
		guards = append(guards, rebuild(protection, found[change], clock.now()))
	}
	// The journals are searched with some room on either side.
	guards = slices.DeleteFunc(guards, func(g *Guard) bool {
		return !slices.ContainsFunc(g.record.Checkpoints, func(c TaggedCheckpoint) bool { return !c.Timestamp.Before(from.Truncate(time.Second)) })
	})
	slices.SortFunc(guards, func(a, b *Guard) int {
		return cmp.Or(b.record.StartedAt.Compare(a.record.StartedAt), strings.Compare(a.record.ChangeID, b.record.ChangeID))
	})
	return guards, nil
}

// FindGuard finds the guard of one change again, for one VM. Without a VM, every VPG this ZVM lists is searched; a
// change that concerns several VMs is then an [*AmbiguousVMError]. A change without a checkpoint that still stands is a
// [*NotFoundError].
func (s *Session) FindGuard(ctx context.Context, changeID, vm string) (*Guard, error) {
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("find change %s: %w", changeID, err)
	}
	names := func(t Tag) bool { return t.Names(changeID) }
	candidates := []*Protection{}
	if vm != "" {
		protection, err := s.resolve(ctx, inv, vm)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, protection)
	} else if candidates, err = s.concerned(ctx, inv, clock, names); err != nil {
		return nil, fmt.Errorf("find change %s: %w", changeID, err)
	}
	if len(candidates) > 1 {
		ambiguous := &AmbiguousVMError{Wanted: "change " + changeID}
		for _, c := range candidates {
			ambiguous.Candidates = append(ambiguous.Candidates, *c)
		}
		return nil, ambiguous
	}
	for _, protection := range candidates {
		found, err := s.findPins(ctx, inv, protection, time.Time{}, clock, names)
		if err != nil {
			return nil, fmt.Errorf("find change %s: %w", changeID, err)
		}
		for _, pins := range found {
			return rebuild(protection, pins, clock.now()), nil
		}
	}
	return nil, s.changeNotFound(ctx, changeID, vm)
}

func (s *Session) changeNotFound(ctx context.Context, changeID, vm string) error {
	missing := &NotFoundError{Wanted: changeID, What: "tagged checkpoint of change"}
	if site, err := s.zvm.GetLocalSite(ctx); err == nil {
		missing.Site = site.Name
	}
	if vm != "" {
		missing.What = "tagged checkpoint for " + vm + " of change"
	}
	return missing
}

// concerned returns the machines that tags of a change name, in any VPG, ordered by id.
func (s *Session) concerned(ctx context.Context, inv inventory, clock serverClock, wanted func(Tag) bool) ([]*Protection, error) {
	var mu sync.Mutex
	ids := map[zvm.VMID]bool{}
	g := newGroup()
	g.SetLimit(s.parallel)
	for _, v := range inv.vpgs {
		vpg, members := vpgProtection(v), inv.membersOf(v.ID)
		g.Go(func() error {
			for st, err := range s.ourTags(ctx, vpg, time.Time{}, clock.now()) {
				if err != nil {
					return fmt.Errorf("journal of %s: %w", vpg.VPGName, err)
				}
				if !wanted(st.tag) {
					continue
				}
				mu.Lock()
				for _, m := range members {
					if concerns(st.tag, m, members) {
						ids[m.ID] = true
					}
				}
				mu.Unlock()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var machines []*Protection
	for _, rows := range groupByID(inv.vms) {
		if ids[rows[0].ID] {
			machines = append(machines, inv.protection(rows))
		}
	}
	return machines, nil
}

// concerns reports whether a tag was made for a member of its VPG, which it names as [tagNames] does.
func concerns(tag Tag, vm VM, members []VM) bool {
	if !namesakes(vm, members) && vm.Name != "" && tag.Concerns(vm.Name) {
		return true
	}
	return tag.Concerns(string(vm.ID))
}

// foundPin is a checkpoint of one change in one VPG of a machine.
type foundPin struct {
	vpg VPGProtection
	standing
}

// findPins looks through the journals of a machine's VPGs for tags made for it, by change: for each VPG the earliest.
func (s *Session) findPins(
	ctx context.Context, inv inventory, p *Protection, from time.Time, clock serverClock, wanted func(Tag) bool,
) (map[string][]foundPin, error) {
	perVPG := make([]map[string]foundPin, len(p.VPGs))
	g := newGroup()
	g.SetLimit(s.parallel)
	for i, vpg := range p.VPGs {
		members := inv.membersOf(vpg.VPGID)
		g.Go(func() error {
			pins := map[string]foundPin{}
			for st, err := range s.ourTags(ctx, vpg, from, clock.now()) {
				if err != nil {
					return fmt.Errorf("journal of %s: %w", vpg.VPGName, err)
				}
				if !wanted(st.tag) || !concerns(st.tag, p.VM, members) {
					continue
				}
				known, found := pins[st.tag.Change]
				if !found || compareCheckpoints(st.Checkpoint, known.Checkpoint) < 0 {
					pins[st.tag.Change] = foundPin{vpg, st}
				}
			}
			perVPG[i] = pins
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	byChange := map[string][]foundPin{}
	for _, pins := range perVPG {
		for change, pin := range pins {
			byChange[change] = append(byChange[change], pin)
		}
	}
	return byChange, nil
}

// rebuild makes a guard of what stands in the journals of a machine's VPGs, which has just been read.
func rebuild(p *Protection, pins []foundPin, now time.Time) *Guard {
	first := pins[0].tag
	record := GuardRecord{
		ChangeID: first.Change, Agent: first.Agent, Action: first.Action,
		VMs: []VM{p.VM}, StartedAt: first.Time, ProvenAt: now,
	}
	var read []tagged
	for _, v := range p.VPGs {
		i := slices.IndexFunc(pins, func(pin foundPin) bool { return pin.vpg.VPGID == v.VPGID })
		if i >= 0 {
			read = append(read, pinOf(target{vpg: v, members: record.VMs}, pins[i].Checkpoint, "", ""))
			continue
		}
		record.Skipped = append(record.Skipped, skippedVPG(v))
	}
	return newGuard(record, read)
}

// Reprove makes a guard of a record by reading every checkpoint it names in its journal now. One that does not stand
// there under its tag is [ErrCheckpointGone], and then there is no guard.
func (s *Session) Reprove(ctx context.Context, record GuardRecord) (*Guard, error) {
	if len(record.Checkpoints) == 0 || len(record.VMs) == 0 {
		return nil, fmt.Errorf("reprove change %q: %w: the record names no checkpoint or no VM", record.ChangeID, ErrNotProven)
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("reprove change %s: %w", record.ChangeID, err)
	}
	pins := make([]tagged, len(record.Checkpoints))
	g, gctx := groupWithin(ctx)
	g.SetLimit(s.parallel)
	for i, claimed := range record.Checkpoints {
		g.Go(func() (err error) {
			pins[i], err = s.reprovePin(gctx, inv, record, claimed)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("reprove change %s: %w", record.ChangeID, err)
	}
	return reproven(record, pins, inv, clock.now())
}

// reproven takes from a record only what was read again. The human is the one claim that is kept: no journal tells it.
func reproven(record GuardRecord, pins []tagged, inv inventory, now time.Time) (*Guard, error) {
	tag, _ := ParseTag(pins[0].Tag)
	proven := GuardRecord{
		ChangeID: record.ChangeID, Agent: tag.Agent, Action: tag.Action, Human: record.Human,
		StartedAt: tag.Time, ProvenAt: now,
	}
	for _, vm := range record.VMs {
		rows := slices.DeleteFunc(slices.Clone(inv.vms), func(r zvm.VM) bool { return !sameID(r.ID, vm.ID) })
		covers := func(m VM) bool { return sameID(m.ID, vm.ID) }
		if !slices.ContainsFunc(pins, func(p tagged) bool { return slices.ContainsFunc(p.members, covers) }) || len(rows) == 0 {
			return nil, fmt.Errorf("reprove change %s: %w: no checkpoint of the record covers %s", record.ChangeID, ErrNotProven, vm.Name)
		}
		protection := inv.protection(rows)
		proven.VMs = append(proven.VMs, protection.VM)
		for _, v := range protection.VPGs {
			pinned := slices.ContainsFunc(pins, func(p tagged) bool { return sameID(p.VPGID, v.VPGID) })
			known := slices.ContainsFunc(proven.Skipped, func(s SkippedVPG) bool { return sameID(s.VPGID, v.VPGID) })
			if !pinned && !known {
				proven.Skipped = append(proven.Skipped, skippedVPG(v))
			}
		}
	}
	return newGuard(proven, pins), nil
}

func skippedVPG(v VPGProtection) SkippedVPG {
	return SkippedVPG{
		VPGID: v.VPGID, VPGName: v.VPGName, Protecting: v.Protecting,
		Reason: firstNonEmpty(v.Reason, "its journal holds no tagged checkpoint of this change"),
	}
}

func (s *Session) reprovePin(ctx context.Context, inv inventory, record GuardRecord, claimed TaggedCheckpoint) (tagged, error) {
	tag, ours := ParseTag(claimed.Tag)
	if !ours || !tag.Names(record.ChangeID) {
		return tagged{}, fmt.Errorf("checkpoint %s: its tag is not one of this change", claimed.CheckpointID)
	}
	vpg, listed := inv.vpgs[claimed.VPGID]
	if !listed {
		return tagged{}, fmt.Errorf("VPG %s: %w: the ZVM does not list the VPG", claimed.VPGName, ErrCheckpointGone)
	}
	all := inv.membersOf(vpg.ID)
	var members []VM
	for _, m := range all {
		if slices.ContainsFunc(record.VMs, func(vm VM) bool { return sameID(vm.ID, m.ID) }) && concerns(tag, m, all) {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return tagged{}, fmt.Errorf("VPG %s: its tag names none of the guarded VMs that are in it", claimed.VPGName)
	}
	cp, err := s.readPin(ctx, claimed)
	if err != nil {
		return tagged{}, err
	}
	pin := pinOf(target{vpg: vpgProtection(vpg), members: members}, cp, "", "")
	pin.Tag = claimed.Tag
	return pin, nil
}

// readPin reads one checkpoint in its journal, or fails with [ErrCheckpointGone]. The tag may have been added to: a
// stopped failover test leaves its mark there (zvm-wire 4.5).
func (s *Session) readPin(ctx context.Context, claimed TaggedCheckpoint) (zvm.Checkpoint, error) {
	around := zvm.Window{From: claimed.Timestamp.Add(-windowMargin), To: claimed.Timestamp.Add(windowMargin)}
	for cp, err := range s.zvm.ListCheckpoints(ctx, claimed.VPGID, around) {
		switch {
		case errors.Is(err, zvm.ErrNotFound):
			return zvm.Checkpoint{}, fmt.Errorf("VPG %s: %w: %w", claimed.VPGName, ErrCheckpointGone, err)
		case err != nil:
			return zvm.Checkpoint{}, fmt.Errorf("journal of %s: %w", claimed.VPGName, err)
		case cp.ID == claimed.CheckpointID && claimed.Tag != "" && strings.Contains(cp.Tag, claimed.Tag):
			return cp, nil
		}
	}
	return zvm.Checkpoint{}, fmt.Errorf("VPG %s, checkpoint %s of %s: %w",
		claimed.VPGName, claimed.CheckpointID, claimed.Timestamp.Format(time.RFC3339), ErrCheckpointGone)
}
