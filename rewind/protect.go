package rewind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Protect guards one change of one VM, which is named as [Session.FindProtection] takes names. See
// [Session.ProtectAll].
func (s *Session) Protect(ctx context.Context, vm string, change Change, opts ...ProtectOption) (*Guard, error) {
	return s.ProtectAll(ctx, []string{vm}, change, opts...)
}

// ProtectAll guards one change of several VMs: it inserts one tagged checkpoint into the journal of every VPG that
// protects one of them, and returns when each was read back.
//
// It is all or nothing. A VM that no VPG protects is a [*NotProtectedError], and nothing was inserted; a failure at any
// VPG is a [*PartialGuardError] that names every tag that was, or may have been, inserted. A change ID that was given
// and whose tag already stands in a VPG is not inserted there again.
//
// When ctx ends, the waiting ends; what was queued at the ZVM goes on, and the error names it. Without a deadline a VPG at
// which others insert all the time is tried for ever.
func (s *Session) ProtectAll(ctx context.Context, vms []string, change Change, opts ...ProtectOption) (*Guard, error) {
	p, err := s.plan(ctx, vms, change)
	if err != nil {
		return nil, err
	}
	var o protectOptions
	for _, opt := range opts {
		opt(&o)
	}
	if o.quiesce != nil {
		if err := s.takeAllTurns(ctx, p); err != nil {
			return nil, err
		}
		defer p.release()
		if err := o.quiesce.begin(ctx, p.clock, len(p.targets)); err != nil {
			return nil, err
		}
		p.quiesce = o.quiesce
		defer o.quiesce.end(ctx)
	}
	outcomes := make([]outcome, len(p.targets))
	for i, t := range p.targets {
		outcomes[i].failure = t.failed("", "", errUnfinished) // until something better is known
	}
	g := newGroup()
	g.SetLimit(s.parallel)
	for i, target := range p.targets {
		g.Go(func() error {
			outcomes[i] = s.tagVPG(ctx, p, target)
			return nil
		})
	}
	_ = g.Wait() // outcomes carry the errors, so that one VPG's failure cuts no other short
	if p.quiesce != nil {
		p.quiesce.end(ctx)
		quiesced := p.quiesce.result()
		p.record.Quiesced = &quiesced
	}
	s.confirm(ctx, p, outcomes)
	pins, err := p.settle(outcomes)
	if err != nil {
		return nil, err
	}
	p.record.ProvenAt = p.clock.now()
	guard := newGuard(p.record, pins)
	for _, c := range guard.record.Checkpoints {
		s.progress(Event{Stage: StageProven, VPGName: c.VPGName, Tag: c.Tag, Checkpoint: c.CheckpointID})
	}
	if o.drillPath != "" {
		drilled, err := s.drill(ctx, guard, o.drillPath)
		if err != nil {
			drilled.Error = err.Error()
		}
		guard.record.Drill = drilled
		if err != nil && o.drillRequired {
			return nil, &DrillError{Record: guard.Record(), Err: err}
		}
	}
	return guard, nil
}

// takeAllTurns waits for the turn at every VPG of a plan, in one order for all callers so that none waits for another in
// a circle.
func (s *Session) takeAllTurns(ctx context.Context, p *plan) error {
	ids := make([]zvm.VPGID, len(p.targets))
	for i, t := range p.targets {
		ids[i] = t.vpg.VPGID
	}
	slices.Sort(ids)
	p.turns = map[zvm.VPGID]*turn{}
	for _, id := range ids {
		mine, err := s.turns.take(ctx, id)
		if err != nil {
			p.release()
			return fmt.Errorf("waiting for the turns of all VPGs: %w", err)
		}
		p.turns[id] = mine
	}
	return nil
}

func (p *plan) release() {
	for _, mine := range p.turns {
		mine.done()
	}
	p.turns = nil
}

// plan is one change, resolved: what to insert where.
type plan struct {
	record  GuardRecord
	clock   serverClock
	targets []target
	known   bool     // the change's id was given, so its tags may stand already
	quiesce *quiesce // nil unless asked for
	// turns are those that are held already, for the whole plan.
	turns map[zvm.VPGID]*turn
}

// target is one VPG to be tagged, with the VMs of the change that are in it.
type target struct {
	vpg     VPGProtection
	members []VM
	tag     string
	names   []string // how the tag names the members
}

// serverClock tells the server's time from one reading of it and the time that has passed here since, so that a wrong
// local clock does not matter.
type serverClock struct {
	read time.Time // server clock
	at   time.Time // local, monotonic
}

func (c serverClock) now() time.Time { return c.read.Add(time.Since(c.at)) }

