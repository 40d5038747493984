package rewind

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

var (
	// ErrNotLocal is matched by errors that say that no checkpoint of a guard can be mounted through this ZVM.
	ErrNotLocal = errors.New("no guarded VPG replicates within the site of this ZVM")
	// ErrCheckpointGone is matched by errors that say that a checkpoint of a guard is no longer in its journal. Nothing
	// falls back to another one.
	ErrCheckpointGone = errors.New("the tagged checkpoint is no longer in the journal")
	// ErrNotProven is matched when something is asked of a Guard that no session made.
	ErrNotProven = errors.New("the guard is not proven: only a Session makes one")
)

// NotFoundError says that nothing by that name was found at the ZVM that was asked.
type NotFoundError struct {
	Wanted string // the VM's name, or the change's id
	What   string // "VM" when empty
	Site   string // the site asked, empty when unknown
}

func (e *NotFoundError) Error() string {
	what, site := e.What, e.Site
	if what == "" {
		what = "protected VM"
	}
	if site == "" {
		return fmt.Sprintf("no %s %q at this ZVM", what, e.Wanted)
	}
	return fmt.Sprintf("no %s %q at site %s; a VM may be listed only by the ZVM of another site", what, e.Wanted, site)
}

// AmbiguousVMError says that a name means several VMs, or that a change concerns several. Name one by its id.
type AmbiguousVMError struct {
	Wanted     string
	Candidates []Protection // ordered by id
}

func (e *AmbiguousVMError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q means %d VMs; name one by its id:", e.Wanted, len(e.Candidates))
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, " %s (%s", c.VM.ID, shown(c.VM.Name))
		for _, v := range c.VPGs {
			fmt.Fprintf(&b, ", VPG %s at %s", shown(v.VPGName), shown(v.ProtectedSite))
		}
		b.WriteString(");")
	}
	return strings.TrimSuffix(b.String(), ";")
}

// AmbiguousVPGError says that a change stands in several VPGs from which its VMs could be started, cloned or mounted, none
// of them the obvious one. Name one with [InVPG], or a VM with [FromVM].
type AmbiguousVPGError struct {
	ChangeID string
	VPGs     []string
}

func (e *AmbiguousVPGError) Error() string {
	return fmt.Sprintf("change %s stands in several VPGs; name one of %s", shown(e.ChangeID), shown(strings.Join(e.VPGs, ", ")))
}

// NotProtectedError says that no VPG protects the VM now, and why each one does not. Nothing was inserted.
type NotProtectedError struct {
	VM   VM
	VPGs []VPGProtection
}

func (e *NotProtectedError) Error() string {
	reasons := make([]string, len(e.VPGs))
	for i, v := range e.VPGs {
		reasons[i] = shown(v.VPGName + ": " + v.Reason)
	}
	return fmt.Sprintf("%s is not protected now; nothing was tagged (%s)", shown(e.VM.Name), strings.Join(reasons, "; "))
}

// PartialGuardError says that a change is not guarded, and how far its guarding came. Tagged checkpoints cannot be
// deleted: those in Tagged stay in their journals until they age out.
type PartialGuardError struct {
	ChangeID string
	Tagged   []TaggedCheckpoint // read in their journals
	Failed   []VPGFailure
}

// VPGFailure is what happened at one VPG. Its JSON form has the words of Err as "reason".
type VPGFailure struct {
	VPGID   zvm.VPGID `json:"vpgId"`
	VPGName string    `json:"vpgName"`
	// Tag is the name that was sent, or may have been, empty when nothing was. A checkpoint of that name may stand in
	// the journal.
	Tag    string     `json:"tag"`
	TaskID zvm.TaskID `json:"taskId"` // empty when none is known
	Err    error      `json:"-"`
}

// MarshalJSON writes the frozen form. It does not fail.
func (f VPGFailure) MarshalJSON() ([]byte, error) {
	type members VPGFailure
	reason := ""
	if f.Err != nil {
		reason = f.Err.Error()
	}
	return json.Marshal(struct {
		members
		Reason string `json:"reason"`
	}{members(f), reason})
}

func (e *PartialGuardError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "change %s is not guarded:", shown(e.ChangeID))
	for _, f := range e.Failed {
		fmt.Fprintf(&b, " VPG %s: %v", shown(f.VPGName), f.Err)
		if f.Tag != "" {
			fmt.Fprintf(&b, " (the checkpoint %q may come to stand there)", f.Tag)
		}
		b.WriteString(";")
	}
	for _, t := range e.Tagged {
		fmt.Fprintf(&b, " VPG %s was tagged (checkpoint %s), which cannot be undone;", shown(t.VPGName), t.CheckpointID)
	}
	return strings.TrimSuffix(b.String(), ";")
}

// Unwrap returns what went wrong at each VPG.
func (e *PartialGuardError) Unwrap() []error {
	causes := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		causes[i] = f.Err
	}
	return causes
}

// StateError says that a VPG does not protect, or no longer does.
type StateError struct {
	VPGName string
	Reason  string
	// Late is true when the VPG protected before the insert and does not after it: the tagged checkpoint may be lost.
	Late bool
}

func (e *StateError) Error() string {
	if e.Late {
		return fmt.Sprintf("%s stopped protecting while it was being tagged, its checkpoints may be lost: %s", shown(e.VPGName), shown(e.Reason))
	}
	return fmt.Sprintf("%s does not protect: %s", shown(e.VPGName), shown(e.Reason))
}

// CheckpointNotListedError says that an insert's task completed but its tag was not seen in the journal. It is never
// taken for a guard, and never a reason to insert again.
type CheckpointNotListedError struct {
	VPGName string
	Tag     string
	TaskID  zvm.TaskID
	Err     error // why the looking ended
}

