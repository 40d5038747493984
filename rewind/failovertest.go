package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Task type names (zvm-wire 5.5).
const (
	typeFailoverTest     = "FailOverTest"
	typeStopFailoverTest = "StopFailOverTest"
	typeClone            = "Clone"
)

// ErrTestRunning is matched when a failover test of a VPG is asked for while one runs there.
var ErrTestRunning = errors.New("a failover test is running at this VPG")

// Verdict says how a failover test went.
type Verdict bool

// The two verdicts.
const (
	TestPassed Verdict = true
	TestFailed Verdict = false
)

// Test is a running failover test of guarded VMs, from the guard's checkpoint. It runs until it is stopped.
type Test struct {
	ChangeID     string
	VPGID        zvm.VPGID
	VPGName      string
	CheckpointID zvm.CheckpointID
	VMs          []VM
	TaskID       zvm.TaskID // of the start

	s *Session
}

// StartTest starts a failover test of exactly the guarded VMs from exactly the guarded checkpoint, and returns when it
// runs. The VMs start in isolation at the VPG's recovery site; protection goes on.
//
// Where the guard has several checkpoints, the local one is taken, or the one that [InVPG] names. When ctx ends after
// the start was sent, the test is stopped again on a context of its own.
//
// Errors: [ErrNotProven], [ErrCheckpointGone], [ErrTestRunning], [*LeftOpenError] when what was started could not be
// stopped.
func (s *Session) StartTest(ctx context.Context, g *Guard, opts ...RecoverOption) (*Test, error) {
	pin, vms, err := s.choosePlace(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	vpg, err := s.zvm.GetVPG(ctx, pin.VPGID)
	if err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", pin.VPGName, err)
	}
	if vpg.FailoverTestStage != "" {
		return nil, fmt.Errorf("%s: %w (%s)", pin.VPGName, ErrTestRunning, vpg.FailoverTestStage)
	}
	start, err := s.beforeStarting(ctx, pin.VPGID, typeFailoverTest)
	if err != nil {
		return nil, fmt.Errorf("starting a failover test of %s: %w", pin.VPGName, err)
	}
	id, err := s.zvm.StartFailoverTest(ctx, pin.VPGID, pin.CheckpointID, idsOf(vms))
	if id, err = start.settle(ctx, id, err); err != nil {
		return nil, fmt.Errorf("starting a failover test of %s: %w", pin.VPGName, err)
	}
	t := &Test{
		ChangeID: g.record.ChangeID, VPGID: pin.VPGID, VPGName: pin.VPGName,
		CheckpointID: pin.CheckpointID, VMs: vms, TaskID: id, s: s,
	}
	if err := start.wait(ctx, id, pin.VPGName); err != nil {
		err = fmt.Errorf("starting a failover test of %s: %w", pin.VPGName, err)
		return nil, errors.Join(err, t.abandon(ctx))
	}
	return t, nil
}

// abandon stops a test that did not come to run, or not in time for its caller. A test that is being set up can be
// neither used nor stopped: its start is followed to its end first.
func (t *Test) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), t.s.limits.Abandon,
		fmt.Errorf("not stopped within %v", t.s.limits.Abandon))
	defer cancel()
	_, err := task.Wait(ctx, t.s.zvm, t.TaskID, task.WithSchedule(t.s.schedule))
	var failed *task.Error
	if errors.As(err, &failed) {
		if vpg, err := t.s.zvm.GetVPG(ctx, t.VPGID); err == nil && vpg.FailoverTestStage == "" {
			return nil
		}
	}
	return t.Stop(ctx, TestFailed, "abandoned before it was used")
}

// Stop stops the test and waits until it is torn down. The summary goes into the site's records behind the change's id.
// A test that could not be stopped is a [*LeftOpenError].
func (t *Test) Stop(ctx context.Context, verdict Verdict, summary string) error {
	err := t.stop(ctx, verdict, fmt.Sprintf("change %s: %s", t.ChangeID, summary))
	if err == nil {
		return nil
	}
	return &LeftOpenError{
		What: "failover test of VPG", ID: t.VPGName, Command: "zerto-rewind test stop --change " + t.ChangeID, Err: err,
	}
}

