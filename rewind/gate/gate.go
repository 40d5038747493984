package gate

import (
	"context"
	"errors"
	"fmt"
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

	// The rest is for the audit record, as far as a host tells it. It never makes a verdict laxer.

	Host    string // whose hook, server or proxy asks, such as "claude"
	Mode    string // the host's permission mode
	AgentID string // which of the session's agents calls
	Session string // the host's session
	CallID  string // the host's name of this call, such as tool_use_id
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
	// Guards are the records of the guards because of which a mutating call is allowed, one for each target.
	Guards []rewind.GuardRecord `json:"guards,omitempty"`
	// Next is the tool call that makes the missing guard, and NextCommand the command line that does the same. Both are
	// empty where no guard would help.
	Next        string `json:"next,omitempty"`
	NextCommand string `json:"nextCommand,omitempty"`
}

// Guards finds the guards of a VM. [rewind.Session] does, from the journals.
type Guards interface {
	// Guards returns the guards of one VM that were made no longer than since ago, newest first. Each one has to be read
	// in its journals during the call: its age is how long before [rewind.GuardRecord.ProvenAt] its checkpoints are.
	// A name that means no VM is a [*rewind.NotFoundError], one that means several a [*rewind.AmbiguousVMError].
	Guards(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error)
}

var _ Guards = (*rewind.Session)(nil)

// Policy is what can be chosen about verdicts. The zero value is the default.
type Policy struct {
	// MaxAge is how old a guard may be that lets a call run; zero means 30 min.
	MaxAge time.Duration
	// Commands reads the command lines of the host's shells. Without one, only a few plain command lines are known, and a
	// person is asked about every other.
	Commands CommandReader
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
	case policy.MaxAge == 0:
		policy.MaxAge = defaultMaxAge
	}
	return &Gate{catalog: c, guards: guards, policy: policy}, nil
}

// Catalog returns the catalogue that the gate goes by.
func (g *Gate) Catalog() *catalog.Catalog { return g.catalog }

// Decide returns the verdict on a call. It changes nothing, here or at the ZVM, and it always returns one: whatever
// fails, the verdict is Deny and says what failed. It waits for guards no longer than they heed ctx.
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

func (g *Gate) judge(ctx context.Context, call Call) Verdict {
	r := g.catalog.ClassifyCall(call.Name, call.Args)
	v := Verdict{Class: r.Class, Reason: call.sentence(r.Reason)}
	switch {
	case r.Kind == catalog.Undo:
		v.Decision = Ask
		v.Reason = call.question("It deletes or rolls back recovery points, which no guard can bring back.")
	case r.Scope == catalog.Local:
		v.Decision = NoOpinion
	case r.Safe():
		v.Decision = Allow
	case r.Class == catalog.Mutating && r.TargetKnown:
		return g.guarded(ctx, call, r)
	case r.Class == catalog.Mutating:
		v.Decision = Ask
		v.Reason = call.question("It changes a machine, and which one cannot be told: " + r.TargetProblem + ".")
	default:
		return g.unknown(ctx, call, r)
	}
	return v
}

func (g *Gate) unknown(ctx context.Context, call Call, r catalog.Result) Verdict {
	if call.Name.BuiltIn && r.Entry != nil && len(r.Entry.Command) > 0 {
		return g.shell(ctx, call, r.Entry)
	}
	return Verdict{Decision: Ask, Reason: call.question("Whether it changes a machine is not known, and unknown does not mean safe: " + r.Reason + ".")}
}
