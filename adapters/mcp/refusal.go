package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// The codes of refusals. They do not change between releases; new ones may come.
const (
	codeInvalidArguments = "invalid_arguments"
	codeNotFound         = "not_found"
	codeAmbiguousVM      = "ambiguous_vm"
	codeNotProtected     = "not_protected"
	codePartialGuard     = "partial_guard"
	codeOutcomeUnknown   = "outcome_unknown"
	codeNotLocal         = "not_local"
	codeCheckpointGone   = "checkpoint_gone"
	codePathNotFound     = "path_not_found"
	codeAmbiguousPath    = "ambiguous_path"
	codeNotDownloadable  = "not_downloadable"
	codeDestRefused      = "dest_refused"
	codeDestExists       = "dest_exists"
	codeNotInline        = "not_inline"
	codeNotAuthorized    = "not_authorized"
	codeUnavailable      = "unavailable"
	codeCancelled        = "cancelled"
	codeInternal         = "internal"
	codeFailed           = "failed"
	codeNeedsHuman       = "needs_human"
	codeNoConsent        = "no_consent"
	codeFrozen           = "frozen"
)

const (
	seeDetail = "See detail for the reason."
	goesOn    = "What was queued at the ZVM goes on there."

	maxDetailBytes     = 4 << 10
	maxListedInRefusal = 50
)

// refusal is the structured content of a tool error.
type refusal struct {
	Error refusalError `json:"error"`
}

// refusalError says why a call was refused or failed. Message, NotDone and NextStep are our words alone; every other
// field is data, which may hold what somebody else wrote.
type refusalError struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	NotDone  string `json:"notDone"`
	NextStep string `json:"nextStep"`
	Detail   string `json:"detail"`

	ChangeID   string                    `json:"changeId,omitempty"`
	Candidates []rewind.Protection       `json:"candidates,omitempty"` // the VMs that are meant
	VPGs       []rewind.VPGProtection    `json:"vpgs,omitempty"`       // why each one does not protect
	Tagged     []rewind.TaggedCheckpoint `json:"tagged,omitempty"`     // stand in their journals, and stay
	Failed     []rewind.VPGFailure       `json:"failed,omitempty"`     // have no checkpoint that is proven; one may come to stand
	Paths      []string                  `json:"paths,omitempty"`
	LeftOpen   *rewind.LeftOpenError     `json:"leftOpen,omitempty"`
}

// refused is an error that knows how it is told.
type refused struct{ refusalError }

func (r *refused) Error() string { return r.Message + " " + r.Detail }

// explain tells an error to an agent. Untouched says what did not happen, for errors that do not say more.
func (t *toolset) explain(ctx context.Context, err error, untouched string) refusalError {
	e := refusalError{Code: codeFailed, Message: "The call failed.", NotDone: untouched, NextStep: seeDetail, Detail: err.Error()}
	var own *refused
	if errors.As(err, &own) {
		e = own.refusalError
	} else {
		t.explainKind(ctx, err, &e)
	}
	if open := asLeftOpen(err); open != nil {
		e.LeftOpen = open
		e.NextStep += " Something was left open: have the command in leftOpen run, or tell the human."
	}
	if len(e.Detail) > maxDetailBytes {
		e.Detail = e.Detail[:maxDetailBytes] + " (cut)"
	}
	return e
}

// explainKind goes from the causes that say most to those that say least: an error may match several. Whether the
// waiting was ended is asked of the context, since whoever ends one may give a cause of their own.
func (t *toolset) explainKind(ctx context.Context, err error, e *refusalError) {
	var (
		partial     *rewind.PartialGuardError
		unprotected *rewind.NotProtectedError
	)
	switch {
	case errors.As(err, &partial):
		t.explainPartial(ctx, partial, e)
	case errors.As(err, &unprotected):
		e.Code, e.VPGs = codeNotProtected, unprotected.VPGs
		e.Message = "No VPG protects the VM now."
		e.NextStep = "Do not change the VM. Wait for the reasons in vpgs to pass and call again, or ask the human."
	case errors.Is(err, errPanicked):
		e.Code, e.Message = codeInternal, "The tool failed inside."
		e.NotDone = "What was asked for is not known to have been done."
		e.NextStep = "Tell the human. Do not take the change for guarded."
	case t.explainChoice(err, e), t.explainFile(err, e):
	default:
		t.explainWire(ctx, err, e)
	}
}

func (t *toolset) explainPartial(ctx context.Context, partial *rewind.PartialGuardError, e *refusalError) {
	e.Code, e.ChangeID, e.Tagged, e.Failed = codePartialGuard, partial.ChangeID, partial.Tagged, partial.Failed
	e.Message = fmt.Sprintf("The change is not guarded: of its VPGs, %d have a tagged checkpoint and %d have none that is proven.",
		len(partial.Tagged), len(partial.Failed))
	e.NotDone = "The change is not guarded. Do not make it."
	e.NextStep = fmt.Sprintf("When the tasks in failed have ended, call %s again with this changeId: tagged checkpoints that "+
		"stand are used and not inserted again.", t.name(guardName))
	switch {
	case ctx.Err() != nil:
		e.Code = codeCancelled
		e.Message += " The waiting was ended before the proof. " + goesOn
	case errors.Is(partial, zvm.ErrOutcomeUnknown):
		e.Code = codeOutcomeUnknown
		e.Message += " The answer to an insert was lost; it may have been carried out."
	}
}

