package catalog

import (
	"bytes"
	"fmt"
	"slices"
)

// Verdict is what the catalogue says of a tool or of one call. The zero value is unknown.
type Verdict struct {
	Class Class `json:"class"`
	Kind  Kind  `json:"kind,omitzero"`
	Scope Scope `json:"scope,omitzero"`
}

// Safe reports whether a gate may let the tool run with neither a guard nor a human: it is read-only, makes a recovery
// point, or cannot reach another machine. Unknown is not safe.
func (v Verdict) Safe() bool {
	return v.Class == ReadOnly || v.Kind == Checkpoint || v.Scope == Local
}

// Result is the verdict on one call.
type Result struct {
	Verdict

	// Entry is a copy of the entry that decided, nil when none did: the server was not recognised, or the tool.
	Entry *Entry `json:"entry,omitempty"`

	// Targets are the machines that the call names as far as they could be read. Only when TargetKnown is true are
	// they all of them; it is never true without at least one.
	Targets     []Target `json:"targets,omitempty"`
	TargetKnown bool     `json:"targetKnown"`
	Containers  []Target `json:"containers,omitempty"` // hypervisors, nodes or vCenters named: never machines acted on

	// Reason says in a sentence why the call has this class; TargetProblem why TargetKnown is false. Neither quotes a
	// value from the call.
	Reason        string `json:"reason"`
	TargetProblem string `json:"targetProblem,omitempty"`
}

// Classify returns the verdict on a tool by its name alone. An entry with conditions gives its own class, as if none
// held. It does not allocate.
func (c *Catalog) Classify(n Name) Verdict {
	if e := c.find(n); e != nil {
		return Verdict{e.Class, e.Kind, e.Scope}
	}
	return c.byNameAlone(n)
}

// ClassifyCall returns the verdict on one call. Arguments are as decoded from JSON, best with json.Decoder.UseNumber.
// Nil args mean that the arguments are not known, which is not the same as a call without arguments: then no condition
// holds and no target is known. An argument of an unexpected name or type makes the result stricter, never laxer.
func (c *Catalog) ClassifyCall(n Name, args map[string]any) Result {
	found := c.find(n)
	if found == nil {
		return c.unlisted(n)
	}
	e := found.clone()
	r := Result{Verdict: Verdict{Kind: e.Kind, Scope: e.Scope}, Entry: e}
	r.Class, r.Reason = e.classify(args)
	r.readTargets(e, args, c.machines[fold(n.Server)])
	return r
}

func (c *Catalog) find(n Name) *listed {
	var buf [maxKeyLength]byte
	key, ok := appendKey(buf[:0], n)
	if !ok {
		return nil
	}
	described := c.index[string(key)]
	own, tool, _ := bytes.Cut(key, []byte(keySeparator))
	server, isAlias := c.aliases[string(own)]
	if !isAlias {
		return described
	}
	// The server's tools, except those that the user described under the key.
	var aliased [maxKeyLength]byte
	if key, ok = appendFolded(aliased[:0], server); !ok {
		return described
	}
	key = append(append(key, keySeparator...), tool...)
	if e := c.index[string(key)]; e != nil && (described == nil || !described.outranks(e)) {
		return e
	}
	return described
}

func (c *Catalog) byNameAlone(n Name) Verdict {
	if n.BuiltIn {
		return Verdict{}
	}
	var buf [maxNameLength]byte
	tool, ok := appendFolded(buf[:0], n.Tool)
	if !ok {
		return Verdict{}
	}
	return c.byTool[string(tool)]
}

func (c *Catalog) unlisted(n Name) Result {
	r := Result{Verdict: c.byNameAlone(n), TargetProblem: "the catalogue has no entry for this tool of this server"}
	r.Reason = "the tool is in the catalogue neither as read_only nor as mutating"
	if r.Class == Mutating {
		r.Reason = "the server is not recognised, and every known tool of this name is mutating"
	}
	return r
}

// byNameAlone is what the entry says of a tool of the same name on a server that is not recognised: nothing but bad news.
func (e *Entry) byNameAlone() Verdict {
	if e.Class == Mutating && e.Kind != Checkpoint {
		return Verdict{Class: Mutating, Kind: e.Kind}
	}
	return Verdict{}
}

// classify takes the strictest class of the conditions that hold.
func (e *Entry) classify(args map[string]any) (Class, string) {
	if e.Void != "" {
		return Unknown, e.Void
	}
	class, reason, odd := Unknown, "", false
	for i := range e.When {
		c := &e.When[i]
		odd = odd || c.Class == Mutating && c.odd(args)
		if c.holds(args) && c.Class > class {
			class, reason = c.Class, fmt.Sprintf("argument %q makes this call %s", c.Arg, c.Class)
		}
	}
	switch {
	case class == Mutating, class == ReadOnly && !odd:
		return class, reason
	case len(e.When) > 0:
		return e.Class, fmt.Sprintf("the tool is %s unless its arguments say otherwise, and they do not", e.Class)
	}
	return e.Class, fmt.Sprintf("the catalogue lists the tool as %s", e.Class)
}

func (c *Condition) holds(args map[string]any) bool {
	value, state := argument(args, c.Arg)
	if c.Absent || state != present {
		return c.Absent && state == missing
	}
	switch v := value.(type) {
	case string:
		return slices.Contains(c.In, v)
	case bool:
		return c.Is != nil && *c.Is == v
	}
	return false
}

// odd reports whether the argument may be one for which the condition holds, written in a way in which it does not.
func (c *Condition) odd(args map[string]any) bool {
	value, state := argument(args, c.Arg)
	switch value.(type) {
	case string:
		return len(c.In) == 0 && !c.Absent
	case bool:
		return c.Is == nil && !c.Absent
	case nil:
		return state != missing
	}
	return !c.Absent
}

type argumentState int

const (
	missing argumentState = iota
	present
	garbled // the arguments are not known, or one is spelled almost like the name asked for
)

func argument(args map[string]any, name string) (any, argumentState) {
	if args == nil {
		return nil, garbled
	}
	value, exact := args[name]
	for other := range args {
		if other != name && alike(other, name) {
			return nil, garbled
		}
	}
	if exact {
		return value, present
	}
	return nil, missing
}
