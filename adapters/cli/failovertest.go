package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// testLimit bounds the start and the stop of a failover test, which boots VMs and tears them down.
const testLimit = 30 * time.Minute

// shownTest is a failover test and whether this command stopped it.
type shownTest struct {
	rewind.TestRecord

	Stopped bool `json:"stopped"`
}

// ending is what a stopped test is recorded with.
type ending struct {
	passed, failed bool
	summary        string
}

func (e *ending) flags(c *cobra.Command) {
	c.Flags().BoolVar(&e.passed, "passed", false, "record the test as passed")
	c.Flags().BoolVar(&e.failed, "failed", false, "record the test as failed, which is the default")
	c.Flags().StringVar(&e.summary, "summary", "", "`words` for the site's records")
	c.MarkFlagsMutuallyExclusive("passed", "failed")
}

func (e *ending) given() bool { return *e != ending{} }

func (a *app) failoverTest() *cobra.Command {
	return group(cobra.Command{
		Use:   "test",
		Short: "Run a guarded VM as it was at its tagged checkpoint, isolated, beside the real one",
	}, a.testStart(), a.testStatus(), a.testStop())
}

func (a *app) testStart() *cobra.Command {
	var at target
	var end ending
	var yes consent
	var duration time.Duration
	c := a.inSteps(cobra.Command{
		Use:   "start --change ID [--vm VM] [--vpg VPG] [--for DURATION] [--yes]",
		Short: "Start a failover test, and with --for stop it again",
		Long: `Start boots a copy of the VM from the change's tagged checkpoint in the test network of the VPG's recovery site, while
the VM itself runs on and stays protected. It returns once the test runs, and says what stops it; after two hours sweep
--apply does. With --for it waits that long and stops the test, and does so at once when it is interrupted; when it is
killed, sweep --apply does so after the same time. The journal keeps the deadline: one beyond the history of the VPG is lost.

On a terminal it asks before it starts anything; scripts say --yes.`,
		Args: exactly(),
	}, testLimit, "`limit` for the start, and as much again for the stop of --for, 0 for none", func(ctx context.Context, _ []string) error {
		if end.given() && duration == 0 {
			return &usageError{errors.New("--passed, --failed and --summary are for the stop that --for leads to")}
		}
		test, err := a.startTest(ctx, at, yes, duration)
		if err != nil {
			return err
		}
		if duration > 0 {
			return a.runTest(ctx, test, duration, end)
		}
		err = a.showTest(shownTest{TestRecord: test.Record()})
		if !a.json {
			a.say("it runs until it is stopped by: %s", at.command("test stop"))
			if until := test.Record().Deadline; !until.IsZero() {
				a.say("sweep --apply stops it after %s", moment(until))
			}
		}
		return err
	})
	at.guardFlags(c)
	at.vpgFlag(c)
	end.flags(c)
	yes.flag(c)
	c.Flags().Var((*span)(&duration), "for", "`duration` after which the test is stopped, such as 90m or 2d")
	return c
}

func (a *app) startTest(ctx context.Context, at target, yes consent, duration time.Duration) (*rewind.Test, error) {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	if err := a.canAsk(yes, "start a failover test"); err != nil {
		return nil, err
	}
	session, guard, err := a.findGuard(ctx, at)
	if err != nil {
		return nil, err
	}
	vm := nameOf(guard)
	if err := a.ask(ctx, yes, vm, "This boots a copy of "+vm+" at the recovery site."); err != nil {
		return nil, err
	}
	opts := at.options()
	if duration > 0 {
		opts = append(opts, rewind.For(duration))
	}
	test, err := session.StartTest(ctx, guard, opts...)
	if err == nil && test.Record().MarkID == "" {
		a.say("%s takes no checkpoint now: if this process is killed, sweep will not know the test", test.Record().VPGName)
	}
	return test, err
}

// runTest lets a test run for a while and stops it, also when ctx ends before: what it has opened is closed.
func (a *app) runTest(ctx context.Context, test *rewind.Test, duration time.Duration, end ending) error {
	if !a.json {
		a.say("running %s for %s; an interrupt stops it now", test.Record().VPGName, inWords(duration))
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	var interrupted error
	select {
	case <-timer.C:
	case <-ctx.Done():
		interrupted = hinted(context.Cause(ctx), "the failover test was stopped")
	}
	if err := a.stopTest(context.WithoutCancel(ctx), test, end); err != nil {
		return err
	}
	return errors.Join(a.showTest(shownTest{test.Record(), true}), interrupted)
}

func (a *app) stopTest(ctx context.Context, test *rewind.Test, end ending) error {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	return test.Stop(ctx, rewind.TestResult(end.passed), end.summary)
}

func (a *app) testStatus() *cobra.Command {
	var at target
	c := a.command(cobra.Command{
		Use:   "status --change ID [--vm VM] [--vpg VPG]",
		Short: "Show the failover test that runs at the VPG of a guard",
		Long: `Status shows the failover test that runs at the VPG of the change's tagged checkpoint. The ZVM does not say of which
checkpoint a test is. Exit code 5 says that none runs.`,
		Args: exactly(),
	}, 10*time.Minute, func(ctx context.Context, _ []string) error {
		session, guard, err := a.findGuard(ctx, at)
		if err != nil {
			return err
		}
		test, err := session.FindTest(ctx, guard, at.options()...)
		if err != nil {
			return err
		}
		return a.showTest(shownTest{TestRecord: test.Record()})
	})
	at.guardFlags(c)
	at.vpgFlag(c)
	return c
}

func (a *app) testStop() *cobra.Command {
	var at target
	var end ending
	var yes consent
	c := a.command(cobra.Command{
		Use:   "stop --change ID [--vm VM] [--vpg VPG] [--passed|--failed] [--summary TEXT] [--yes]",
		Short: "Stop a failover test and remove its VMs",
		Long: `Stop ends the failover test that runs at the VPG of the change's tagged checkpoint, whoever started it, and waits until
its VMs are removed. On a terminal it asks first; scripts say --yes.`,
		Args: exactly(),
	}, testLimit, func(ctx context.Context, _ []string) error {
		if err := a.canAsk(yes, "stop a failover test"); err != nil {
			return err
		}
		session, guard, err := a.findGuard(ctx, at)
		if err != nil {
			return err
		}
		test, err := session.FindTest(ctx, guard, at.options()...)
		if err != nil {
			return err
		}
		question := "This stops the failover test of VPG " + test.Record().VPGName + " and removes its VMs."
		if err := a.ask(ctx, yes, nameOf(guard), question); err != nil {
			return err
		}
		if err := test.Stop(ctx, rewind.TestResult(end.passed), end.summary); err != nil {
			return err
		}
		return a.showTest(shownTest{test.Record(), true})
	})
	at.guardFlags(c)
	at.vpgFlag(c)
	end.flags(c)
	yes.flag(c)
	return c
}

func (a *app) showTest(s shownTest) error {
	return a.result(s, func(t *table) {
		t.row("change", s.ChangeID)
		t.row("vms", vmNames(s.VMs))
		t.row("vpg", s.VPGName)
		t.row("checkpoint", string(s.CheckpointID))
		t.row("task", orDash(string(s.TaskID)))
		if !s.Deadline.IsZero() {
			t.row("until", moment(s.Deadline))
		}
		if s.Stopped {
			t.row("stage", "stopped")
			return
		}
		t.row("stage", s.Stage)
	})
}

// nameOf returns the name of a found guard's one VM.
func nameOf(g *rewind.Guard) string { return vmNames(g.Record().VMs) }
