package catalog

import (
	"fmt"
	"slices"
)

// Class says what a tool call does to a machine that someone may want back.
type Class uint8

// The classes. Unknown is the zero value and the normal case, and it is not safe: the human is asked.
const (
	Unknown  Class = iota // in neither list, or the arguments leave it open
	ReadOnly              // changes nothing that a tagged checkpoint could bring back
	Mutating              // changes something, or may
)

// Kind marks the tools that deal with recovery points themselves. Both kinds are Mutating by class.
type Kind uint8

// The kinds. Ordinary is the zero value.
const (
	Ordinary   Kind = iota // not about recovery points
	Checkpoint             // makes a recovery point: always allowed, since refusing it would deadlock the gate
	Undo                   // deletes or rolls back recovery points: always a human's decision
)

// Scope says how far a tool can reach.
type Scope uint8

// The scopes. Anywhere is the zero value.
const (
	Anywhere Scope = iota // may address any machine
	// Local tools touch only the machine the agent itself runs on: its files, its notes, its screen. They address no
	// other machine, so a gate that guards other machines has no opinion on them, even when their class is Mutating.
	Local
)

// Form says how the text of a target argument is read.
type Form uint8

// The forms. Every form splits a comma list; every member of the list must then be one plain name or address.
const (
	NameForm Form = iota // a name, an address or an id of one machine
	// PatternForm is an Ansible host pattern. A bare word may be the name of a group and so of many machines, which
	// the text alone cannot tell: only an address or a dotted host name counts as one machine. (Ansible warns of a group
	// with a dot in its name, but does not refuse it.)
	PatternForm
	// SelectorForm is a name or number with an optional node in front: "123", "pve1:123", "pve1/web01".
	SelectorForm
)

var (
	classNames = []string{"unknown", "read_only", "mutating"}
	kindNames  = []string{"", "checkpoint", "undo"}
	scopeNames = []string{"anywhere", "local"}
	formNames  = []string{"name", "pattern", "selector"}
)

// String returns "unknown", "read_only" or "mutating".
func (c Class) String() string { return word(classNames, c) }

// String returns "", "checkpoint" or "undo".
func (k Kind) String() string { return word(kindNames, k) }

// String returns "anywhere" or "local".
func (s Scope) String() string { return word(scopeNames, s) }

// String returns "name", "pattern" or "selector".
func (f Form) String() string { return word(formNames, f) }

// MarshalText writes the words of String. It does not fail.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalText writes the words of String. It does not fail.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText writes the words of String. It does not fail.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText writes the words of String. It does not fail.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the words of String and refuses every other.
func (c *Class) UnmarshalText(text []byte) error { return parseWord(classNames, "class", text, c) }

// UnmarshalText reads the words of String and refuses every other.
func (k *Kind) UnmarshalText(text []byte) error { return parseWord(kindNames, "kind", text, k) }

// UnmarshalText reads the words of String and refuses every other.
func (s *Scope) UnmarshalText(text []byte) error { return parseWord(scopeNames, "scope", text, s) }

// UnmarshalText reads the words of String and refuses every other.
func (f *Form) UnmarshalText(text []byte) error { return parseWord(formNames, "form", text, f) }

func word[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("invalid(%d)", uint8(v))
}

func parseWord[T ~uint8](words []string, what string, text []byte, v *T) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("%s %q is not one of %q", what, text, words)
	}
	*v = T(i)
	return nil
}

// Name is a tool as a host names it.
//
// Its zero fields are the careful ones: a Name without a Server belongs to an MCP server that the host did not tell,
// which is never trusted like a tool of the host itself.
type Name struct {
	Server  string `json:"server,omitempty"`  // key of the MCP server in the host's settings; users choose it
	Tool    string `json:"tool"`              // bare tool name
	BuiltIn bool   `json:"builtIn,omitempty"` // a tool of the agent host itself; then Server is empty
}

