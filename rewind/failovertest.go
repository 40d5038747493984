package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// DefaultTestDeadline is how long after its start a failover test may run, where [For] does not say, before [Session.Sweep]
// takes it for forgotten and stops it.
const DefaultTestDeadline = 2 * time.Hour

var (
	// ErrTestRunning is matched when a failover test of a VPG is asked for while one runs there.
	ErrTestRunning = errors.New("a failover test is running at this VPG")
	// ErrNoTest is matched when a failover test is to be found or stopped and none runs.
	ErrNoTest = errors.New("no failover test is running at this VPG")
)

// TestResult says how a failover test went.
type TestResult bool

// The two results.
const (
	TestPassed TestResult = true
	TestFailed TestResult = false
)

// Test is a running failover test of guarded VMs. It runs until it is stopped. Only a [Session] makes one.
type Test struct {
	s      *Session
	record TestRecord
}

// TestRecord is a failover test as data.
type TestRecord struct {
	ChangeID     string           `json:"changeId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	VMs          []VM             `json:"vms"`
	// TaskID is the start's. It is empty for a test that was found running.
	TaskID zvm.TaskID `json:"taskId"`
	// MarkID is the checkpoint whose name tells every process of this test. It is empty for a test that was found running,
	// and where the VPG took no checkpoint: after a crash nobody can then tell whose the test is.
	MarkID zvm.CheckpointID `json:"markId"`
	// Deadline is what [For] or [DefaultTestDeadline] came to, server clock. It is zero where MarkID is empty.
	Deadline time.Time `json:"deadline,omitzero"`
	// Stage is the server's word for how far the test is, empty once it was stopped.
	Stage string `json:"stage"`
}

// Record returns the test as data.
func (t *Test) Record() TestRecord {
	r := t.record
	r.VMs = nonNil(r.VMs)
	return r
}

// StartTest starts a failover test of exactly the guarded VMs from exactly the guarded checkpoint, and returns when it
// runs. The VMs start in isolation at the VPG's recovery site; protection goes on.
//
// Where the guard has several checkpoints, the local one is taken, or the one that [InVPG] names. When ctx ends after
// the start was sent, the test is stopped again on a context of its own.
//
// The start is announced in the VPG's journal first, by one more tagged checkpoint, so that [Session.Sweep] knows the test
// again when this process is gone, and its deadline, which is [DefaultTestDeadline] from now unless [For] gives another.
//
// Errors: [ErrNotProven], [ErrCheckpointGone], [ErrTestRunning], [*LeftOpenError] when what was started could not be
// stopped.
func (s *Session) StartTest(ctx context.Context, g *Guard, opts ...PlaceOption) (*Test, error) {
	opts, lasts, err := withoutFor(opts)
	if err != nil {
		return nil, err
	}
	if lasts == 0 {
		lasts = DefaultTestDeadline
	}
	from, err := s.chooseStart(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	t := s.testOf(g, from)
	switch stage, err := t.stage(ctx); {
	case err != nil:
		return nil, err
	case stage != "":
		return nil, fmt.Errorf("%s: %w (%s)", from.VPGName, ErrTestRunning, stage)
	}
	start, err := s.beforeStarting(ctx, g, from, LeftTest, lasts)
	if err != nil {
		return nil, t.failed("starting", err)
	}
	t.record.MarkID, t.record.Deadline = start.mark.CheckpointID, start.mark.until
	running := openedTest(t.record)
	s.tellOpened(running.lasting(lasts))
	if err := t.run(ctx, from, start); err != nil {
		s.tellEnded(running, err)
		return nil, err
	}
	return t, nil
}

// run starts a test that was announced, and waits until it runs.
func (t *Test) run(ctx context.Context, from covered, start *startedTask) error {
	id, err := t.s.zvm.StartFailoverTest(ctx, from.VPGID, from.CheckpointID, from.ids())
	if t.record.TaskID, err = start.settle(ctx, id, err); err != nil {
		return t.failed("starting", start.mayBeOpen(err, "failover test of VPG", from.VPGName, openedTest(t.record).Command))
	}
	if err := t.s.waitTask(ctx, t.record.TaskID, from.VPGName); err != nil {
		return errors.Join(t.failed("starting", err), t.abandon(ctx))
	}
	if t.record.Stage, err = t.stage(ctx); err != nil {
		t.record.Stage = "started"
	}
	return nil
}

func (s *Session) testOf(g *Guard, from covered) *Test {
	return &Test{s: s, record: TestRecord{
		ChangeID: g.record.ChangeID, VPGID: from.VPGID, VPGName: from.VPGName, CheckpointID: from.CheckpointID, VMs: from.vms,
	}}
}

// FindTest returns the failover test that runs at the VPG of a guard's checkpoint, so that it can be stopped by another
// process than the one that started it. The server does not say of which checkpoint a test is: whether it is that of the
// guard, the caller has to know. [ErrNoTest] says that none runs, an [*AmbiguousVPGError] that several do.
func (s *Session) FindTest(ctx context.Context, g *Guard, opts ...PlaceOption) (*Test, error) {
	found, err := g.choose(opts)
	if err != nil {
		return nil, err
	}
	var running []covered
	var test *Test
	for _, from := range found {
		t := s.testOf(g, from)
		if t.record.Stage, err = t.stage(ctx); err != nil {
			return nil, err
		}
		if t.record.Stage != "" {
			test, running = t, append(running, from)
		}
	}
	switch len(running) {
	case 0:
		return nil, fmt.Errorf("%s: %w", shown(found[0].VPGName), ErrNoTest)
	case 1:
		return test, nil
	}
	return nil, ambiguousVPG(running)
}

func (t *Test) stage(ctx context.Context) (string, error) {
	vpg, err := t.s.zvm.GetVPG(ctx, t.record.VPGID)
	if err != nil {
		return "", fmt.Errorf("reading the state of %s: %w", t.record.VPGName, err)
	}
	return vpg.FailoverTestStage, nil
}

func (t *Test) failed(doing string, err error) error {
	return fmt.Errorf("%s a failover test of %s: %w", doing, t.record.VPGName, err)
}

// abandon stops a test that did not come to run, or not in time for its caller.
func (t *Test) abandon(ctx context.Context) error {
	return t.end(context.WithoutCancel(ctx), "abandoned before it was used")
}

// end stops a test whatever it is doing. One that is being set up can be neither used nor stopped: its start is followed
// to its end first. When that is a failure, what runs all the same is another's, or cannot be told from one.
func (t *Test) end(ctx context.Context, why string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.s.limits.Abandon, fmt.Errorf("not stopped within %v", t.s.limits.Abandon))
	defer cancel()
	_, err := task.Wait(ctx, t.s.zvm, t.record.TaskID, task.WithSchedule(t.s.schedule))
	var failed *task.Error
	if !errors.As(err, &failed) {
		return t.Stop(ctx, TestFailed, why)
	}
	if stage, err := t.stage(ctx); err == nil && stage == "" {
		return nil
	}
	open := t.leftOpen(err)
	open.MayBe = true
	return open
}

// Stop stops the test and waits until it is torn down. The summary goes into the site's records behind the change's id.
// A test that could not be stopped is a [*LeftOpenError].
func (t *Test) Stop(ctx context.Context, result TestResult, summary string) error {
	if t == nil || t.s == nil {
		return ErrNoTest
	}
	err := t.stop(ctx, result, fmt.Sprintf("change %s: %s", t.record.ChangeID, summary))
	if err != nil {
		return t.leftOpen(err)
	}
	t.record.Stage = ""
	t.s.tellClosed(openedTest(t.record))
	return nil
}

func (t *Test) leftOpen(err error) *LeftOpenError {
	return &LeftOpenError{What: "failover test of VPG", ID: t.record.VPGName, Command: openedTest(t.record).Command, Err: err}
}

func (t *Test) stop(ctx context.Context, result TestResult, summary string) error {
	id, err := t.s.zvm.StopFailoverTest(ctx, t.record.VPGID, bool(result), summary)
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		return t.seenStopped(ctx, err)
	}
	if err != nil {
		return t.stoppedByAnother(ctx, err)
	}
	return t.s.waitTask(ctx, id, t.record.VPGName)
}

// stoppedByAnother returns nil when a stop was refused because there is nothing left to stop: another one, of a process that
// was killed say, came first. One under way is waited for.
func (t *Test) stoppedByAnother(ctx context.Context, refusal error) error {
	switch stage, err := t.stage(ctx); {
	case err != nil:
		return refusal
	case stage == "":
		return nil
	case strings.EqualFold(stage, stageStopping):
		return t.seenStopped(ctx, refusal)
	}
	return refusal
}

// stageStopping is the server's word for a test that is being torn down (zvm-wire 7.2).
const stageStopping = "Stopping"

// seenStopped looks for the effect of a stop whose answer was lost, whoever's stop it was.
func (t *Test) seenStopped(ctx context.Context, lost error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.s.limits.Abandon, fmt.Errorf("still running after %v", t.s.limits.Abandon))
	defer cancel()
	err := task.Poll(ctx, func(ctx context.Context) (bool, error) {
		stage, err := t.stage(ctx)
		return stage == "", err
	}, task.WithSchedule(t.s.schedule))
	if err != nil {
		return fmt.Errorf("%w; looked whether the test had stopped: %w", lost, err)
	}
	return nil
}
