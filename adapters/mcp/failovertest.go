package mcpadapter

import (
	"context"
	"fmt"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const (
	startTestName = "zerto_start_failover_test"
	stopTestName  = "zerto_stop_failover_test"
)

// changeArgs name a guarded change.
type changeArgs struct {
	ChangeID string `json:"changeId" jsonschema:"the id of the guarded change"`
	VM       string `json:"vm,omitempty" jsonschema:"the VM, when the change is about several; naming it is faster too"`
}

type testResult struct {
	rewind.TestRecord

	Stopped  bool   `json:"stopped" jsonschema:"whether the test has ended and its VMs are removed"`
	NextStep string `json:"nextStep"`
}

func (t *toolset) startTestTool() (tool, error) {
	const untouched = "No failover test was started."
	return define(t, definition{
		name:  startTestName,
		title: "Run the VM as it was, isolated",
		description: fmt.Sprintf("Boots a copy of the guarded VM as it was before the change, in the isolated test network of the VPG's recovery site, while "+
			"the VM itself runs on. Use it to look at the machine as it was, or when a file cannot be brought back by %s. A human has to "+
			"type the VM's name first. Takes minutes. The test runs until %s stops it; after two hours a sweep may.", t.name(recoverFileName), t.name(stopTestName)),
		hints:     hints(false, false, false, true),
		refine:    boundText("changeId", "vm"),
		untouched: untouched,
	}, func(ctx context.Context, c call, in changeArgs) (testResult, error) {
		guard, err := c.session.FindGuard(ctx, in.ChangeID, in.VM)
		if err != nil {
			return testResult{}, err
		}
		if err := t.confirm(ctx, c, about(guard, confirmation{
			tool:      startTestName,
			message:   "An agent wants to boot a copy of the VM, as it was before its change, in an isolated test network.",
			command:   "zerto-rewind test start",
			untouched: untouched,
		})); err != nil {
			return testResult{}, err
		}
		test, err := c.session.StartTest(ctx, guard)
		if err != nil {
			return testResult{}, err
		}
		return testResult{
			TestRecord: withVMs(test.Record()),
			NextStep:   fmt.Sprintf("The test runs. When it is no longer needed call %s with this changeId.", t.name(stopTestName)),
		}, nil
	})
}

func (t *toolset) stopTestTool() (tool, error) {
	const untouched = "The failover test was not stopped."
	return define(t, definition{
		name:  stopTestName,
		title: "Stop the failover test",
		description: fmt.Sprintf("Stops the failover test that %s started for a change, and waits until its VMs are removed. A human has to type the VM's name "+
			"first. Takes minutes.", t.name(startTestName)),
		hints:     hints(false, true, false, true),
		refine:    boundText("changeId", "vm"),
		untouched: untouched,
	}, func(ctx context.Context, c call, in changeArgs) (testResult, error) {
		guard, err := c.session.FindGuard(ctx, in.ChangeID, in.VM)
		if err != nil {
			return testResult{}, err
		}
		test, err := c.session.FindTest(ctx, guard)
		if err != nil {
			return testResult{}, err
		}
		k := about(guard, confirmation{
			tool: stopTestName, message: "An agent wants to stop the failover test at the VM's VPG and have its test VMs removed.",
			command: "zerto-rewind test stop", untouched: untouched,
		})
		k.object += " " + string(test.Record().VPGID)
		if err := t.confirm(ctx, c, k); err != nil {
			return testResult{}, err
		}
		if err := test.Stop(ctx, rewind.TestPassed, "stopped by "+stopTestName); err != nil {
			return testResult{}, err
		}
		return testResult{TestRecord: withVMs(test.Record()), Stopped: true, NextStep: "The test has ended. Nothing of it is left."}, nil
	})
}

// about fills in of which guard a confirmation is. The object is the VM and the checkpoints as they were just read.
func about(guard *rewind.Guard, k confirmation) confirmation {
	record := guard.Record()
	names := make([]string, len(record.VMs))
	for i, vm := range record.VMs {
		names[i] = vm.Name
	}
	k.vm, k.changeID = strings.Join(names, ", "), record.ChangeID
	k.command += " --change " + record.ChangeID
	for _, vm := range record.VMs {
		k.object += " " + string(vm.ID)
	}
	for _, c := range record.Checkpoints {
		k.object += fmt.Sprintf(" %s/%s", c.VPGID, c.CheckpointID)
	}
	return k
}

func withVMs(r rewind.TestRecord) rewind.TestRecord {
	r.VMs = orEmpty(r.VMs)
	return r
}