func (e *CheckpointNotListedError) Error() string {
	return fmt.Sprintf("task %s completed but %s does not list %q: %v", e.TaskID, shown(e.VPGName), e.Tag, e.Err)
}

// Unwrap returns why the looking ended.
func (e *CheckpointNotListedError) Unwrap() error { return e.Err }

// NotLocalError says that files cannot come back through this ZVM, and what can be done. It matches [ErrNotLocal].
type NotLocalError struct {
	ChangeID string
	// RecoverySites are where they can. An identifier is empty when the ZVM lists the VPG no more.
	RecoverySites []zvm.SiteRef
}

func (e *NotLocalError) Error() string {
	sites := make([]string, len(e.RecoverySites))
	for i, s := range e.RecoverySites {
		sites[i] = strings.TrimSpace(fmt.Sprintf("%s %s", shown(s.Name), shown(string(s.ID))))
	}
	return fmt.Sprintf("change %s: %v; file-level recovery runs at the recovery site (%s): "+
		"give the session that site's ZVM (WithRecoverySite), or start a failover test or a clone",
		shown(e.ChangeID), ErrNotLocal, strings.Join(sites, ", "))
}

// Is matches [ErrNotLocal].
func (e *NotLocalError) Is(target error) bool { return target == ErrNotLocal }

// PathNotFoundError says that a guest path was not found in the mounted checkpoint.
type PathNotFoundError struct {
	Path  string
	Roots []string // the partitions that were looked through
	// Doubt says why it may be there all the same. It is nil where not to be found is evidence that there is no such path:
	// on a partition that was named, or in a folder that the path leads through and that was listed whole.
	Doubt *AmbiguousPathError

	ends []string // folders in which the path may have ended, if there is nothing else to doubt
}

func (e *PathNotFoundError) Error() string {
	if len(e.Roots) == 0 {
		return fmt.Sprintf("%q: the mounted checkpoint shows no readable partition", e.Path)
	}
	if e.Doubt != nil {
		return fmt.Sprintf("%v (looked through: %s)", e.Doubt, shown(strings.Join(e.Roots, ", ")))
	}
	return fmt.Sprintf("%q is on none of the partitions %s", e.Path, shown(strings.Join(e.Roots, ", ")))
}

// PartitionNotFoundError says that a mounted checkpoint has no such partition as [OnPartition] names, or that the path's
// own drive letter is that of another.
type PartitionNotFoundError struct {
	Path       string
	Partition  string
	Partitions []string // that there are
}

func (e *PartitionNotFoundError) Error() string {
	return fmt.Sprintf("%q: no partition %q; there are %s", e.Path, e.Partition, shown(strings.Join(e.Partitions, ", ")))
}

// AmbiguousPathError says that a guest path fits several places, or one that is not certain; or that it was not found and
// that it cannot be told whether it was there. [OnPartition] settles it.
type AmbiguousPathError struct {
	Path string
	Hits []string // paths that start with a partition; each one is unambiguous
	// Doubt says why it cannot be told whether a path that was not found was there. There may be no Hits then.
	Doubt string
}

func (e *AmbiguousPathError) Error() string {
	if e.Doubt != "" {
		return fmt.Sprintf("%q was not found, and whether it was there cannot be told: %s; begin the path with its partition", e.Path, shown(e.Doubt))
	}
	return fmt.Sprintf("%q may be any of %s; name the partition", e.Path, shown(strings.Join(e.Hits, ", ")))
}

// NotDownloadableError says that the server will not hand out an item, in its own words. Nothing was downloaded.
// It wraps [ErrFolder] or [ErrNotFolder] when it is the one where the other was asked for.
type NotDownloadableError struct {
	Path   string
	Reason string

	kind error
}

// What a path leads to instead of what was asked for.
var (
	// ErrFolder says that it is a folder: [Session.RecoverTree] brings one back.
	ErrFolder = errors.New("it is a folder")
	// ErrNotFolder says that it is no folder: [Session.Recover] brings a file back.
	ErrNotFolder = errors.New("it is not a folder")
)

func (e *NotDownloadableError) Unwrap() error { return e.kind }

func (e *NotDownloadableError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%s cannot be downloaded; the server gives no reason", shown(e.Path))
	}
	return fmt.Sprintf("%s cannot be downloaded: %s", shown(e.Path), shown(e.Reason))
}

// LeftOpenError says that something could not be closed, and how to close it. What was asked for may have been done all
// the same: see the result beside it. Its JSON form leaves Err out.
type LeftOpenError struct {
	What    string `json:"what"` // "FLR session"
	ID      string `json:"id"`
	Command string `json:"command"` // closes it; empty when none does, as for a clone that is complete
	// MayBe is true when it is not known to be open: the answer of the call that may have opened it was lost.
	MayBe bool  `json:"mayBe"`
	Err   error `json:"-"`
}

func (e *LeftOpenError) Error() string {
	was := "was"
	if e.MayBe {
		was = "may have been"
	}
	text := fmt.Sprintf("%s %s %s left open (%v)", e.What, shown(e.ID), was, e.Err)
	if e.Command == "" {
		return text
	}
	return text + "; close it with: " + e.Command
}

// Unwrap returns why closing failed.
func (e *LeftOpenError) Unwrap() error { return e.Err }

// quoted makes one word of a shell of a text that anybody may have chosen.
func quoted(text string) string { return "'" + strings.ReplaceAll(shown(text), "'", `'\''`) + "'" }

// shown makes a name of the server's one that cannot forge a line or steer a terminal.
func shown(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name
	}
	quoted := strconv.QuoteToGraphic(name)
	return quoted[1 : len(quoted)-1]
}