func (s *Session) plan(ctx context.Context, vms []string, change Change) (*plan, error) {
	if len(vms) == 0 {
		return nil, errors.New("rewind: nothing to protect: no VM was named")
	}
	inv, clock, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("protect %s: %w", strings.Join(vms, ", "), err)
	}
	p := &plan{clock: clock, known: change.ID != "", record: GuardRecord{
		ChangeID:  change.ID,
		Agent:     firstNonEmpty(change.Agent, s.agent),
		Human:     firstNonEmpty(change.Human, s.human),
		Action:    change.Action,
		StartedAt: clock.read,
	}}
	if !p.known {
		p.record.ChangeID = newChangeID()
	}
	for _, name := range vms {
		protection, err := s.resolve(ctx, inv, name)
		if err != nil {
			return nil, err
		}
		s.progress(Event{Stage: StageFound, VM: protection.VM})
		if err := p.add(protection); err != nil {
			return nil, err
		}
	}
	for i := range p.targets {
		t := &p.targets[i]
		t.names = tagNames(t.members, inv.membersOf(t.vpg.VPGID))
		t.tag = Tag{
			Agent: p.record.Agent, Action: p.record.Action, VMs: t.names, Change: p.record.ChangeID, Time: clock.read,
		}.String()
	}
	return p, nil
}

// look reads the inventory and the server's clock.
func (s *Session) look(ctx context.Context) (inv inventory, clock serverClock, err error) {
	g, ctx := groupWithin(ctx)
	g.Go(func() (err error) {
		inv, err = s.inventory.get(ctx)
		return err
	})
	g.Go(func() (err error) {
		clock, err = s.readClock(ctx)
		return err
	})
	return inv, clock, g.Wait()
}

func (s *Session) readClock(ctx context.Context) (serverClock, error) {
	read, err := s.zvm.GetServerTime(ctx)
	return serverClock{read: read.UTC(), at: time.Now()}, err
}

func (p *plan) add(protection *Protection) error {
	vm := protection.VM
	if slices.Contains(p.record.VMs, vm) {
		return nil
	}
	if len(protection.Protecting()) == 0 {
		return &NotProtectedError{VM: vm, VPGs: protection.VPGs}
	}
	p.record.VMs = append(p.record.VMs, vm)
	for _, v := range protection.VPGs {
		if !v.Protecting {
			p.skip(v)
			continue
		}
		i := slices.IndexFunc(p.targets, func(t target) bool { return t.vpg.VPGID == v.VPGID })
		if i < 0 {
			p.targets = append(p.targets, target{vpg: v})
			i = len(p.targets) - 1
		}
		p.targets[i].members = append(p.targets[i].members, vm)
	}
	return nil
}

func (p *plan) skip(v VPGProtection) {
	if !slices.ContainsFunc(p.record.Skipped, func(s SkippedVPG) bool { return s.VPGID == v.VPGID }) {
		p.record.Skipped = append(p.record.Skipped, SkippedVPG{VPGID: v.VPGID, VPGName: v.VPGName, Reason: v.Reason})
	}
}

// tagNames returns how a tag names each member: by name, or by id where another machine of the VPG bears that name.
func tagNames(members, all []VM) []string {
	names := make([]string, len(members))
	for i, vm := range members {
		names[i] = vm.Name
		if namesakes(vm, all) || vm.Name == "" {
			names[i] = string(vm.ID)
		}
	}
	return names
}

func namesakes(vm VM, all []VM) bool {
	return slices.ContainsFunc(all, func(other VM) bool { return other.ID != vm.ID && strings.EqualFold(other.Name, vm.Name) })
}

// outcome is what happened at one VPG: a pin, or a failure.
type outcome struct {
	pin     tagged
	failure *VPGFailure
}

// settle makes the pins of all VPGs, or the error that says how far it came.
func (p *plan) settle(outcomes []outcome) ([]tagged, error) {
	var pins []tagged
	partial := &PartialGuardError{ChangeID: p.record.ChangeID}
	for _, o := range outcomes {
		if o.failure != nil {
			partial.Failed = append(partial.Failed, *o.failure)
			continue
		}
		pins = append(pins, o.pin)
		partial.Tagged = append(partial.Tagged, o.pin.TaggedCheckpoint)
	}
	if len(partial.Failed) > 0 {
		return nil, partial
	}
	return pins, nil
}

// newChangeID returns 12 characters that do not repeat and are short enough to leave a tag room for the action.
func newChangeID() string {
	text := strings.ToLower(rand.Text()[:12])
	return text[:4] + "-" + text[4:8] + "-" + text[8:]
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func pinOf(t target, cp zvm.Checkpoint, taskID zvm.TaskID, taskState string) tagged {
	return tagged{
		members: t.members,
		TaggedCheckpoint: TaggedCheckpoint{
			VPGID: t.vpg.VPGID, VPGName: t.vpg.VPGName,
			CheckpointID: cp.ID, Tag: cp.Tag, Timestamp: cp.Time.UTC(),
			TaskID: taskID, TaskState: taskState,
			Local: t.vpg.Local, ProtectedSite: t.vpg.ProtectedSite, RecoverySite: t.vpg.RecoverySite,
		},
	}
}
