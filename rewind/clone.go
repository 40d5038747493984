package rewind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
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

// AbortClone stops the clone that is being made at the VPG of a guard's checkpoint, by another process say. The server
// does not say of which checkpoint a clone is: whether it is that of the guard, the caller has to know. The checkpoint is
// chosen as [Session.StartTest] does, with the same errors.
func (s *Session) AbortClone(ctx context.Context, g *Guard, opts ...PlaceOption) error {
	found, err := g.choose(opts)
	if err != nil {
		return err
	}
	from, err := obvious(found)
	if err != nil {
		return err
	}
	if err := s.zvm.AbortClone(ctx, from.VPGID); err != nil {
		return err
	}
	s.tellClosed(openedAt(LeftClone, from.change, from.VPGID, from.VPGName))
	return nil
}

// abortClone stops a clone whose caller does not wait for it, and follows its task to the end, which the abort's answer
// is not.
func (s *Session) abortClone(ctx context.Context, making Opened, id zvm.TaskID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.Abandon, fmt.Errorf("not aborted within %v", s.limits.Abandon))
	defer cancel()
	err := s.zvm.AbortClone(ctx, making.VPGID)
	if err == nil || s.hasEnded(ctx, id) {
		_, err = task.Wait(ctx, s.zvm, id, task.WithSchedule(s.schedule))
		var ended *task.Error
		if errors.As(err, &ended) {
			s.tellClosed(making)
			return nil // it ended without a clone
		}
		if err == nil {
			err = errors.New("it was finished before it could be aborted, and Zerto never removes it")
		}
	}
	return &LeftOpenError{What: "clone of VPG", ID: making.VPGName, Command: making.Command, Err: err}
}

// hasEnded reports whether a task was seen to have ended, which is why a server may refuse to end it.
func (s *Session) hasEnded(ctx context.Context, id zvm.TaskID) bool {
	now, err := s.zvm.TaskStatus(ctx, id)
	return err == nil && now.State.Terminal()
}
