package cli

import (
	"context"
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// frozen returns the freeze in force, nil when there is none.
func (a *app) frozen(ctx context.Context) (*gate.Freeze, error) {
	l, err := a.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return l.Frozen(ctx)
}

// unfrozen returns the ledger to record a person's yes in before anything is done on it, and an error where it may not be
// done: nothing runs unrecorded, and nothing that was frozen while the person thought.
func (a *app) unfrozen(ctx context.Context) (*ledger.Ledger, error) {
	l, err := a.ledger(ctx)
	if err != nil {
		return nil, err
	}
	freeze, err := l.Frozen(ctx)
	if err == nil && freeze != nil {
		err = fmt.Errorf("%s froze everything but reads and local calls meanwhile", freeze.By)
	}
	return l, err
}

// answeredProxy records a yes to a call that the proxy holds. To a tool that nobody has classified it holds while the guard
// stands that was made for it.
func (a *app) answeredProxy(ctx context.Context, yes proxyadapter.Answer) error {
	l, err := a.unfrozen(ctx)
	if err != nil {
		return err
	}
	call := yes.Call
	digest, err := l.Digest(ctx, call.Args)
	if err != nil {
		return err
	}
	ran := gate.Event{
		Kind: gate.EventRan, By: string(gate.ClientRelayed), Host: call.Host, Session: call.Session, CallID: call.CallID,
		Server: gate.ServerOf(call.Name), Tool: call.Name.Tool, Digest: digest, Targets: yes.Targets,
	}
	if yes.Guard == nil || len(yes.Guard.VMs) == 0 {
		return l.Append(ctx, ran)
	}
	ran.Changes, ran.Evidence = []string{yes.Guard.ChangeID}, gate.Evidence(*yes.Guard)
	if err := l.Append(ctx, ran); err != nil {
		return err
	}
	return l.Consent(ctx, gate.Consent{
		ChangeID: yes.Guard.ChangeID, VM: string(yes.Guard.VMs[0].ID), Server: ran.Server, Tool: ran.Tool, Targets: yes.Targets,
		Source: gate.ClientRelayed,
	})
}

// answeredMCP records a yes to a question of the MCP server. It is no consent: what the question was about runs elsewhere.
func (a *app) answeredMCP(ctx context.Context, yes mcpadapter.HumanAnswer) error {
	l, err := a.unfrozen(ctx)
	if err != nil {
		return err
	}
	digest, err := l.Digest(ctx, yes.Args)
	if err != nil {
		return err
	}
	e := gate.Event{
		Kind: gate.EventConsented, By: string(gate.ClientRelayed), Server: "-", Tool: yes.Tool, Digest: digest, Reason: yes.Answer,
	}
	if yes.CalledTool != "" {
		e.Server, e.Tool = yes.Server, yes.CalledTool
	}
	if yes.VM != "" {
		e.Targets = []string{yes.VM}
	}
	if yes.ChangeID != "" {
		e.Changes = []string{yes.ChangeID}
	}
	return l.Append(ctx, e)
}
