package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// Decision says whether a call may run.
type Decision uint8

// The decisions. The zero value denies.
const (
	Deny      Decision = iota // not now; see [Verdict.Next] for what would change that
	Ask                       // a person decides
	Allow                     // the gate has looked, and nothing speaks against it
	NoOpinion                 // the call is none of the gate's business
)

// String returns "deny", "ask", "allow" or "no_opinion". A value that is none of these denies, and says so.
func (d Decision) String() string {
	switch d {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	case NoOpinion:
		return "no_opinion"
	}
	return "deny"
}

// MarshalText writes the words of String. It does not fail.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Call is one tool call.
type Call struct {
	Name catalog.Name
	// Args are as decoded from JSON with json.Decoder.UseNumber. Nil means that they are not known.
	Args map[string]any

	// The rest is for the record, as far as a host tells it. It makes no verdict on this call laxer; by Session and CallID a
	// ledger knows the call again when the host has run it.

	Host    string // whose hook, server or proxy asks, such as "claude"
	Mode    string // the host's permission mode
	AgentID string // which of the session's agents calls
	Session string // the host's session
	CallID  string // the host's name of this call, such as tool_use_id

	// Objection says why a person has to be asked about a call that would otherwise run, such as one that rids the agent of
	// its hook; empty where nothing speaks against it. No read is objected to. Nil objects to nothing.
	Objection func() string
}

func (c Call) objection(class catalog.Class) string {
	if c.Objection == nil || class == catalog.ReadOnly {
		return ""
	}
	return c.Objection()
}

// Verdict is what the gate says of one call. The zero value denies.
type Verdict struct {
	Decision Decision      `json:"decision"`
	Class    catalog.Class `json:"class"`
	// Reason says why, in words for the agent; where the decision is Ask, it is the question to the person. It is one
	// line without control characters, never empty, and quotes no argument of the call but the names of machines.
	Reason string `json:"reason"`
	// Targets are the machines a mutating call names, each one once.
	Targets []string `json:"targets,omitempty"`
	// Guards are the records of the guards because of which a call is allowed, one for each target.
	Guards []rewind.GuardRecord `json:"guards,omitempty"`
	// Next is the tool call that makes the missing guard, and NextCommand the command line that does the same. Both are
	// empty where no guard would help.
	Next        string `json:"next,omitempty"`
	NextCommand string `json:"nextCommand,omitempty"`
	// ApproveCommand is the command line by which a person at a terminal lets this one call run, where a ledger takes
	// approvals: for a host whose question reaches nobody.
	ApproveCommand string `json:"approveCommand,omitempty"`
	// RetrySeconds is when the same call is worth another try, since its machines are being tagged. Zero means that
	// nothing is under way.
	RetrySeconds int `json:"retrySeconds,omitempty"`
	// Approval is the id of the approval that this verdict used up.
	Approval string `json:"approval,omitempty"`
}

// Guards finds the guards of a VM. [rewind.Session] does, from the journals.
type Guards interface {
	// Guards returns the guards of one VM that were made no longer than since ago, newest first. Each one has to be read
	// in its journals during the call: its age is how long before [rewind.GuardRecord.ProvenAt] its checkpoints are.
	// A name that means no VM is a [*rewind.NotFoundError], one that means several a [*rewind.AmbiguousVMError].
	Guards(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error)
}

var _ Guards = (*rewind.Session)(nil)

// Protector guards VMs. [rewind.Session] does.
type Protector interface {
	// ProtectAll is [rewind.Session.ProtectAll].
	ProtectAll(ctx context.Context, vms []string, change rewind.Change, opts ...rewind.ProtectOption) (*rewind.Guard, error)
}

var _ Protector = (*rewind.Session)(nil)

// Policy is what can be chosen about verdicts. The zero value is the default.
type Policy struct {
	// MaxAge is how old a guard may be that lets a call run; zero means 30 min.
	MaxAge time.Duration
	// Commands reads the command lines of the host's shells. Without one, only a few plain command lines are known, and a
	// person is asked about every other.
	Commands CommandReader
	// Ledger opens the ledger. It is called for every verdict but those on reads and on calls that reach no other machine,
	// and for each of them. Nil means that there is none: no freeze, no approvals and no record.
	Ledger func(ctx context.Context) (Ledger, error)
	// ProofAge is for how long a guard that was proven counts without being read in its journals again. Zero, the default,
	// reads them each time: an agent often runs as the user who can write the ledger, and a claim that costs one line of
	// SQL is no proof. It is for a ledger that the agent cannot write.
	ProofAge time.Duration
	// OnMutating says what becomes of a mutating call that lacks a guard. With [catalog.GuardFirst] the gate makes it, if the
	// Guards are a [Protector] too, within the time it has: the call is allowed once the guard is proven, and denied until
	// then; trying again goes on with the same change.
	OnMutating catalog.OnMutating
	// Aliases are names of a person's for VMs, by alias. An alias is taken whatever its case, and before a VM of that name.
	Aliases map[string]string
	// LocalVM is the VM that the agent's own machine is, if it is one to be guarded: tools that change that machine need its
	// guard then. Commands have to know it for themselves.
	LocalVM string
}

const defaultMaxAge = 30 * time.Minute

// Gate gives verdicts. It never changes and is safe for concurrent use if its Guards are.
type Gate struct {
	catalog *catalog.Catalog
	guards  func() (Guards, error)
	policy  Policy
}

