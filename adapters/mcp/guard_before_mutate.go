package mcpadapter

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const guardName = "zerto_guard_before_mutate"

const maxGuardedVMs = 100

type guardArgs struct {
	VM       string   `json:"vm,omitempty" jsonschema:"the VM that the change is about: name, host name, IP address or Zerto vmIdentifier; give this or vms"`
	VMs      []string `json:"vms,omitempty" jsonschema:"the VMs, when one change is about several; give this or vm"`
	Action   string   `json:"action" jsonschema:"what is about to be done, in a few words for people, such as: upgrade nginx"`
	ChangeID string   `json:"changeId,omitempty" jsonschema:"leave out for a new change; the id of an earlier attempt to finish that one"`
}

// guardResult is the guard's record and the step to take next.
type guardResult struct {
	rewind.GuardRecord

	NextStep string `json:"nextStep"`
}

func (t *toolset) guardTool() (tool, error) {
	return define(t, definition{
		name:  guardName,
		title: "Guard a change before making it",
		description: fmt.Sprintf("Call this before you change a virtual machine. It inserts a tagged checkpoint into the journal of every VPG that "+
			"protects the VM, waits until each one is proven to stand, and returns the guard with its changeId. Takes some seconds, and up to "+
			"minutes. Make the change only after this succeeded. Checkpoints are crash-consistent. If the change goes wrong, bring files back "+
			"with %s and the changeId.", t.name(recoverFileName)),
		hints: hints(false, false, false, true),
		refine: func(input *jsonschema.Schema) {
			boundText("vm", "action", "changeId")(input)
			vms := input.Properties["vms"]
			vms.MinItems, vms.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(maxGuardedVMs)
			vms.Items.MinLength, vms.Items.MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(maxTextLength)
		},
		untouched: notGuarded,
	}, t.guard)
}

const notGuarded = "The change is not guarded and nothing was inserted. Do not make the change."

func (t *toolset) guard(ctx context.Context, c call, in guardArgs) (guardResult, error) {
	vms := in.VMs
	switch {
	case in.VM != "" && len(in.VMs) > 0, in.VM == "" && len(in.VMs) == 0:
		return guardResult{}, &refused{refusalError{
			Code: codeInvalidArguments, Message: "Exactly one of the arguments vm and vms has to be given.",
			NotDone:  notGuarded,
			NextStep: "Call again with one of them.",
		}}
	case in.VM != "":
		vms = []string{in.VM}
	}
	if err := t.mayGuard(ctx, notGuarded); err != nil {
		return guardResult{}, err
	}
	g, err := c.session.ProtectAll(ctx, vms, rewind.Change{ID: in.ChangeID, Action: in.Action, Agent: t.agentOf(c)})
	if err != nil {
		return guardResult{}, err
	}
	if t.made != nil {
		t.made.add(g.Record())
	}
	if t.noteGuard != nil {
		t.noteGuard(ctx, g.Record())
	}
	return guardResult{
		GuardRecord: g.Record(),
		NextStep: fmt.Sprintf("The change is guarded. Make it now. If it goes wrong, call %s with this changeId.",
			t.name(recoverFileName)),
	}, nil
}
