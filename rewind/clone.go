package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

var (
	// ErrNoClone is matched when a clone is to be aborted and none is being made.
	ErrNoClone = errors.New("no clone is being made at this VPG")
	// ErrCloneComplete is matched when a clone was complete before it could be aborted.
	ErrCloneComplete = errors.New("the clone is complete, and Zerto never removes it")
	// ErrAmbiguousClone is matched when a clone is to be aborted and the server's tasks do not show which one is made at the
	// VPG: there are several, or one of which they do not say where it is made. Nothing was aborted.
	ErrAmbiguousClone = errors.New("it cannot be told which clone is being made at this VPG")
)

// Cloned is a finished clone of guarded VMs, from the guard's checkpoint. Zerto never removes it: its VMs, powered off
// and unprotected at the VPG's recovery site, belong to the caller.
type Cloned struct {
	ChangeID     string           `json:"changeId"`
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	Timestamp    time.Time        `json:"timestamp"` // of the checkpoint; the clones' names end in it
	RecoverySite string           `json:"recoverySite"`
	VMs          []VM             `json:"vms"` // what was cloned
	TaskID       zvm.TaskID       `json:"taskId"`
	MarkID       zvm.CheckpointID `json:"markId"` // see [TestRecord.MarkID]
	// Note says how the clones are named, and that they stay, for people and models that read nothing else.
	Note string `json:"note"`
}

// cloneNote holds for every clone (zvm-wire 7.3).
const cloneNote = "each clone bears the name of its VM and the time stamp of the checkpoint; Zerto never removes it"

// Clone makes an offsite clone of exactly the guarded VMs from exactly the guarded checkpoint, and returns when it is
// made. The checkpoint is chosen, and the start announced, as [Session.StartTest] does. The deadline is that of [For] or of
// ctx, whichever is earlier.
//
// When the waiting ends before the clone is made, because ctx did or because its task could not be looked at, the clone
// is aborted on a context of its own; a [*LeftOpenError] says that this failed.
func (s *Session) Clone(ctx context.Context, g *Guard, opts ...PlaceOption) (*Cloned, error) {
	opts, lasts, err := withoutFor(opts)
	if err != nil {
		return nil, err
	}
	if lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, lasts, fmt.Errorf("not made within %v", lasts))
		defer cancel()
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		lasts = time.Until(deadline)
	}
	from, err := s.chooseStart(ctx, g, opts)
	if err != nil {
		return nil, err
	}
	start, err := s.beforeStarting(ctx, g, from, LeftClone, lasts)
	if err != nil {
		return nil, fmt.Errorf("cloning %s: %w", shown(from.VPGName), err)
	}
	making := openedAt(LeftClone, from.change, from.VPGID, from.VPGName)
	s.tellOpened(making.until(ctx))
	id, err := s.makeClone(ctx, from, start, making)
	s.tellEnded(making, err)
	if err != nil {
		return nil, err
	}
	return &Cloned{
		ChangeID: g.record.ChangeID, VPGID: from.VPGID, VPGName: from.VPGName, CheckpointID: from.CheckpointID,
		Timestamp: from.Timestamp, RecoverySite: from.RecoverySite, VMs: nonNil(from.vms), TaskID: id,
		MarkID: start.mark.CheckpointID, Note: cloneNote,
	}, nil
}

// makeClone starts a clone that was announced, and waits until it is made.
func (s *Session) makeClone(ctx context.Context, from covered, start *startedTask, making Opened) (zvm.TaskID, error) {
	id, err := s.zvm.StartClone(ctx, from.VPGID, from.CheckpointID, from.ids())
	if id, err = start.settle(ctx, id, err); err != nil {
		return "", fmt.Errorf("cloning %s: %w", shown(from.VPGName), start.mayBeOpen(err, "clone of VPG", from.VPGName, making.Command))
	}
	if err := s.waitTask(ctx, id, from.VPGName); err != nil {
		err = fmt.Errorf("cloning %s: %w", shown(from.VPGName), err)
		var unfinished *task.WaitError
		if errors.As(err, &unfinished) {
			err = errors.Join(err, s.abortClone(context.WithoutCancel(ctx), making, id))
		}
		return "", err
	}
	return id, nil
}