// New returns a gate and does no I/O. Guards is called only for a verdict that depends on guards, and for each of those.
// The error says which argument is missing or makes no sense.
func New(c *catalog.Catalog, guards func() (Guards, error), policy Policy) (*Gate, error) {
	switch {
	case c == nil:
		return nil, errors.New("gate: no catalogue")
	case guards == nil:
		return nil, errors.New("gate: no source of guards")
	case policy.MaxAge < 0:
		return nil, fmt.Errorf("gate: a guard cannot be younger than %v", policy.MaxAge)
	case policy.ProofAge < 0:
		return nil, fmt.Errorf("gate: a proof cannot be younger than %v", policy.ProofAge)
	case policy.OnMutating > catalog.GuardFirst:
		return nil, errors.New("gate: what becomes of a call that lacks a guard is not one of the known")
	case policy.OnMutating == catalog.GuardFirst && policy.Ledger == nil:
		return nil, errors.New("gate: guards are made only with a ledger, which keeps them from being made twice")
	case policy.MaxAge == 0:
		policy.MaxAge = defaultMaxAge
	}
	aliases := make(map[string]string, len(policy.Aliases))
	for alias, vm := range policy.Aliases {
		aliases[strings.ToLower(alias)] = vm
	}
	policy.Aliases = aliases
	return &Gate{catalog: c, guards: guards, policy: policy}, nil
}

// Catalog returns the catalogue that the gate goes by.
func (g *Gate) Catalog() *catalog.Catalog { return g.catalog }

// Decide returns the verdict on a call, and it always returns one: whatever fails, the verdict is Deny and says what
// failed. It changes nothing at the ZVM unless [Policy.OnMutating] has it make guards, and nothing here but the ledger. It
// waits for guards no longer than they heed ctx.
func (g *Gate) Decide(ctx context.Context, call Call) (v Verdict) {
	defer func() {
		if recover() != nil {
			v = Verdict{Reason: "The gate failed while it judged this call. The call did not run."}
		}
	}()
	v = g.judge(ctx, call)
	v.Reason = oneLine(v.Reason)
	return v
}

// nature is what a call is, as far as its name and its arguments tell.
type nature int

const (
	toAsk    nature = iota // a person decides
	free                   // reads, or reaches no other machine: it never waits for anything
	harmless               // makes a recovery point
	changing               // changes the machines of the step's result
	objected               // no guard and no consent is leave for it, nor is an approval that names the machines alone
)

// step is a call that was understood, and the verdict on it if nothing else bears on it.
type step struct {
	nature  nature
	verdict Verdict
	result  catalog.Result
}

func (c Call) ask(r catalog.Result, why string) step {
	return step{toAsk, Verdict{Decision: Ask, Class: r.Class, Reason: c.question(why)}, r}
}

func (g *Gate) judge(ctx context.Context, call Call) Verdict {
	s := g.understand(call)
	if s.nature == free {
		if why := call.objection(s.verdict.Class); why != "" {
			s = call.ask(s.result, why)
		}
	}
	switch {
	case s.nature == free:
		return s.verdict
	case g.policy.Ledger == nil:
		return g.weigh(ctx, nil, call, s)
	}
	return g.recorded(ctx, call, s)
}

func (g *Gate) understand(call Call) step {
	r := g.catalog.ClassifyCall(call.Name, call.Args)
	v := Verdict{Class: r.Class, Reason: call.sentence(r.Reason)}
	switch {
	case r.Kind == catalog.Undo:
		return call.ask(r, "It deletes or rolls back recovery points, which no guard can bring back.")
	case r.Scope == catalog.Local && r.Class != catalog.ReadOnly && g.policy.LocalVM != "":
		r.Targets, r.TargetKnown, r.TargetProblem = []catalog.Target{{Value: g.policy.LocalVM}}, true, ""
		return step{changing, v, r}
	case r.Scope == catalog.Local:
		v.Decision = NoOpinion
		return step{free, v, r}
	case r.Kind == catalog.Checkpoint:
		v.Decision = Allow
		return step{harmless, v, r}
	case r.Safe():
		v.Decision = Allow
		return step{free, v, r}
	case r.Class == catalog.Mutating && r.TargetKnown:
		return step{changing, v, r}
	case r.Class == catalog.Mutating:
		return call.ask(r, "It changes a machine, and which one cannot be told: "+r.TargetProblem+".")
	case call.Name.BuiltIn && r.Entry != nil && len(r.Entry.Command) > 0:
		return g.shell(call, r.Entry)
	}
	return call.ask(r, "Whether it changes a machine is not known, and unknown does not mean safe: "+r.Reason+".")
}

// weigh gives the verdict on a call that a ledger may bear on. The ledger may be nil.
func (g *Gate) weigh(ctx context.Context, ledger Ledger, call Call, s step) Verdict {
	v := s.verdict
	if s.nature == changing {
		v = g.guarded(ctx, ledger, call, s.result)
	}
	if why := call.objection(v.Class); why != "" {
		s.nature, s.result.TargetKnown = objected, false
		switch {
		case v.Decision == Allow:
			v.Decision, v.Guards, v.Reason = Ask, nil, call.question(why)
		case v.Decision == Ask && !strings.Contains(v.Reason, why):
			v.Reason += " " + why
		}
	}
	if ledger == nil || v.Decision != Deny && v.Decision != Ask {
		return v
	}
	return g.permitted(ctx, ledger, call, s, v)
}