func (t *Test) stop(ctx context.Context, verdict Verdict, summary string) error {
	stop, err := t.s.beforeStarting(ctx, t.VPGID, typeStopFailoverTest)
	if err != nil {
		return err
	}
	id, err := t.s.zvm.StopFailoverTest(ctx, t.VPGID, bool(verdict), summary)
	if id, err = stop.settle(ctx, id, err); err != nil {
		return err
	}
	return stop.wait(ctx, id, t.VPGName)
}

// Cloned is a finished clone of guarded VMs, from the guard's checkpoint. Zerto never removes it: its VMs, powered off
// and unprotected at the VPG's recovery site, belong to the caller.
type Cloned struct {
	ChangeID     string           `json:"changeId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	Timestamp    time.Time        `json:"timestamp"` // of the checkpoint; the clones' names end in it
	RecoverySite string           `json:"recoverySite"`
	VMs          []VM             `json:"vms"` // what was cloned
	TaskID       zvm.TaskID       `json:"taskId"`
}

// Clone makes an offsite clone of exactly the guarded VMs from exactly the guarded checkpoint, and returns when it is
// made. The checkpoint is chosen as [Session.StartTest] does. When ctx ends while the clone is being made, it is aborted
// on a context of its own.
func (s *Session) Clone(ctx context.Context, g *Guard, opts ...RecoverOption) (*Cloned, error) {
	pin, vms, err := s.choosePlace(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	start, err := s.beforeStarting(ctx, pin.VPGID, typeClone)
	if err != nil {
		return nil, fmt.Errorf("cloning %s: %w", pin.VPGName, err)
	}
	id, err := s.zvm.StartClone(ctx, pin.VPGID, pin.CheckpointID, idsOf(vms))
	if id, err = start.settle(ctx, id, err); err != nil {
		return nil, fmt.Errorf("cloning %s: %w", pin.VPGName, err)
	}
	if err := start.wait(ctx, id, pin.VPGName); err != nil {
		err = fmt.Errorf("cloning %s: %w", pin.VPGName, err)
		if ctx.Err() != nil {
			err = errors.Join(err, s.abortClone(ctx, pin, g.record.ChangeID))
		}
		return nil, err
	}
	return &Cloned{
		ChangeID: g.record.ChangeID, VPGID: pin.VPGID, VPGName: pin.VPGName, CheckpointID: pin.CheckpointID,
		Timestamp: pin.Timestamp, RecoverySite: pin.RecoverySite, VMs: vms, TaskID: id,
	}, nil
}

func (s *Session) abortClone(ctx context.Context, pin TaggedCheckpoint, changeID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Unmount)
	defer cancel()
	if err := s.zvm.AbortClone(ctx, pin.VPGID); err != nil {
		return &LeftOpenError{
			What: "clone of VPG", ID: pin.VPGName, Command: "zerto-rewind clone abort --change " + changeID, Err: err,
		}
	}
	return nil
}

// choosePlace picks the checkpoint from which VMs are started or cloned, and reads it in its journal.
func (s *Session) choosePlace(ctx context.Context, g *Guard, opts []RecoverOption) (TaggedCheckpoint, []VM, error) {
	if !g.Proven() {
		return TaggedCheckpoint{}, nil, ErrNotProven
	}
	var o recoverOptions
	for _, opt := range opts {
		opt(&o)
	}
	pins := slices.DeleteFunc(slices.Clone(g.record.Checkpoints), func(c TaggedCheckpoint) bool { return !o.takes(c) })
	if len(pins) == 0 {
		return TaggedCheckpoint{}, nil, &NotFoundError{Wanted: o.vpg, What: "checkpoint of change " + g.record.ChangeID + " in VPG"}
	}
	pin := pins[max(0, slices.IndexFunc(pins, func(c TaggedCheckpoint) bool { return c.Local }))]
	vms := slices.Clone(g.members[pin.VPGID])
	if o.vm != "" {
		vm, err := g.chooseVM(o.vm)
		if err != nil {
			return TaggedCheckpoint{}, nil, err
		}
		vms = []VM{vm}
	}
	_, err := s.readPin(ctx, pin)
	return pin, vms, err
}

func idsOf(vms []VM) []zvm.VMID {
	ids := make([]zvm.VMID, len(vms))
	for i, vm := range vms {
		ids[i] = vm.ID
	}
	return ids
}
