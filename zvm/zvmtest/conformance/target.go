package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Target is the ZVM to check, and how far to go.
type Target struct {
	// Client talks to the ZVM. Its user should have the rights of the agent.
	Client *zvm.Client
	// Tap is what the client sends through, or nil: then no question about
	// the wire itself is answered, and every behaviour is checked all the same.
	Tap *Tap
	// VM is the exact name of a protected VM.
	VM string
	// Mutate allows tagged checkpoints and a mount for file-level recovery.
	Mutate bool
	// Test allows a failover test of the VM, if Mutate does too.
	Test bool
	// OmitNames leaves names of VMs, VPGs and sites and guest paths out of
	// the report altogether.
	OmitNames bool
	// Schedule is how the suite polls; the zero Schedule will do.
	Schedule task.Schedule
	// Limit bounds each behaviour. Zero means 10 minutes.
	Limit time.Duration
}

// Run checks every behaviour as a subtest of t and returns the report. What
// the target does not allow, or does not have, is skipped with its reason.
func Run(t *testing.T, target Target) *Report {
	t.Helper()
	s, err := newSuite(target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close(t.Context())
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			switch r := s.check(t.Context(), b); r.Outcome {
			case Failed:
				t.Error(r.Detail)
			case Skipped:
				t.Skip(r.Detail)
			}
		})
	}
	report := s.finish(t.Context())
	for _, left := range report.LeftOpen {
		t.Errorf("left open: %s", left)
	}
	return report
}

// Check is Run for programs that are no test. The error says that the target
// is unusable; whether behaviours failed is in the report.
func Check(ctx context.Context, target Target) (*Report, error) {
	s, err := newSuite(target)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	for _, b := range behaviours() {
		s.check(ctx, b)
	}
	return s.finish(ctx), nil
}

// behaviour is one thing that package rewind relies on.
type behaviour struct {
	name    string
	mutates bool
	check   func(context.Context, *suite) error
}

func behaviours() []behaviour {
	var all []behaviour
	all = append(all, inventoryBehaviours()...)
	all = append(all, journalBehaviours()...)
	all = append(all, insertBehaviours()...)
	all = append(all, mountBehaviours()...)
	return append(all, testBehaviours()...)
}

// notApplicable is why a behaviour cannot be checked here.
type notApplicable string

func (n notApplicable) Error() string { return string(n) }

// suite is a run against one target, with what earlier behaviours found.
type suite struct {
	Target

	report  *Report
	scrub   *scrubber
	rows    []zvm.VM
	vpgs    []zvm.VPG
	tagged  []taggedPoint
	session openSession
	test    startedTest
}

func newSuite(target Target) (*suite, error) {
	switch {
	case target.Client == nil:
		return nil, errors.New("conformance: the target has no client")
	case target.VM == "":
		return nil, errors.New("conformance: the target names no VM")
	case target.Limit < 0:
		return nil, errors.New("conformance: the limit is negative")
	}
	if target.Limit == 0 {
		target.Limit = 10 * time.Minute
	}
	s := &suite{Target: target, report: &Report{}, scrub: newScrubber(target.OmitNames)}
	s.scrub.name("vm", target.VM)
	s.scrub.host(target.Client.BaseURL())
	return s, nil
}

// check runs one behaviour and enters it in the report.
func (s *suite) check(ctx context.Context, b behaviour) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("not done within %v", s.Limit))
	defer cancel()
	r := Result{Behaviour: b.name, Mutates: b.mutates, Outcome: Passed}
	begun := time.Now()
	var err error = notApplicable("the target does not allow mutations")
	if s.Mutate || !b.mutates {
		err = b.check(ctx, s)
	}
	r.Seconds = time.Since(begun).Seconds()
	var skip notApplicable
	switch {
	case errors.As(err, &skip):
		r.Outcome, r.Detail = Skipped, skip.Error()
	case err != nil:
		r.Outcome, r.Detail = Failed, s.scrub.text(err.Error())
	}
	s.report.Results = append(s.report.Results, r)
	return r
}

func (s *suite) finish(ctx context.Context) *Report {
	s.close(ctx)
	s.askWire(ctx)
	s.report.sort()
	return s.report
}

// answer notes what a probe of an open question saw.
func (s *suite) answer(question int, probe, format string, args ...any) {
	s.note(Answer{Question: question, Probe: probe, Observed: s.scrub.text(fmt.Sprintf(format, args...))})
}

func (s *suite) note(a Answer) {
	if !slices.Contains(s.report.Answers, a) {
		s.report.Answers = append(s.report.Answers, a)
	}
}

// close closes what a failed behaviour left open, on a context of its own.
func (s *suite) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Limit)
	defer cancel()
	var left []string
	if s.session.id != "" {
		if err := s.unmount(ctx); err != nil {
			left = append(left, "the FLR session "+string(s.session.id)+": "+err.Error())
		}
		s.session.id = ""
	}
	if s.test.vpg != "" {
		if err := s.stopTest(ctx, false); err != nil {
			left = append(left, "the failover test of VPG "+string(s.test.vpg)+": "+err.Error())
		}
		s.test = startedTest{}
	}
	s.report.LeftOpen = append(s.report.LeftOpen, left...)
}

// lost notes that a write whose answer was lost may have opened something.
func (s *suite) lost(what string, err error) error {
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		s.report.LeftOpen = append(s.report.LeftOpen, what+" may be open: "+err.Error())
	}
	return err
}

func (s *suite) wait(ctx context.Context, id zvm.TaskID) (task.Status, error) {
	return task.Wait(ctx, s.Client, id, task.WithSchedule(s.Schedule))
}

func (s *suite) poll(ctx context.Context, look func(context.Context) (bool, error)) error {
	return task.Poll(ctx, look, task.WithSchedule(s.Schedule))
}

// shortly is poll for an effect that follows what is done already.
func (s *suite) shortly(ctx context.Context, look func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit/5, fmt.Errorf("not within %v", s.Limit/5))
	defer cancel()
	return s.poll(ctx, look)
}

// need is the VM's rows, or the reason why nothing about it can be checked.
func (s *suite) need() ([]zvm.VM, error) {
	if len(s.rows) == 0 {
		return nil, notApplicable("the VM was not found")
	}
	return s.rows, nil
}

// protecting lists the VPGs of the VM that take checkpoints now.
func (s *suite) protecting() ([]zvm.VPG, error) {
	var able []zvm.VPG
	for _, v := range s.vpgs {
		meets := v.Status >= zvm.StatusMeetingSLA && v.Status <= zvm.StatusHistoryNotMeeting
		if meets && (v.SubStatus == zvm.SubStatusNone || v.SubStatus == zvm.SubStatusBackup) {
			able = append(able, v)
		}
	}
	if len(able) == 0 {
		return nil, notApplicable("no VPG of the VM takes checkpoints now")
	}
	return able, nil
}

func sameID[T ~string](a, b T) bool { return strings.EqualFold(string(a), string(b)) }
