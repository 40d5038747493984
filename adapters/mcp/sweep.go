package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const sweepName = "zerto_sweep"

type sweepArgs struct {
	Apply bool `json:"apply,omitempty" jsonschema:"close what is found; without it nothing is closed"`
}

type sweepResult struct {
	Left     []rewind.Leftover     `json:"left" jsonschema:"what is open, or was; reason says why one is left alone"`
	LeftOpen *rewind.LeftOpenError `json:"leftOpen,omitempty" jsonschema:"what could not be closed, and the command that closes it"`
	NextStep string                `json:"nextStep"`
}

func (t *toolset) sweepTool() (tool, error) {
	return define(t, definition{
		name:  sweepName,
		title: "Find what was left open",
		description: "Lists the mounts, failover tests and clones of ours that a crash left open, from the ZVM's own records. Use it when a call ended with " +
			"something left open. Closes nothing without apply; with apply a human has to type the names of the VMs first.",
		hints:     hints(false, true, false, true),
		untouched: "Nothing was closed.",
	}, t.sweep)
}

func (t *toolset) sweep(ctx context.Context, c call, in sweepArgs) (sweepResult, error) {
	found, err := c.session.Sweep(ctx)
	if err != nil {
		return sweepResult{}, err
	}
	closable := slices.DeleteFunc(slices.Clone(found), func(l rewind.Leftover) bool { return l.Reason != "" })
	if !in.Apply || len(closable) == 0 {
		r := sweepResult{Left: orEmpty(found), NextStep: "Nothing of ours is open."}
		switch {
		case len(closable) > 0:
			r.NextStep = "Call again with apply to close what has no reason beside it."
		case len(found) > 0:
			r.NextStep = "Nothing that is open can be closed now; see the reasons, and tell the human."
		}
		return r, nil
	}
	k := confirmation{
		tool: sweepName, message: fmt.Sprintf("An agent wants to close what was left open at the ZVM: %d mounts, failover tests or clones.", len(closable)),
		command: "zerto-rewind sweep --apply", untouched: "Nothing was closed.",
	}
	var vms []string
	for _, l := range closable {
		vms = append(vms, l.VMNames...)
		k.object += fmt.Sprintf(" %s/%s/%s/%s", l.Kind, l.VPGID, l.FLRSessionID, l.TaskID)
	}
	slices.Sort(vms)
	k.vm = strings.Join(slices.Compact(vms), ", ")
	if err := t.confirm(ctx, c, k); err != nil {
		return sweepResult{}, err
	}
	swept, err := c.session.Sweep(ctx, rewind.Apply(), rewind.Only(closable...))
	var open *rewind.LeftOpenError
	if err != nil && !errors.As(err, &open) {
		return sweepResult{}, err
	}
	r := sweepResult{Left: orEmpty(swept), LeftOpen: asLeftOpen(err), NextStep: "What has no reason beside it is closed."}
	if r.LeftOpen != nil {
		r.NextStep = "Something is still open: have the command in leftOpen run, or tell the human."
	}
	return r, nil
}
