package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestExitCodeOfEachKindOfError(t *testing.T) {
	t.Parallel()
	var (
		outOfTime = &task.WaitError{ID: "1.1", Err: &timeLimitError{time.Minute}}
		refused   = &zvm.Error{Status: 401}
		forbidden = &zvm.Error{Status: 403}
		missing   = &zvm.Error{Status: 404}
		open      = &rewind.LeftOpenError{ID: "s", Err: refused}
	)
	partial := func(causes ...error) error {
		e := &rewind.PartialGuardError{ChangeID: "c1"}
		for _, cause := range causes {
			e.Failed = append(e.Failed, rewind.VPGFailure{Err: cause})
		}
		return e
	}
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, 0},
		{"anything else", fs.ErrExist, 1},
		{"a task that failed", &task.Error{State: task.Failed}, 1},
		{"a time limit without a task", &timeLimitError{time.Minute}, 1},
		{"waiting that ended for another reason", &task.WaitError{Err: errors.New("x")}, 1},
		{"a lost write", fmt.Errorf("x: %w", zvm.ErrOutcomeUnknown), 3},
		{"a tag that is not listed", &rewind.CheckpointNotListedError{Err: &timeLimitError{time.Minute}}, 3},
		{"a VPG that stopped protecting", partial(&rewind.StateError{}), 3},
		{"a partial guard of unknown causes", partial(), 3},
		{"one VPG out of time, one failed", partial(outOfTime, errors.New("x")), 3},
		{"one VPG failed, one out of time", partial(errors.New("x"), outOfTime), 3},
		{"one VPG out of time, one refused", partial(outOfTime, refused), 3},
		{"every VPG out of time", partial(outOfTime, fmt.Errorf("x: %w", outOfTime)), 8},
		{"every VPG refused", partial(refused, forbidden), 4},
		{"a login that was refused", refused, 4},
		{"a user who may not", forbidden, 4},
		{"waiting that ended because of the login", &task.WaitError{Err: refused}, 4},
		{"an object that is gone", missing, 5},
		{"a VM that is not there", &rewind.NotFoundError{}, 5},
		{"a checkpoint that is gone", fmt.Errorf("x: %w", rewind.ErrCheckpointGone), 5},
		{"no failover test", fmt.Errorf("x: %w", rewind.ErrNoTest), 5},
		{"no clone", fmt.Errorf("x: %w; %w", rewind.ErrNoClone, rewind.ErrCloneComplete), 5},
		{"one of several clones", fmt.Errorf("x: %w", rewind.ErrAmbiguousClone), 6},
		{"a path that is not there", &rewind.PathNotFoundError{}, 5},
		{"a name of several VMs", &rewind.AmbiguousVMError{}, 6},
		{"a change in several VPGs", fmt.Errorf("x: %w", &rewind.AmbiguousVPGError{}), 6},
		{"a path of several places", &rewind.AmbiguousPathError{}, 6},
		{"a VM that is not protected", &rewind.NotProtectedError{}, 7},
		{"a VPG of another site", &rewind.NotLocalError{}, 7},
		{"a failover test that runs already", fmt.Errorf("x: %w", rewind.ErrTestRunning), 7},
		{"a file that is held back", &rewind.NotDownloadableError{}, 7},
		{"a task out of time", outOfTime, 8},
		{"a task whose caller set a deadline", &task.WaitError{Err: context.DeadlineExceeded}, 8},
		{"a task that was looked at", &pendingError{}, 8},
		{"a session left open", open, 9},
		{"a failure, and a session left open", errors.Join(missing, open), 9},
		{"an interruption that left a session open", &interruptedError{open}, 9},
		{"usage", &usageError{missing}, 64},
		{"settings", hinted(&settingsError{missing}, "x"), 64},
		{"an interruption", &interruptedError{partial(&task.WaitError{Err: context.Canceled})}, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

// What may be open is not called closed.
func TestOnlyWhatIsSureIsSaidOfAnEndedRecover(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		dest string
		err  error
		want []string
	}{
		"interrupted":             {ended, "x", context.Canceled, []string{"nothing was written, and no FLR session of this command is left open"}},
		"interrupted, to stdout":  {ended, toStdout, context.Canceled, []string{"no FLR session of this command is left open"}},
		"a session is left open":  {ended, "x", &rewind.LeftOpenError{Err: context.Canceled}, nil},
		"a mount without a trace": {ended, "x", fmt.Errorf("x: %w", zvm.ErrOutcomeUnknown), nil},
		"a failure":               {t.Context(), "x", fs.ErrPermission, nil},
	} {
		if diff := cmp.Diff(tt.want, hints(explainNoRecovery(tt.ctx, tt.dest, tt.err))); diff != "" {
			t.Errorf("%s: hints (-want +got):\n%s", name, diff)
		}
	}
}
