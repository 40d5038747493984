package mcpadapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const diffName = "zerto_diff"

type diffArgs struct {
	ChangeID string `json:"changeId" jsonschema:"the id of the guarded change to compare with"`
	To       string `json:"to,omitempty" jsonschema:"the id of a later guarded change; leave out to guard the VM as it is now and compare with that"`
	Path     string `json:"path" jsonschema:"the folder or file in the guest as its users write it, such as: /etc/nginx"`
	VM       string `json:"vm,omitempty" jsonschema:"the VM, when a change is about several; naming it is faster too"`
}

type diffResult struct {
	rewind.Difference

	More     int                   `json:"more" jsonschema:"how many items were left out of added, removed, changed and unread"`
	LeftOpen *rewind.LeftOpenError `json:"leftOpen,omitempty" jsonschema:"what could not be closed, and the command that closes it"`
	NextStep string                `json:"nextStep"`
}

func (t *toolset) diffTool() (tool, error) {
	return define(t, definition{
		name:  diffName,
		title: "Tell what came to differ since the guard",
		description: fmt.Sprintf("Tells which files of one folder of a guarded VM were added, removed or changed since before the change, by size, write "+
			"time and, for files of up to 1 MiB, SHA-256. Use it after a change, to see what it did, and before %s, to see what to take back. "+
			"Without to it guards the VM as it is now first, which inserts a tagged checkpoint that stays. Changes nothing in the guest. Name "+
			"the smallest folder that will do: everything below it is read, which takes some seconds, and up to minutes.", t.name(recoverFileName)),
		hints:     hints(false, false, false, true),
		refine:    boundText("changeId", "to", "path", "vm"),
		unused:    []string{"content"},
		untouched: "Nothing was compared and nothing was changed in the guest.",
	}, t.diff)
}

func (t *toolset) diff(ctx context.Context, c call, in diffArgs) (diffResult, error) {
	difference, err := t.compare(ctx, c, in)
	if difference == nil {
		return diffResult{}, err
	}
	r := diffResult{Difference: *difference, LeftOpen: asLeftOpen(err)}
	r.Added = cut(r.Added, &r.More)
	r.Removed = cut(r.Removed, &r.More)
	r.Changed = cut(r.Changed, &r.More)
	r.Unread = cut(r.Unread, &r.More)
	r.NextStep = fmt.Sprintf("Hold this against what the change was to do. To see or take back one file, call %s with its path.", t.name(recoverFileName))
	if r.More > 0 || len(r.Unread) > 0 || !r.Complete {
		r.NextStep = "Not everything that may differ is told here: ask for smaller folders where that matters. " + r.NextStep
	}
	r.NextStep += sayLeftOpen(r.LeftOpen)
	return r, nil
}

func (t *toolset) compare(ctx context.Context, c call, in diffArgs) (*rewind.Difference, error) {
	before, err := c.session.FindGuard(ctx, in.ChangeID, in.VM)
	if err != nil {
		return nil, err
	}
	if in.To != "" {
		after, err := c.session.FindGuard(ctx, in.To, in.VM)
		if err != nil {
			return nil, err
		}
		return c.session.Diff(ctx, before, after, in.Path)
	}
	if err := t.mayGuard(ctx, "Nothing was compared and nothing was inserted."); err != nil {
		return nil, err
	}
	session, err := c.session.With(rewind.WithAgent(t.agentOf(c)))
	if err != nil {
		return nil, err
	}
	difference, err := session.DiffNow(ctx, before, in.Path)
	return difference, explainFreshGuard(err)
}

// explainFreshGuard tells a guard that was to be made for the comparison alone from that of a change.
func explainFreshGuard(err error) error {
	var partial *rewind.PartialGuardError
	if !errors.As(err, &partial) {
		return err
	}
	return errors.Join(&refused{refusalError{
		Code: codePartialGuard, Message: "The VM could not be guarded as it is now, so that there is nothing to compare with.",
		NotDone: "Nothing was compared.", NextStep: "Call again later, or with to. " + seeDetail,
		Detail: partial.Error(), ChangeID: partial.ChangeID, Tagged: partial.Tagged,
	}}, err)
}

// cut shortens a list to what an agent can read, and adds what it leaves out to more.
func cut[T any](list []T, more *int) []T {
	over := max(0, len(list)-maxListed)
	*more += over
	return list[:len(list)-over]
}