// AbortClone stops the clone that is being made at the VPG of a guard's checkpoint, by another process say, and returns when
// its task was seen to end without a clone. The server does not say of which checkpoint a clone is: whether it is that of
// the guard, the caller has to know. The checkpoint is chosen as [Session.StartTest] does, with the same errors.
//
// Where none is being made, nothing is sent, and the error matches [ErrNoClone], and [ErrCloneComplete] if the last one there
// is complete. A clone that runs on, or completes all the same, is a [*LeftOpenError].
func (s *Session) AbortClone(ctx context.Context, g *Guard, opts ...PlaceOption) error {
	found, err := g.choose(opts)
	if err != nil {
		return err
	}
	from, err := obvious(found)
	if err != nil {
		return err
	}
	id, err := s.cloneAt(ctx, from.VPGID)
	if err != nil {
		return fmt.Errorf("aborting a clone of %s: %w", shown(from.VPGName), err)
	}
	return s.abortClone(ctx, openedAt(LeftClone, from.change, from.VPGID, from.VPGName), id)
}

// cloneAt returns the task of the one clone that is being made at a VPG.
func (s *Session) cloneAt(ctx context.Context, vpg zvm.VPGID) (zvm.TaskID, error) {
	tasks, err := s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeClone})
	if err != nil {
		return "", fmt.Errorf("looking for its task: %w", err)
	}
	var running []zvm.Task
	var last zvm.Task
	for _, t := range tasks {
		here := concernsVPG(t, vpg)
		switch {
		case !t.State.Terminal() && (here || len(t.VPGs) == 0):
			running = append(running, t)
		case here && t.Started.After(last.Started):
			last = t
		}
	}
	switch {
	case len(running) == 1 && concernsVPG(running[0], vpg):
		return running[0].ID, nil
	case len(running) > 0:
		return "", fmt.Errorf("%w (%d may be)", ErrAmbiguousClone, len(running))
	case last.State == task.Completed:
		return "", fmt.Errorf("%w; task %s, the last one: %w", ErrNoClone, last.ID, ErrCloneComplete)
	}
	return "", ErrNoClone
}

// abortClone stops a clone, and follows its task to the end, which the abort's answer is not. An answer that was lost is looked
// for there.
func (s *Session) abortClone(ctx context.Context, making Opened, id zvm.TaskID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Abandon, fmt.Errorf("not aborted within %v", s.limits.Abandon))
	defer cancel()
	err := s.zvm.AbortClone(ctx, making.VPGID)
	switch {
	case errors.Is(err, zvm.ErrOutcomeUnknown):
		err = s.seenAborted(ctx, id, err)
	case err == nil || s.hasEnded(ctx, id):
		err = s.endsWithoutClone(ctx, id)
	}
	if err == nil {
		s.tellClosed(making)
		return nil
	}
	command := making.Command
	if errors.Is(err, ErrCloneComplete) {
		command = "" // its VMs are the caller's to remove, with other means than Zerto's
	}
	return &LeftOpenError{What: "clone of VPG", ID: making.VPGName, Command: command, Err: err}
}

// seenAborted looks for the effect of an abort whose answer was lost.
func (s *Session) seenAborted(ctx context.Context, id zvm.TaskID, lost error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Reconcile, fmt.Errorf("still being made after %v", s.limits.Reconcile))
	defer cancel()
	if err := s.endsWithoutClone(ctx, id); err != nil {
		return fmt.Errorf("%w; looked whether it had ended: %w", lost, err)
	}
	return nil
}

// endsWithoutClone follows a clone's task to its end, and returns nil when no clone came of it.
func (s *Session) endsWithoutClone(ctx context.Context, id zvm.TaskID) error {
	_, err := task.Wait(ctx, s.zvm, id, task.WithSchedule(s.schedule))
	switch {
	case err == nil:
		return ErrCloneComplete
	case errors.As(err, new(*task.Error)):
		return nil
	}
	return err
}

// hasEnded reports whether a task was seen to have ended, which is why a server may refuse to end it.
func (s *Session) hasEnded(ctx context.Context, id zvm.TaskID) bool {
	now, err := s.zvm.TaskStatus(ctx, id)
	return err == nil && now.State.Terminal()
}