// explainChoice tells errors that another choice of words would avoid.
func (t *toolset) explainChoice(err error, e *refusalError) bool {
	var (
		missing   *rewind.NotFoundError
		ambiguous *rewind.AmbiguousVMError
	)
	switch {
	case errors.As(err, &ambiguous):
		e.Code, e.Candidates = codeAmbiguousVM, candidates(ambiguous)
		e.Message = fmt.Sprintf("The name means %d VMs.", len(ambiguous.Candidates))
		e.NextStep = "Choose one of candidates and call again with its vm.id in place of the name. Ask the human when the choice is not certain."
	case errors.As(err, &missing):
		e.Code, e.Message = codeNotFound, "Nothing of that name was found at this ZVM."
		e.NextStep = "Check the name. A VM may be listed only by the ZVM of another site; ask the human when the name is right."
	default:
		return false
	}
	return true
}

// candidates are the VMs to choose from, as many as an agent can read.
func candidates(ambiguous *rewind.AmbiguousVMError) []rewind.Protection {
	listed := slices.Clone(ambiguous.Candidates[:min(len(ambiguous.Candidates), maxListedInRefusal)])
	for i := range listed {
		listed[i].VPGs = orEmpty(listed[i].VPGs)
	}
	return listed
}

// explainFile tells errors of file-level recovery.
func (t *toolset) explainFile(err error, e *refusalError) bool {
	var (
		noPath    *rewind.PathNotFoundError
		manyPaths *rewind.AmbiguousPathError
		noFile    *rewind.NotDownloadableError
	)
	switch {
	case errors.Is(err, rewind.ErrNotLocal):
		e.Code, e.Message = codeNotLocal, "This ZVM cannot mount a checkpoint of the change: its VPGs replicate to other sites."
		e.NextStep = "Tell the human: this server can be given the ZVM of the recovery site, or a clone or a failover test can bring the file back."
	case errors.Is(err, rewind.ErrCheckpointGone):
		e.Code, e.Message = codeCheckpointGone, "The tagged checkpoint of the change is no longer in the journal."
		e.NextStep = "Tell the human. Nothing falls back to another checkpoint."
	case errors.As(err, &noPath):
		e.Code, e.Message, e.Paths = codePathNotFound, "The path is not in the checkpoint.", noPath.Roots
		e.NextStep = "Check the path. The partitions that were searched are in paths; a path may begin with one."
		if noPath.Doubt != nil {
			e.Message = "The path was not found, but may be there all the same: see detail. Do not take it for missing."
		}
	case errors.As(err, &manyPaths):
		e.Code, e.Message, e.Paths = codeAmbiguousPath, "The path fits several places.", manyPaths.Hits
		e.NextStep = "Call again with one of paths."
		if manyPaths.Doubt != "" {
			e.Message = "The path was not found, and whether it was there cannot be told. Do not take it for missing."
			e.NextStep = "See detail for the reason and paths for what it may be. Call again with a path that begins with its partition; ask the human which."
		}
	case errors.As(err, &noFile):
		e.Code, e.Message = codeNotDownloadable, "The item cannot be recovered as a file."
		e.NextStep = "See detail for the reason. Ask for a file inside it when it is a folder."
	default:
		return false
	}
	return true
}

// explainWire tells what went wrong between here and the ZVM.
func (t *toolset) explainWire(ctx context.Context, err error, e *refusalError) {
	switch {
	case ctx.Err() != nil:
		e.Code, e.Message = codeCancelled, "The waiting was ended before the call was done. "+goesOn
		e.NextStep = "Call again when the answer is still wanted."
	case errors.Is(err, zvm.ErrOutcomeUnknown):
		e.Code, e.Message = codeOutcomeUnknown, "The answer to a write was lost; it may have been carried out."
		e.NextStep = "Do not repeat it blindly: see detail for what was seen, and tell the human."
	case errors.Is(err, zvm.ErrUnauthorized), errors.Is(err, zvm.ErrForbidden):
		e.Code, e.Message = codeNotAuthorized, "The ZVM refused the credentials, or the account may not do this."
		e.NextStep = "Tell the human; calling again will not help."
	case errors.Is(err, zvm.ErrUnavailable):
		e.Code, e.Message = codeUnavailable, "The ZVM cannot be reached or is not ready."
		e.NextStep = "Call again later."
	}
}

func asLeftOpen(err error) *rewind.LeftOpenError {
	var open *rewind.LeftOpenError
	errors.As(err, &open)
	return open
}
