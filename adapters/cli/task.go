package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// taskStatus is one look at a Zerto task.
type taskStatus struct {
	ID        zvm.TaskID `json:"id"`
	Type      string     `json:"type"`
	State     task.State `json:"state"`
	Progress  int        `json:"progress"` // per cent
	Reason    string     `json:"reason"`
	Started   *time.Time `json:"started"`   // null when the server does not say
	Completed *time.Time `json:"completed"` // null while it runs
}

func (a *app) task() *cobra.Command {
	var wait bool
	c := a.command(cobra.Command{
		Use:   "task ID [--wait]",
		Short: "Look at a Zerto task once, or until it has ended",
		Long: `Task shows how a Zerto task stands. The exit code is 0 for a Completed task, 1 for one that Failed or was Stopped, and
8 for one that has not ended. A task goes on at the server whether it is waited for or not.`,
		Args: exactly("ID"),
	}, 10*time.Minute, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		status, err := client.TaskStatus(ctx, zvm.TaskID(args[0]))
		if err != nil {
			return err
		}
		ended := outcomeOf(status)
		if wait && !status.State.Terminal() {
			status, ended = a.waitFor(ctx, client, status)
		}
		shown := taskStatus{
			ID: status.ID, Type: status.Type, State: status.State, Progress: status.Progress, Reason: status.Reason,
			Started: known(status.Started), Completed: known(status.Completed),
		}
		if err := a.result(shown, func(t *table) { showTask(t, status) }); err != nil {
			return err
		}
		return ended
	})
	c.Flags().BoolVar(&wait, "wait", false, "wait until the task has ended")
	return c
}

// waitFor waits for a task that was seen running.
func (a *app) waitFor(ctx context.Context, client *zvm.Client, seen task.Status) (task.Status, error) {
	tell := a.progress()
	last, err := task.Wait(ctx, client, seen.ID, task.WithNotFoundGrace(0), task.OnProgress(func(st task.Status) {
		tell(rewind.Event{Stage: rewind.StageTask, Task: st})
	}))
	if last.ID == "" {
		last = seen
	}
	return last, err
}

func outcomeOf(status task.Status) error {
	switch {
	case !status.State.Terminal():
		return &pendingError{status}
	case status.State != task.Completed:
		return &task.Error{ID: status.ID, State: status.State, Reason: status.Reason}
	}
	return nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func showTask(t *table, status task.Status) {
	t.row("task", string(status.ID))
	t.row("type", orDash(status.Type))
	t.row("state", fmt.Sprintf("%s, %d %%", status.State, status.Progress))
	t.row("started", moment(status.Started))
	t.row("completed", moment(status.Completed))
	if status.Reason != "" {
		t.row("reason", status.Reason)
	}
}
