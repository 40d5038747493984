package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// The exit codes. They are a promise; 2 is left to the Go runtime, whose panics exit so.
const (
	exitDone        = 0
	exitFailed      = 1
	exitPartial     = 3
	exitAuth        = 4
	exitNotFound    = 5
	exitAmbiguous   = 6
	exitNotPossible = 7
	exitPending     = 8
	exitLeftOpen    = 9
	exitUsage       = 64
	exitInterrupted = 130
)

// usageError says that the command line or the settings are wrong.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// settingsError says that a setting is missing or wrong, wherever it comes from.
type settingsError struct{ error }

func (e *settingsError) Unwrap() error { return e.error }

// hintError is an error with what a person may do about it.
type hintError struct {
	error

	hint string
}

func (e *hintError) Unwrap() error { return e.error }

func hinted(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// interruptedError says that the command was ended from outside.
type interruptedError struct{ error }

func (e *interruptedError) Unwrap() error { return e.error }

// pendingError says that a task was looked at and has not ended.
type pendingError struct{ status task.Status }

func (e *pendingError) Error() string {
	return "task " + string(e.status.ID) + " is " + e.status.State.String() + " and has not ended"
}

// exitCode is the one place where errors become exit codes. It asks their types alone, and what a person has to act on
// first comes first: something left open, then the interruption, then how far a guard came, then everything else.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case is[*rewind.LeftOpenError](err):
		return exitLeftOpen
	case is[*interruptedError](err):
		return exitInterrupted
	case is[*usageError](err), is[*settingsError](err):
		return exitUsage
	}
	var partial *rewind.PartialGuardError
	if errors.As(err, &partial) {
		return partialCode(partial)
	}
	return causeCode(err)
}

// partialCode tells a guard that was stopped by the clock alone, and may still come to be, or by a refused login from one
// that fell apart.
func partialCode(partial *rewind.PartialGuardError) int {
	if len(partial.Failed) == 0 {
		return exitPartial
	}
	code := causeCode(partial.Failed[0].Err)
	if code != exitPending && code != exitAuth {
		return exitPartial
	}
	for _, f := range partial.Failed[1:] {
		if causeCode(f.Err) != code {
			return exitPartial
		}
	}
	return code
}

func causeCode(err error) int {
	switch {
	case is[*pendingError](err), is[*task.WaitError](err) && errors.Is(err, context.DeadlineExceeded):
		return exitPending
	case errors.Is(err, zvm.ErrOutcomeUnknown), is[*rewind.CheckpointNotListedError](err), is[*differError](err):
		return exitPartial
	case errors.Is(err, zvm.ErrUnauthorized), errors.Is(err, zvm.ErrForbidden):
		return exitAuth
	case is[*rewind.AmbiguousVMError](err), is[*rewind.AmbiguousPathError](err), is[*rewind.AmbiguousVPGError](err),
		errors.Is(err, rewind.ErrAmbiguousClone),
		is[*rewind.CounterpartError](err) && !errors.Is(err, rewind.ErrCheckpointGone):
		return exitAmbiguous
	case is[*rewind.NotProtectedError](err), is[*rewind.StateError](err), is[*rewind.NotDownloadableError](err), is[*rewind.NotMountableError](err),
		errors.Is(err, rewind.ErrNotLocal), errors.Is(err, rewind.ErrTestRunning):
		return exitNotPossible
	case is[*rewind.NotFoundError](err), is[*rewind.PathNotFoundError](err), is[*rewind.PartitionNotFoundError](err), errors.Is(err, rewind.ErrCheckpointGone),
		errors.Is(err, rewind.ErrNoTest), errors.Is(err, rewind.ErrNoClone), errors.Is(err, zvm.ErrNotFound):
		return exitNotFound
	}
	return exitFailed
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
