package gate

import (
	"context"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// Ledger is what gates remember and share with each other, in one process and in several. It is a cache of proof, not the
// truth: the journals are. Whoever can write it can forge it, so what it claims of a guard is read again in the journals
// unless [Policy.ProofAge] says otherwise.
//
// Every method heeds ctx, and its error means that nothing was changed or found out.
type Ledger interface {
	// Frozen returns the freeze in force, nil when there is none.
	Frozen(ctx context.Context) (*Freeze, error)

	// Claims returns what is known of the guards of the VM with this name, id, address or alias, newest first: closed and
	// void ones too. A name that VMs share brings the claims of each.
	Claims(ctx context.Context, vm string) ([]Claim, error)
	// Keep records a guard that was proven just now, and by which names its VM goes besides its own. A guard that is known
	// stays closed or void.
	Keep(ctx context.Context, guard rewind.GuardRecord, names ...string) error
	// Void records that a guard of a VM stands no more.
	Void(ctx context.Context, claim Claim, why string) error

	// Spend uses up one approval that fits the call, and returns nil when none does. Of several processes that ask at
	// once, one gets it. Targets are nil where the call's machines are not known.
	Spend(ctx context.Context, call Call, targets []string) (*Approval, error)
	// Consents returns what persons have agreed to that fits the call.
	Consents(ctx context.Context, call Call, targets []string) ([]Consent, error)
	// Digest returns what stands for the arguments of a call in the record and in an approval. It tells nothing of them to
	// whoever lacks the ledger, and is empty for nil.
	Digest(ctx context.Context, args map[string]any) (string, error)

	// Begin takes the turn at tagging these VMs, until a moment at which the taker has given up at the latest. The change is
	// the one that was begun for them since a time ago, or a new one.
	Begin(ctx context.Context, vms []string, since time.Duration, until time.Time) (Started, error)
	// End gives the turn back. What was begun under the change stays known.
	End(ctx context.Context, changeID string) error

	// Append adds one event to the record.
	Append(ctx context.Context, event Event) error
}

// Freeze stops every call but reads and those that stay on the agent's own machine, unless that is [Policy.LocalVM].
type Freeze struct {
	By     string    `json:"by"` // who, as far as the system tells
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Claim is what a ledger says of one guard of one VM.
type Claim struct {
	VM     rewind.VM          `json:"vm"`
	Record rewind.GuardRecord `json:"record"`
	// Age is how long ago the guard was last proven and kept, by the clock of this machine. It is negative when that clock
	// was set back.
	Age    time.Duration `json:"age"`
	Closed bool          `json:"closed"` // its change is over
	Void   string        `json:"void"`   // why it stands no more, empty while it does
}

// Approval is a person's leave, given at a terminal, for one call.
type Approval struct {
	ID     string `json:"id"`
	Server string `json:"server"` // "-" for a tool of the agent host itself
	Tool   string `json:"tool"`
	// Targets are the machines that the call may name, all or some of them. Without any, Digest says which call is meant.
	Targets []string  `json:"targets,omitempty"`
	Digest  string    `json:"digest,omitempty"` // of the call's arguments, as [Ledger.Digest] returns it
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Until   time.Time `json:"until"`
}

// Source says how it is known that a person agreed.
type Source string

// The sources. An operator's word was given at a terminal; a client's is as good as the client that brings it; a host's is
// concluded from a call that it ran after it was told to ask.
const (
	OperatorProven Source = "operator-proven"
	ClientRelayed  Source = "client-relayed"
	HostRelayed    Source = "host-relayed"
)

// Consent is a person's yes to a tool that nobody has classified, for as long as one change goes on: while its guard
// stands. There is none for a tool of the agent host itself, whose next call may do anything.
type Consent struct {
	ChangeID string   `json:"changeId"`
	VM       string   `json:"vm"` // whose guard it depends on
	Server   string   `json:"server"`
	Tool     string   `json:"tool"`
	Targets  []string `json:"targets,omitempty"` // that calls may name; none for calls whose machines cannot be told
	Source   Source   `json:"source"`
	By       string   `json:"by,omitempty"` // who, where that is known
}

// Started is a change whose tags are being inserted.
type Started struct {
	ChangeID string
	Taken    bool      // another process has the turn
	Since    time.Time // of the first attempt
}

// EventKind says what an [Event] is about.
type EventKind string

// The kinds.
const (
	EventVerdict   EventKind = "verdict"
	EventApproved  EventKind = "approved"
	EventConsented EventKind = "consented"
	EventFrozen    EventKind = "frozen"
	EventThawed    EventKind = "thawed"
	EventGuarded   EventKind = "guarded"
	EventVoid      EventKind = "void"
	EventClosed    EventKind = "closed" // a change is over
	EventRuled     EventKind = "ruled"  // a tool was classified
	EventRan       EventKind = "ran"    // a call that was asked about was let run, since a person said yes: a host has run it, or a proxy was about to
)

// Event is one line of the record. It holds no argument of a call but the names of machines.
type Event struct {
	Kind    EventKind `json:"kind"`
	Agent   string    `json:"agent,omitempty"` // empty means that of whoever keeps the ledger
	Human   string    `json:"human,omitempty"` // the same
	By      string    `json:"by,omitempty"`    // the person who approved, froze or ruled
	Host    string    `json:"host,omitempty"`
	Mode    string    `json:"mode,omitempty"`
	AgentID string    `json:"agentId,omitempty"`
	Session string    `json:"session,omitempty"`
	CallID  string    `json:"callId,omitempty"`
	Server  string    `json:"server,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Digest  string    `json:"digest,omitempty"` // of the arguments, by [Ledger.Digest]

	Class    string   `json:"class,omitempty"`
	Decision string   `json:"decision,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Targets  []string `json:"targets,omitempty"`
	Changes  []string `json:"changes,omitempty"`  // whose guards the verdict rests on
	Evidence []string `json:"evidence,omitempty"` // of these guards, as [Evidence] returns it
	Approval string   `json:"approval,omitempty"` // the one that was given or used up
}

// ServerOf returns the server of a tool as approvals and the record name it.
func ServerOf(name catalog.Name) string {
	if name.BuiltIn {
		return "-"
	}
	return name.Server
}

// Evidence names the checkpoints of a guard, each by the ids of its VPG and its own.
func Evidence(guard rewind.GuardRecord) []string {
	var evidence []string
	for _, c := range guard.Checkpoints {
		evidence = append(evidence, string(c.VPGID)+"/"+string(c.CheckpointID))
	}
	return evidence
}
