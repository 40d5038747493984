package mcpadapter

import (
	"context"
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const findProtectionName = "zerto_find_protection"

type findProtectionArgs struct {
	VM string `json:"vm" jsonschema:"name, host name, IP address or Zerto vmIdentifier of one VM"`
}

type protectionResult struct {
	VM        rewind.VM              `json:"vm"`
	Protected bool                   `json:"protected" jsonschema:"whether a change of the VM can be guarded now"`
	VPGs      []rewind.VPGProtection `json:"vpgs" jsonschema:"every VPG the VM is in, and why one does not protect it"`
	NextStep  string                 `json:"nextStep"`
}

func (t *toolset) findProtectionTool() (tool, error) {
	return define(t, definition{
		name:  findProtectionName,
		title: "Find a VM's protection",
		description: fmt.Sprintf("Finds one virtual machine and every Zerto Virtual Protection Group (VPG) it is in, and says whether a change of it "+
			"can be guarded now. Use it to learn which machine a name means, or why guarding failed. Changes nothing. Before a change call %s "+
			"directly; it looks the protection up itself.", t.name(guardName)),
		hints:     hints(true, false, true, true),
		refine:    boundText("vm"),
		untouched: "Nothing was changed.",
	}, t.findProtection)
}

func (t *toolset) findProtection(ctx context.Context, c call, in findProtectionArgs) (protectionResult, error) {
	p, err := c.session.FindProtection(ctx, in.VM)
	if err != nil {
		return protectionResult{}, err
	}
	r := protectionResult{VM: p.VM, VPGs: orEmpty(p.VPGs), Protected: len(p.Protecting()) > 0}
	r.NextStep = fmt.Sprintf("Before you change this VM call %s with its id.", t.name(guardName))
	if !r.Protected {
		r.NextStep = "No VPG protects this VM now, so a change of it could not be taken back. Do not change it; see the reasons, and ask the human."
	}
	return r, nil
}
