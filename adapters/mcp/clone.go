package mcpadapter

import (
	"context"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const cloneName = "zerto_clone"

type cloneResult struct {
	rewind.Cloned

	NextStep string `json:"nextStep"`
}

func (t *toolset) cloneTool() (tool, error) {
	const untouched = "No clone was made."
	return define(t, definition{
		name:  cloneName,
		title: "Clone the VM as it was",
		description: "Makes a powered-off copy of the guarded VM, as it was before the change, at the VPG's recovery site. Zerto never removes it: it takes up " +
			"storage until somebody deletes it. A human has to type the VM's name first. Takes minutes to hours. Cancelling aborts it.",
		hints:     hints(false, false, false, true),
		refine:    boundText("changeId", "vm"),
		untouched: untouched,
	}, func(ctx context.Context, c call, in changeArgs) (cloneResult, error) {
		guard, err := c.session.FindGuard(ctx, in.ChangeID, in.VM)
		if err != nil {
			return cloneResult{}, err
		}
		if err := t.confirm(ctx, c, about(guard, confirmation{
			tool: cloneName, message: "An agent wants to make a copy of the VM at the recovery site, which Zerto never removes.",
			command: "zerto-rewind clone start", untouched: untouched,
		})); err != nil {
			return cloneResult{}, err
		}
		clone, err := c.session.Clone(ctx, guard)
		if err != nil {
			return cloneResult{}, err
		}
		clone.VMs = orEmpty(clone.VMs)
		return cloneResult{*clone, "The clone is made, powered off. Tell the human its name and that Zerto never removes it."}, nil
	})
}
