package rewind

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Change is one intended mutation.
type Change struct {
	// ID names the change. Protecting twice under one ID uses the tagged checkpoints that stand already, which costs a
	// look through the whole journal. Empty means a new ID.
	ID     string
	Action string // what is about to be done, for people
	Agent  string // who does it; empty means the session's agent
	Human  string // for whom; empty means the session's human
}

// Proof says what a guard's checkpoints were proven by.
type Proof string

const (
	// ProofTaskAndJournal means that every checkpoint's task was read and was Completed, and the checkpoint was read
	// back from the journal under exactly its tag.
	ProofTaskAndJournal Proof = "task+journal"
	// ProofJournal means that every checkpoint was read in the journal at [GuardRecord.ProvenAt], its task being
	// unknown by now.
	ProofJournal Proof = "journal"
)

// TaggedCheckpoint is a checkpoint of ours in one VPG's journal.
type TaggedCheckpoint struct {
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	Tag          string           `json:"tag"`
	Timestamp    time.Time        `json:"timestamp"` // server clock
	// TaskID and TaskState are the insert's. Both are empty when the checkpoint was found in the journal.
	TaskID    zvm.TaskID `json:"taskId"`
	TaskState string     `json:"taskState"`
	// Local reports whether the ZVM that was asked serves file-level recovery for the VPG.
	Local         bool   `json:"local"`
	ProtectedSite string `json:"protectedSite"`
	RecoverySite  string `json:"recoverySite"`
}

// SkippedVPG is a VPG that holds a guarded VM but no checkpoint of the guard.
type SkippedVPG struct {
	VPGID   zvm.VPGID `json:"vpgId"`
	VPGName string    `json:"vpgName"`
	Reason  string    `json:"reason"`
	// Protecting is true for a VPG that protects now and yet has no checkpoint of the change: a guard found again is
	// then not whole. It is never true in a guard that Protect returned.
	Protecting bool `json:"protecting"`
}

// GuardRecord is a guard as data: what JSON, other processes and the command line hold. It is a claim, not a proof;
// [Session.Reprove] makes a [Guard] of it.
type GuardRecord struct {
	ChangeID    string             `json:"changeId"`
	Agent       string             `json:"agent"`
	Human       string             `json:"human"`
	Action      string             `json:"action"`
	VMs         []VM               `json:"vms"`
	Checkpoints []TaggedCheckpoint `json:"checkpoints"`
	Skipped     []SkippedVPG       `json:"skipped"`
	Proof       Proof              `json:"proof"`
	StartedAt   time.Time          `json:"startedAt"` // server clock
	ProvenAt    time.Time          `json:"provenAt"`  // server clock
	// Consistency says in words what the checkpoints are consistent in. It is never more than each VPG by itself.
	Consistency string `json:"consistency"`
	// SkewSeconds is the spread between the earliest and the latest checkpoint.
	SkewSeconds float64 `json:"skewSeconds"`
	// Recoveries are the bounded ways back that are left: "file" through this ZVM, "test" and "clone" at the recovery
	// sites.
	Recoveries []string  `json:"recoveries"`
	Drill      *Drilled  `json:"drill,omitempty"`
	Quiesced   *Quiesced `json:"quiesced,omitempty"`
}

// The texts of [GuardRecord.Consistency].
const (
	CrashConsistent       = "crash-consistent within each VPG, not across VPGs"
	ApplicationConsistent = "application-consistent within each VPG as far as the caller quiesced, not across VPGs"
)

// Guard is the proof that a change can be taken back: the tagged checkpoint of every protecting VPG, each one read in
// its journal by this process. Only a [Session] makes one, and the zero Guard recovers nothing.
//
// Each checkpoint is crash-consistent within its VPG. Checkpoints of several VPGs are not consistent with each other.
type Guard struct {
	record GuardRecord
	// members are the guarded VMs that each checkpoint covers.
	members map[zvm.VPGID][]VM
}

// Record returns the guard as data.
func (g *Guard) Record() GuardRecord {
	if g == nil {
		return GuardRecord{}
	}
	r := g.record
	r.VMs = nonNil(r.VMs)
	r.Checkpoints = nonNil(r.Checkpoints)
	r.Skipped = nonNil(r.Skipped)
	r.Recoveries = nonNil(r.Recoveries)
	return r
}

