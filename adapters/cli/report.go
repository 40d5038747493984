package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	Failed     []rewind.VPGFailure       `json:"failed,omitempty"`
	TaskIDs    []zvm.TaskID              `json:"taskIds,omitempty"` // of tasks that may still be running
	Candidates []rewind.Protection       `json:"candidates,omitempty"`
	Paths      []string                  `json:"paths,omitempty"`
	VPGs       []string                  `json:"vpgs,omitempty"` // to choose from
	LeftOpen   *rewind.LeftOpenError     `json:"leftOpen,omitempty"`
	Hints      []string                  `json:"hints,omitempty"` // for people
}

func report(err error) errorReport {
	r := errorReport{Message: err.Error(), ExitCode: exitCode(err), Hints: hints(err)}
	var (
		partial     *rewind.PartialGuardError
		waiting     *task.WaitError
		pending     *pendingError
		ambiguousVM *rewind.AmbiguousVMError
		paths       *rewind.AmbiguousPathError
		partition   *rewind.PartitionNotFoundError
		vpgs        *rewind.AmbiguousVPGError
		open        *rewind.LeftOpenError
	)
	if errors.As(err, &partial) {
		r.ChangeID, r.Tagged, r.Failed = partial.ChangeID, partial.Tagged, partial.Failed
		for _, f := range partial.Failed {
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
	} else if errors.As(err, &partition) {
		r.Paths = partition.Partitions
	}
	if errors.As(err, &vpgs) {
		r.VPGs = vpgs.VPGs
	}
	if errors.As(err, &open) {
		r.LeftOpen = open
	}
	return r
}

// hints returns what a person may do about an error: what the command knows, then what its kind tells.
func hints(err error) []string {
	var all []string
	var given *hintError
	if errors.As(err, &given) {
		all = append(all, given.hint)
	}
	if is[*rewind.AmbiguousVPGError](err) {
		all = append(all, "name one with --vpg")
	}
	if is[*rewind.AmbiguousPathError](err) {
		all = append(all, "name the partition with --partition, or give one of these paths as it is")
	}
	var notLocal *rewind.NotLocalError
	if errors.As(err, &notLocal) {
		for _, site := range notLocal.RecoverySites {
			if site.ID == "" {
				continue
			}
			all = append(all, fmt.Sprintf("with the ZVM of %s: --recovery-site %s=https://…", cmp.Or(site.Name, "the recovery site"), site.ID))
		}
	}
	ca, pin, at := setCAFile.variable, setCertSHA256.variable, setURL.variable
	if is[*rewind.RecoverySiteError](err) {
		ca, pin, at = ofRecoverySites(setCAFile).variable, ofRecoverySites(setCertSHA256).variable, "--recovery-site"
	}
	var refused *zvm.Error
	if errors.As(err, &refused) {
		switch refused.Trust {
		case zvm.TrustAuthority:
			all = append(all, "set "+ca+" to a file with the authority, or "+pin+" to the certificate's fingerprint")
		case zvm.TrustPin:
			all = append(all, "if the certificate is the ZVM's own, set "+pin+" to its fingerprint")
		case zvm.TrustName:
			all = append(all, "use a name from the certificate in "+at+", or set "+pin+" to its fingerprint")
		case zvm.TrustUnfit:
			all = append(all, "to accept exactly this certificate, set "+pin+" to its fingerprint")
		}
	}
	if errors.Is(err, zvm.ErrNoLogin) {
		all = append(all, "check "+setURL.variable+" and "+setRealm.variable)
	}
	return all
}

// reportError prints an error on stderr: one JSON object, or lines for a person with how to go on.
func (a *app) reportError(err error) {
	r := report(err)
	if why := a.unreachable(err); why != "" {
		r.Hints = append(r.Hints, why)
	}
	if a.json {
		encoder := json.NewEncoder(a.io.Err)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(map[string]errorReport{"error": r}) // stderr is the last place to complain at
		return
	}
	if is[*interruptedError](err) {
		a.say("interrupted")
	}
	lines := errorLines(err)
	a.say("error: %s", lines[0])
	for _, line := range lines[1:] {
		a.say("  %s", line)
	}
	for _, id := range r.TaskIDs {
		a.say("look again: zerto-rewind task %s --wait", id)
	}
	if r.ChangeID != "" {
		// Only a tag that stands is found again: before its task has ended, another one would be inserted beside it.
		a.say("to finish the guard when no task runs: zerto-rewind protect with the same VMs and --action, and --change %s", r.ChangeID)
	}
	for _, hint := range r.Hints {
		a.say("%s", hint)
	}
}

// errorLines gives each of joined errors a line of its own, whatever stands in front of the first.
func errorLines(err error) []string {
	text := err.Error()
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		joined, ok := inner.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, e.Error())
		}
		if front, ok := strings.CutSuffix(text, strings.Join(lines, "\n")); ok && len(lines) > 0 {
			lines[0] = front + lines[0]
			return lines
		}
	}
	return []string{text}
}
