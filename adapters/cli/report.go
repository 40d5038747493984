package cli

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// errorReport is what a script or a person needs to go on after an error. Its names are a promise.
type errorReport struct {
	Message  string `json:"message"`
	ExitCode int    `json:"exitCode"`
	ChangeID string `json:"changeId,omitempty"`
	// Tagged are the checkpoints of the change that stand, Failed the VPGs that have none, or may come to have one.
	Tagged     []rewind.TaggedCheckpoint `json:"tagged,omitempty"`
	Failed     []failedVPG               `json:"failed,omitempty"`
	TaskIDs    []zvm.TaskID              `json:"taskIds,omitempty"` // of tasks that may still be running
	Candidates []rewind.Protection       `json:"candidates,omitempty"`
	Paths      []string                  `json:"paths,omitempty"`
	LeftOpen   *leftOpen                 `json:"leftOpen,omitempty"`
}

// failedVPG is a VPG without a proven checkpoint of the change.
type failedVPG struct {
	VPGID   zvm.VPGID `json:"vpgId"`
	VPGName string    `json:"vpgName"`
	// Tag is the name under which a checkpoint may come to stand, empty when none can.
	Tag     string     `json:"tag"`
	TaskID  zvm.TaskID `json:"taskId"`
	Message string     `json:"message"`
}

// leftOpen names what has to be closed by hand.
type leftOpen struct {
	What    string `json:"what"`
	ID      string `json:"id"`
	Command string `json:"command"`
}

func report(err error) errorReport {
	r := errorReport{Message: err.Error(), ExitCode: exitCode(err)}
	var (
		partial     *rewind.PartialGuardError
		waiting     *task.WaitError
		pending     *pendingError
		ambiguousVM *rewind.AmbiguousVMError
		paths       *rewind.AmbiguousPathError
		open        *rewind.LeftOpenError
	)
	if errors.As(err, &partial) {
		r.ChangeID, r.Tagged = partial.ChangeID, partial.Tagged
		for _, f := range partial.Failed {
			r.Failed = append(r.Failed, failedVPG{f.VPGID, f.VPGName, f.Tag, f.TaskID, f.Err.Error()})
			if f.Tag != "" && f.TaskID != "" {
				r.TaskIDs = append(r.TaskIDs, f.TaskID)
			}
		}
	} else if errors.As(err, &waiting) {
		r.TaskIDs = []zvm.TaskID{waiting.ID}
	} else if errors.As(err, &pending) {
		r.TaskIDs = []zvm.TaskID{pending.status.ID}
	}
	if errors.As(err, &ambiguousVM) {
		for _, c := range ambiguousVM.Candidates {
			if c.VPGs == nil {
				c.VPGs = []rewind.VPGProtection{}
			}
			r.Candidates = append(r.Candidates, c)
		}
	}
	if errors.As(err, &paths) {
		r.Paths = paths.Hits
	}
	if errors.As(err, &open) {
		r.LeftOpen = &leftOpen{open.What, open.ID, open.Command}
	}
	return r
}

// reportError prints an error on stderr: one JSON object, or lines for a person with how to go on.
func (a *app) reportError(err error) {
	r := report(err)
	if a.json {
		encoder := json.NewEncoder(a.io.Err)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(map[string]errorReport{"error": r}) // stderr is the last place to complain at
		return
	}
	if is[*interruptedError](err) {
		a.say("interrupted")
	}
	a.say("error: %s", strings.Join(errorLines(err), "; "))
	for _, id := range r.TaskIDs {
		a.say("look again: zerto-rewind task %s --wait", id)
	}
	if r.ChangeID != "" {
		// Only a tag that stands is found again: before its task has ended, another one would be inserted beside it.
		a.say("to finish the guard when no task runs: zerto-rewind protect with the same VMs and --action, and --change %s", r.ChangeID)
	}
	if is[*usageError](err) && !a.running {
		a.say("see zerto-rewind --help")
	}
}

// errorLines takes joined errors apart, whose text is one line for each.
func errorLines(err error) []string {
	for inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error(); inner = errors.Unwrap(err) {
		err = inner
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var parts []string
		for _, e := range joined.Unwrap() {
			parts = append(parts, e.Error())
		}
		if strings.Join(parts, "\n") == err.Error() {
			return parts
		}
	}
	return []string{err.Error()}
}
