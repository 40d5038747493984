package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// startedTask follows one write that starts a task at a VPG. When its answer is lost, the task is looked for: one of
// that type, at that VPG, that was not there before. The write itself is sent once.
type startedTask struct {
	s      *Session
	vpg    zvm.VPGID
	kind   string
	since  time.Time // server clock
	before []zvm.TaskID
}

// beforeStarting notes which tasks there are, so that a new one can be told.
func (s *Session) beforeStarting(ctx context.Context, vpg zvm.VPGID, kind string) (*startedTask, error) {
	clock, err := s.readClock(ctx)
	if err != nil {
		return nil, err
	}
	st := &startedTask{s: s, vpg: vpg, kind: kind, since: clock.read.Add(-windowMargin)}
	tasks, err := st.list(ctx)
	for _, t := range tasks {
		st.before = append(st.before, t.ID)
	}
	return st, err
}

func (st *startedTask) list(ctx context.Context) ([]zvm.Task, error) {
	tasks, err := st.s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: st.kind, StartedAfter: st.since})
	return slices.DeleteFunc(tasks, func(t zvm.Task) bool { return !concernsVPG(t, st.vpg) }), err
}

func concernsVPG(t zvm.Task, vpg zvm.VPGID) bool {
	return slices.ContainsFunc(t.VPGs, func(id zvm.VPGID) bool { return sameID(id, vpg) })
}

// sameID compares two identifiers of the server, which may spell one in two cases.
func sameID[ID ~string](a, b ID) bool { return strings.EqualFold(string(a), string(b)) }

// settle returns the task of a write that was answered, or finds that of one whose answer was lost. It looks on a
// context of its own, since what was started has to be closed after the caller has left as well.
func (st *startedTask) settle(ctx context.Context, id zvm.TaskID, err error) (zvm.TaskID, error) {
	if !errors.Is(err, zvm.ErrOutcomeUnknown) {
		return id, err
	}
	lost := err
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), st.s.limits.Reconcile,
		fmt.Errorf("no trace of it within %v", st.s.limits.Reconcile))
	defer cancel()
	var started []zvm.Task
	err = task.Poll(ctx, func(ctx context.Context) (bool, error) {
		tasks, err := st.list(ctx)
		started = slices.DeleteFunc(tasks, func(t zvm.Task) bool {
			return slices.ContainsFunc(st.before, func(id zvm.TaskID) bool { return sameID(id, t.ID) })
		})
		return len(started) > 0, err
	}, task.WithSchedule(st.s.schedule))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; looked for its task: %w", lost, err)
	case len(started) > 1:
		return "", fmt.Errorf("%w; several tasks of type %s were started meanwhile, any of which may be ours", lost, st.kind)
	}
	return started[0].ID, nil
}

// wait follows the task to its end.
func (st *startedTask) wait(ctx context.Context, id zvm.TaskID, vpgName string) error {
	_, err := task.Wait(ctx, st.s.zvm, id, task.WithSchedule(st.s.schedule), task.OnProgress(func(status task.Status) {
		st.s.progress(Event{Stage: StageTask, VPGName: vpgName, Task: status})
	}))
	return err
}
