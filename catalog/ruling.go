package catalog

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Basis says what a ruling rests on.
type Basis uint8

// The bases. The zero value is none, and no ruling has it.
const (
	_               Basis = iota
	OperatorProven        // a person answered at a terminal
	OperatorClaimed       // whoever ran the command said to be a person, and no terminal could show it
	AgentsOwn             // an agent made a tool stricter for itself
)

var basisNames = []string{"", "operator-proven", "operator-claimed", "agent"}

// String returns "operator-proven", "operator-claimed" or "agent".
func (b Basis) String() string { return word(basisNames, b) }

// MarshalText writes the words of String. It does not fail.
func (b Basis) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads the words of String and refuses every other.
func (b *Basis) UnmarshalText(text []byte) error { return parseWord(basisNames, "basis", text, b) }

// Ruling says who gave an entry its class, and how long and for which definition of the tool that holds. Its moments
// are written in UTC to the second, such as 2026-11-29T10:00:00Z: so they compare as text.
type Ruling struct {
	By    string `json:"by"`
	At    string `json:"at"`
	Until string `json:"until,omitempty"` // from then on the ruling is void; empty means that it does not expire
	Basis Basis  `json:"basis"`
	// Fingerprint binds the ruling to the tool as it was defined then. Nil binds it to nothing but the name.
	Fingerprint *Fingerprint `json:"fingerprint,omitempty"`
}

const maxByLength = 128

func (e *Entry) checkRuling() error {
	r := e.Ruling
	if r == nil {
		return nil
	}
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	switch {
	case r.By == "" || len(r.By) > maxByLength || strings.ContainsFunc(r.By, unprintable):
		return fmt.Errorf("a ruling needs \"by\": one line of at most %d bytes", maxByLength)
	case r.Basis == 0 || int(r.Basis) >= len(basisNames):
		return fmt.Errorf("a ruling needs \"basis\": one of %q", basisNames[1:])
	case !isMoment(r.At):
		return errors.New(`a ruling needs "at": a moment in UTC such as 2026-11-29T10:00:00Z`)
	case r.Until != "" && (!isMoment(r.Until) || r.Until <= r.At):
		return errors.New(`"until" of a ruling is a moment in UTC after "at", such as 2026-12-29T10:00:00Z`)
	case r.Until != "" && e.Class != ReadOnly:
		return errors.New("only a ruling of read_only expires: else a tool would become laxer by itself")
	case r.Basis == AgentsOwn && e.Class != Mutating:
		return errors.New("an agent may rule mutating alone")
	}
	return nil
}

// isMoment knows the form and rough sense of a moment. The package has no calendar, so February has 31 days here.
func isMoment(text string) bool {
	const form = "0000-00-00T00:00:00Z"
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		digit := '0' <= text[i] && text[i] <= '9'
		if isDigit := form[i] == '0'; isDigit != digit || !isDigit && text[i] != form[i] {
			return false
		}
	}
	month, day := text[5:7], text[8:10]
	return "01" <= month && month <= "12" && "01" <= day && day <= "31" &&
		text[11:13] <= "23" && text[14:16] <= "59" && text[17:19] <= "60"
}

// AsOf returns the catalogue as it stands at a moment in UTC, such as 2026-11-29T10:00:00Z: rulings that have expired by
// then are void, as in [Catalog.WithFingerprints]. It fails when the moment is written in another form.
func (c *Catalog) AsOf(moment string) (*Catalog, error) {
	if !isMoment(moment) {
		return nil, fmt.Errorf("%q is not a moment in UTC such as 2026-11-29T10:00:00Z", moment)
	}
	return c.void(func(e *listed) string {
		if r := e.Ruling; r != nil && r.Until != "" && r.Until <= moment {
			return fmt.Sprintf("%s expired on %s", r.title(), r.Until)
		}
		return ""
	}), nil
}

// WithFingerprints returns the catalogue as it stands for tools of which the definitions are known: a ruling that is
// bound to another definition of a tool is void. Then the tool has the class that it has without the ruling if that is
// mutating, else it is unknown, and the reason of its verdict says what changed. A tool that is not among them keeps its
// ruling, since a missing definition is no changed one.
func (c *Catalog) WithFingerprints(current map[Name]Fingerprint) *Catalog {
	changed := map[*listed]string{}
	for name, now := range current {
		e := c.find(name)
		if e == nil || e.Ruling == nil || e.Ruling.Fingerprint == nil {
			continue
		}
		if parts := now.Changed(*e.Ruling.Fingerprint); len(parts) > 0 {
			changed[e] = fmt.Sprintf("%s was on another definition of the tool, which has a new %s now",
				e.Ruling.title(), strings.Join(parts, ", "))
		}
	}
	return c.void(func(e *listed) string { return changed[e] })
}

// WithDefinitions is [Catalog.WithFingerprints] for whole definitions, and heeds what a tool says of itself: one that
// denies being read-only is unknown, even if the catalogue lists it as read_only, unless a ruling was made on just this
// definition. No definition makes a tool laxer. It fails when a definition is not valid JSON.
func (c *Catalog) WithDefinitions(current map[Name]Definition) (*Catalog, error) {
	fingerprints := make(map[Name]Fingerprint, len(current))
	for name, d := range current {
		f, err := d.Fingerprint()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fingerprints[name] = f
	}
	c = c.WithFingerprints(fingerprints)
	suspect := map[*listed]bool{}
	for name, d := range current {
		e := c.find(name)
		if e != nil && e.Class == ReadOnly && d.DeniesReadOnly() && (e.Ruling == nil || e.Ruling.Fingerprint == nil) {
			suspect[e] = true
		}
	}
	return c.void(func(e *listed) string {
		if suspect[e] {
			return "the catalogue lists the tool as read_only, but the tool says of itself that it is not"
		}
		return ""
	}), nil
}

func (r *Ruling) title() string {
	return fmt.Sprintf("the ruling of %s by %s", r.At[:len("2026-11-29")], r.By)
}

// void returns a copy in which every entry that has a reason says nothing but that it is void.
func (c *Catalog) void(why func(*listed) string) *Catalog {
	layers, found := make([][]*listed, len(c.layers)), false
	for i, layer := range c.layers {
		for _, e := range layer {
			if reason := why(e); reason != "" && e.Void == "" {
				v := *e
				v.Class, v.Kind, v.Scope, v.When, v.Void = Unknown, Ordinary, Anywhere, nil, reason
				e, found = &v, true
			}
			layers[i] = append(layers[i], e)
		}
	}
	if !found {
		return c
	}
	return build(layers, c.aliases, c.machines)
}