// String names the guard in one line.
func (g *Guard) String() string {
	if !g.Proven() {
		return "no guard"
	}
	vpgs := make([]string, len(g.record.Checkpoints))
	for i, c := range g.record.Checkpoints {
		vpgs[i] = c.VPGName + " " + string(c.CheckpointID)
	}
	return fmt.Sprintf("guard of change %s: %s (proof %s)", g.record.ChangeID, strings.Join(vpgs, ", "), g.record.Proof)
}

// Local reports whether a file can come back through the ZVM that was asked. A guard that is not local is as good: it can
// be tested and cloned, and files come back through the ZVM of a recovery site.
func (g *Guard) Local() bool {
	return g.Proven() && slices.ContainsFunc(g.record.Checkpoints, func(c TaggedCheckpoint) bool { return c.Local })
}

// Skew is the spread between the earliest and the latest checkpoint. Checkpoints of several VPGs are never consistent
// with each other, however small it is.
func (g *Guard) Skew() time.Duration {
	return time.Duration(g.Record().SkewSeconds * float64(time.Second))
}

func skew(checkpoints []TaggedCheckpoint) time.Duration {
	times := make([]time.Time, len(checkpoints))
	for i, c := range checkpoints {
		times[i] = c.Timestamp
	}
	if len(times) == 0 {
		return 0
	}
	return slices.MaxFunc(times, time.Time.Compare).Sub(slices.MinFunc(times, time.Time.Compare))
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clone(s)
}

// ChangeID returns the id of the guarded change.
func (g *Guard) ChangeID() string { return g.Record().ChangeID }

// Proven reports whether the guard came out of a [Session]. Nothing recovers from one that did not.
func (g *Guard) Proven() bool { return g != nil && len(g.record.Checkpoints) > 0 && g.members != nil }

// Complete reports whether every VPG that protects the guarded VMs has its checkpoint. A guard that Protect returned is
// complete; one found again need not be, when journals have aged apart.
func (g *Guard) Complete() bool {
	return g.Proven() && !slices.ContainsFunc(g.record.Skipped, func(v SkippedVPG) bool { return v.Protecting })
}

// MarshalJSON writes the guard's record.
func (g Guard) MarshalJSON() ([]byte, error) { return json.Marshal(g.Record()) }

// UnmarshalJSON always fails: a proof cannot be read from a file. Decode a [GuardRecord] and have it reproven.
func (g *Guard) UnmarshalJSON([]byte) error {
	return errors.New("rewind: a Guard cannot be decoded; decode a GuardRecord and pass it to Session.Reprove")
}

// tagged is a tagged checkpoint with the guarded VMs that it covers.
type tagged struct {
	TaggedCheckpoint
	members []VM
}

func (t tagged) proof() Proof {
	if t.TaskState == task.Completed.String() {
		return ProofTaskAndJournal
	}
	return ProofJournal
}

// newGuard is where every Guard comes from. Each pin was read in its journal by the caller, after its task, if it names
// one, was read as Completed. Pins that were not read make the zero Guard, which proves nothing.
func newGuard(record GuardRecord, pins []tagged) *Guard {
	if slices.ContainsFunc(pins, func(p tagged) bool { return p.CheckpointID == "" || p.Tag == "" || len(p.members) == 0 }) {
		return &Guard{}
	}
	g := &Guard{record: record, members: map[zvm.VPGID][]VM{}}
	g.record.Proof = ProofTaskAndJournal
	for _, p := range pins {
		if p.proof() != ProofTaskAndJournal {
			g.record.Proof = ProofJournal
		}
		g.record.Checkpoints = append(g.record.Checkpoints, p.TaggedCheckpoint)
		g.members[p.VPGID] = p.members
	}
	g.record.Consistency = CrashConsistent
	if q := record.Quiesced; q != nil && q.Held && g.record.Proof == ProofTaskAndJournal {
		g.record.Consistency = ApplicationConsistent
	}
	g.record.SkewSeconds = skew(g.record.Checkpoints).Seconds()
	g.record.Recoveries = []string{"test", "clone"}
	if g.Local() {
		g.record.Recoveries = []string{"file", "test", "clone"}
	}
	return g
}
