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

// startedTask follows one write that starts a task at a VPG. When its answer is lost, the task is looked for: the one of
// that type, at that VPG, that was not there before and was initiated by whom the guard's insert was. The write itself is
// sent once.
type startedTask struct {
	s      *Session
	vpg    zvm.VPG
	kind   string
	mark   announced
	insert zvm.TaskID // of the same initiator, empty when none is known
	since  time.Time  // server clock
	before []zvm.TaskID
}

// beforeStarting announces the start, and notes which tasks there are, so that a new one can be told.
func (s *Session) beforeStarting(ctx context.Context, g *Guard, from covered, kind LeftoverKind, lasts time.Duration) (*startedTask, error) {
	vpg, err := s.zvm.GetVPG(ctx, from.VPGID)
	if err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", shown(from.VPGName), err)
	}
	clock, err := s.readClock(ctx)
	if err != nil {
		return nil, err
	}
	st := &startedTask{s: s, vpg: vpg, kind: kind.startedBy(), insert: from.TaskID, since: clock.read.Add(-windowMargin)}
	st.mark, err = s.announce(ctx, vpg, clock, mark{
		agent: g.record.Agent, kind: kind, checkpoint: from.CheckpointID, change: g.record.ChangeID,
	}, lasts)
	if err != nil {
		return nil, err
	}
	if st.mark.TaskID != "" {
		st.insert = st.mark.TaskID
	}
	tasks, err := st.list(ctx)
	if err != nil {
		return nil, errors.Join(err, s.withdraw(ctx, vpg, st.mark))
	}
	for _, t := range tasks {
		st.before = append(st.before, t.ID)
	}
	return st, nil
}

func (st *startedTask) list(ctx context.Context) ([]zvm.Task, error) {
	tasks, err := st.s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: st.kind, StartedAfter: st.since})
	return slices.DeleteFunc(tasks, func(t zvm.Task) bool { return !concernsVPG(t, st.vpg.ID) }), err
}

func concernsVPG(t zvm.Task, vpg zvm.VPGID) bool {
	return slices.ContainsFunc(t.VPGs, func(id zvm.VPGID) bool { return sameID(id, vpg) })
}

// sameID compares two identifiers of the server, which may spell one in two cases.
func sameID[ID ~string](a, b ID) bool { return strings.EqualFold(string(a), string(b)) }

// settle returns the task of a write that was answered, or finds that of one whose answer was lost. It looks on a
// context of its own, since what was started has to be closed after the caller has left as well.
func (st *startedTask) settle(ctx context.Context, id zvm.TaskID, err error) (zvm.TaskID, error) {
	if err == nil {
		return id, nil
	}
	if !errors.Is(err, zvm.ErrOutcomeUnknown) {
		return "", errors.Join(err, st.s.withdraw(ctx, st.vpg, st.mark))
	}
	lost := err
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), st.s.limits.Reconcile,
		fmt.Errorf("no trace of it within %v", st.s.limits.Reconcile))
	defer cancel()
	us, err := st.initiator(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; %w", lost, err)
	}
	var started []zvm.Task
	err = task.Poll(ctx, func(ctx context.Context) (bool, error) {
		tasks, err := st.list(ctx)
		started = slices.DeleteFunc(tasks, func(t zvm.Task) bool {
			return t.InitiatedBy != us || slices.ContainsFunc(st.before, func(id zvm.TaskID) bool { return sameID(id, t.ID) })
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

// initiator returns how the server calls whoever this session logs in as: the initiator of the guard's own insert. Without
// it nobody's task can be told from ours.
func (st *startedTask) initiator(ctx context.Context) (string, error) {
	if st.insert == "" {
		return "", errors.New("the guard does not know its insert's task, so that ours cannot be told from another's")
	}
	insert, err := st.s.zvm.GetTask(ctx, st.insert)
	if err != nil {
		return "", fmt.Errorf("asking who we are: %w", err)
	}
	if insert.InitiatedBy == "" {
		return "", errors.New("the server does not say who initiates tasks, so that ours cannot be told from another's")
	}
	return insert.InitiatedBy, nil
}

// mayBeOpen names what a start whose answer was lost for good may have left running.
func (st *startedTask) mayBeOpen(err error, what, vpgName, command string) error {
	if !errors.Is(err, zvm.ErrOutcomeUnknown) {
		return err
	}
	return &LeftOpenError{What: what, ID: vpgName, MayBe: true, Command: command, Err: err}
}

// waitTask follows a task to its end.
func (s *Session) waitTask(ctx context.Context, id zvm.TaskID, vpgName string) error {
	_, err := task.Wait(ctx, s.zvm, id, task.WithSchedule(s.schedule), task.OnProgress(func(status task.Status) {
		s.progress(Event{Stage: StageTask, VPGName: vpgName, Task: status})
	}))
	return err
}