// String returns "server/tool", the bare tool name of a built-in, or "?/tool" where the server is not known.
func (n Name) String() string {
	switch {
	case n.BuiltIn:
		return n.Tool
	case n.Server == "":
		return "?/" + n.Tool
	}
	return n.Server + "/" + n.Tool
}

// Condition gives a call another class because of one argument. Exactly one of In, Is and Absent is set. It holds only
// for an argument spelled exactly so and of exactly that type; anything odd leaves the entry's own class in force.
type Condition struct {
	Arg    string   `json:"arg"`
	In     []string `json:"in,omitempty"`     // the argument is one of these strings
	Is     *bool    `json:"is,omitempty"`     // the argument is this boolean
	Absent bool     `json:"absent,omitempty"` // the call has no such argument
	Class  Class    `json:"class"`            // ReadOnly or Mutating
}

// Entry is what the catalogue knows of one tool. A catalogue hands out copies.
type Entry struct {
	// Server is the name of the MCP server's project, empty for a built-in. Users choose their own keys for servers,
	// so Aliases lists the keys its documentation suggests; Catalog.WithAlias adds a user's own.
	Server  string   `json:"server,omitempty"`
	Aliases []string `json:"aliases,omitempty"`
	Tool    string   `json:"tool"`
	BuiltIn bool     `json:"builtIn,omitempty"`

	// Class holds where no condition does. An entry with conditions is never ReadOnly by itself: a condition may
	// relax, and nothing is relaxed because a condition failed to hold.
	Class Class       `json:"class"`
	Kind  Kind        `json:"kind,omitzero"`
	Scope Scope       `json:"scope,omitzero"`
	When  []Condition `json:"when,omitempty"`

	Target    []string `json:"target,omitempty"`    // arguments that name the machine acted on
	Container []string `json:"container,omitempty"` // arguments that name its hypervisor, node or vCenter: never the machine
	Form      Form     `json:"form,omitzero"`       // how the target arguments are written
	Indirect  []string `json:"indirect,omitempty"`  // session, pid, token, job_id: stand for a target that the call does not show
	Command   []string `json:"command,omitempty"`   // arguments that hold a command line or script
	// ServerDefault says that a call without target argument acts on a machine set in the server's own settings.
	ServerDefault bool `json:"serverDefault,omitempty"`

	Note   string `json:"note,omitempty"`
	Source string `json:"source,omitempty"` // repository@revision that was read

	Ruling *Ruling `json:"ruling,omitempty"` // who gave the class; nil for built-in data and entries written by hand
	// Void says why an entry whose ruling no longer counts is Unknown. No file has it: see [Catalog.AsOf] and
	// [Catalog.WithFingerprints].
	Void string `json:"void,omitempty"`
}

// CommandLine returns the one command line that the call's arguments hold. It is false when there is none, when there
// are several, and when one is not text under exactly its listed name.
func (e *Entry) CommandLine(args map[string]any) (string, bool) {
	line, found := "", false
	for _, arg := range e.Command {
		value, state := argument(args, arg)
		if state == missing {
			continue
		}
		text, isText := value.(string)
		if !isText || text == "" || found {
			return "", false
		}
		line, found = text, true
	}
	return line, found
}

func (e *Entry) clone() *Entry {
	c := *e
	c.Aliases = slices.Clone(e.Aliases)
	c.When = slices.Clone(e.When)
	for i := range c.When {
		c.When[i].In = slices.Clone(c.When[i].In)
		if is := c.When[i].Is; is != nil {
			v := *is
			c.When[i].Is = &v
		}
	}
	c.Target = slices.Clone(e.Target)
	c.Container = slices.Clone(e.Container)
	c.Indirect = slices.Clone(e.Indirect)
	c.Command = slices.Clone(e.Command)
	if e.Ruling != nil {
		ruling := *e.Ruling
		if f := ruling.Fingerprint; f != nil {
			v := *f
			ruling.Fingerprint = &v
		}
		c.Ruling = &ruling
	}
	return &c
}
