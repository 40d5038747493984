package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

const (
	listGuardsName  = "zerto_list_guards"
	verifyGuardName = "zerto_verify_guard"
	getTaskName     = "zerto_get_task"
)

type listGuardsArgs struct {
	VM    string `json:"vm" jsonschema:"name, host name, IP address or Zerto vmIdentifier of one VM"`
	Since string `json:"since,omitempty" jsonschema:"how far back to look, such as 90m, 24h or 7d; 24h if left out"`
}

type listedGuard struct {
	rewind.GuardRecord

	Complete bool `json:"complete" jsonschema:"whether every VPG that protects the VM has its checkpoint"`
}

type listGuardsResult struct {
	Guards   []listedGuard `json:"guards" jsonschema:"newest first"`
	NextStep string        `json:"nextStep"`
}

const defaultSince = 24 * time.Hour

func (t *toolset) listGuardsTool() (tool, error) {
	return define(t, definition{
		name:  listGuardsName,
		title: "List a VM's guards",
		description: fmt.Sprintf("Lists the guards of a VM, newest first, as they stand in the journals now. Use it to find the changeId of an earlier change. "+
			"Changes nothing. Whether one can still be recovered from, %s says.", t.name(verifyGuardName)),
		hints:     hints(true, false, true, true),
		refine:    boundText("vm", "since"),
		unused:    []string{"drill", "quiesced"},
		untouched: "Nothing was changed.",
	}, func(ctx context.Context, c call, in listGuardsArgs) (listGuardsResult, error) {
		since := defaultSince
		if in.Since != "" {
			var err error
			if since, err = parseSince(in.Since); err != nil {
				return listGuardsResult{}, &refused{refusalError{
					Code: codeInvalidArguments, Message: "The argument since is not a duration such as 90m, 24h or 7d.",
					NotDone: "Nothing was looked up.", NextStep: "Call again with the arguments put right.",
				}}
			}
		}
		found, err := c.session.Guards(ctx, in.VM, since)
		if err != nil {
			return listGuardsResult{}, err
		}
		r := listGuardsResult{Guards: make([]listedGuard, len(found)), NextStep: "No guard stands in the journals within that time."}
		for i, g := range found {
			r.Guards[i] = listedGuard{g.Record(), g.Complete()}
		}
		if len(found) > 0 {
			r.NextStep = fmt.Sprintf("Call %s, or what brings something back, with a changeId.", t.name(verifyGuardName))
		}
		return r, nil
	})
}

var days = regexp.MustCompile(`^(\d{1,4})d$`)

func parseSince(text string) (time.Duration, error) {
	if parts := days.FindStringSubmatch(text); parts != nil {
		n, err := strconv.Atoi(parts[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("it is not more than nothing")
	}
	return d, err
}

type verifyGuardResult struct {
	rewind.Verification

	Horizon  rewind.Horizon `json:"horizon" jsonschema:"until when the guard is of use"`
	NextStep string         `json:"nextStep"`
}

func (t *toolset) verifyGuardTool() (tool, error) {
	return define(t, definition{
		name:  verifyGuardName,
		title: "Verify a guard",
		description: fmt.Sprintf("Looks at a guard again: whether its checkpoints still stand, what threatens them, whether a file could be brought back now, and "+
			"until when. Use it before you rely on a guard that was made a while ago. Changes nothing. It does not make a guard: %s does.", t.name(guardName)),
		hints:     hints(true, false, true, true),
		refine:    boundText("changeId", "vm"),
		untouched: "The guard was not verified. Do not take it for standing.",
	}, func(ctx context.Context, c call, in changeArgs) (verifyGuardResult, error) {
		guard, err := c.session.FindGuard(ctx, in.ChangeID, in.VM)
		if err != nil {
			return verifyGuardResult{}, err
		}
		verified, err := c.session.Verify(ctx, guard)
		if err != nil {
			return verifyGuardResult{}, err
		}
		horizon, err := c.session.Horizon(ctx, guard)
		if err != nil {
			return verifyGuardResult{}, err
		}
		return t.verified(*verified, *horizon), nil
	})
}

func (t *toolset) verified(v rewind.Verification, h rewind.Horizon) verifyGuardResult {
	v.Checkpoints, h.Checkpoints = orEmpty(v.Checkpoints), orEmpty(h.Checkpoints)
	for i := range v.Checkpoints {
		v.Checkpoints[i].Mountable = orEmpty(v.Checkpoints[i].Mountable)
	}
	for i := range h.Checkpoints {
		h.Checkpoints[i].Warnings = orEmpty(h.Checkpoints[i].Warnings)
	}
	r := verifyGuardResult{Verification: v, Horizon: h}
	switch {
	case !v.Valid:
		r.NextStep = fmt.Sprintf("Do not rely on this guard. Call %s for a new one before the next change.", t.name(guardName))
	case !v.Recoverable:
		r.NextStep = fmt.Sprintf("The guard stands, and files cannot be brought back through this ZVM now. %s can show the VM as it was.", t.name(startTestName))
	default:
		r.NextStep = fmt.Sprintf("The guard stands. If the change went wrong, call %s.", t.name(recoverFileName))
	}
	return r
}

type getTaskArgs struct {
	TaskID string `json:"taskId" jsonschema:"the id of a Zerto task, as other results give it"`
}

type getTaskResult struct {
	TaskID    zvm.TaskID `json:"taskId"`
	Type      string     `json:"type"`
	State     string     `json:"state" jsonschema:"InProgress, Failed, Stopped or Completed, or another while it goes on"`
	Ended     bool       `json:"ended"`
	Completed bool       `json:"completed" jsonschema:"whether it ended well; a task that has not ended has not"`
	Progress  int        `json:"progress" jsonschema:"per cent"`
	Reason    string     `json:"reason"`
	NextStep  string     `json:"nextStep"`
}

func (t *toolset) getTaskTool() (tool, error) {
	return define(t, definition{
		name:  getTaskName,
		title: "Look at a Zerto task",
		description: "Says how a Zerto task stands. A task goes on at the ZVM when a call was cancelled or its answer was lost; look here before you repeat " +
			"anything. Changes nothing.",
		hints:     hints(true, false, true, true),
		refine:    boundText("taskId"),
		untouched: "Nothing was changed.",
	}, func(ctx context.Context, c call, in getTaskArgs) (getTaskResult, error) {
		status, err := c.session.TaskStatus(ctx, zvm.TaskID(in.TaskID))
		if errors.Is(err, zvm.ErrNotFound) {
			return getTaskResult{}, &refused{refusalError{
				Code: codeNotFound, Message: "The ZVM does not know this task.", NotDone: "Nothing was changed.",
				NextStep: "Check the id. The ZVM forgets old tasks; what it did shows in the journal.", Detail: err.Error(),
			}}
		}
		if err != nil {
			return getTaskResult{}, err
		}
		r := getTaskResult{
			TaskID: status.ID, Type: status.Type, State: status.State.String(), Ended: status.State.Terminal(),
			Completed: status.State == task.Completed, Progress: status.Progress, Reason: status.Reason,
			NextStep: "It goes on. Look again in a few seconds.",
		}
		switch {
		case r.Completed:
			r.NextStep = "It ended well."
		case r.Ended:
			r.NextStep = "It did not end well; see reason."
		}
		return r, nil
	})
}
