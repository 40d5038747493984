package catalog

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Document is all that a catalogue file says: what tools are, and what a person chose about verdicts on them.
type Document struct {
	Catalog *Catalog
	Policy  Policy
	// VMAliases are a user's own names for VMs: as a tool call may write one, and the VM that it means at the ZVM. No
	// two of the former differ only in case.
	VMAliases map[string]string
}

// OnMutating says what a gate does about a mutating call without a guard.
type OnMutating uint8

// The choices. Require is the zero value.
const (
	Require    OnMutating = iota // refuse, and say which call makes the guard
	GuardFirst                   // make the guard, and refuse only if that fails
)

var onMutatingNames = []string{"require", "guard"}

// String returns "require" or "guard".
func (o OnMutating) String() string { return word(onMutatingNames, o) }

// MarshalText writes the words of String. It does not fail.
func (o OnMutating) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the words of String and refuses every other.
func (o *OnMutating) UnmarshalText(text []byte) error {
	return parseWord(onMutatingNames, "onMutating", text, o)
}

// Policy is what can be chosen about verdicts. The zero value leaves everything as it is by default.
type Policy struct {
	OnMutating    OnMutating
	MaxAgeSeconds int    // how old a guard may be that lets a call run; zero means the default
	LocalVM       string // the protected VM that the agent's own machine is, if it is one
}

func (l *loader) policy(n node) {
	l.object(n, fields{
		"onMutating": l.word(&l.doc.Policy.OnMutating),
		"maxAge": func(n node) {
			var text string
			l.text(&text)(n)
			seconds, ok := parseSeconds(text)
			if n.kind == '"' && !ok {
				l.fail(n.at, `maxAge is whole hours, minutes or seconds above zero, such as "30m" or "1h30m"`)
			}
			l.doc.Policy.MaxAgeSeconds = seconds
		},
		"localVM": func(n node) {
			l.text(&l.doc.Policy.LocalVM)(n)
			if _, problem := readTarget(l.doc.Policy.LocalVM, NameForm); n.kind == '"' && problem != "" {
				l.fail(n.at, "localVM %s", problem)
			}
		},
	})
}

func (l *loader) vmAliases(n node) {
	if n.kind != '{' {
		l.fail(n.at, "expected an object")
		return
	}
	l.doc.VMAliases = make(map[string]string, len(n.members))
	for _, m := range n.members {
		var vm string
		l.text(&vm)(m.value)
		for _, name := range []string{m.key, vm} {
			if _, problem := readTarget(name, NameForm); problem != "" && m.value.kind == '"' {
				l.fail(m.at, "alias of a VM %s", problem)
				break
			}
		}
		l.doc.VMAliases[m.key] = vm
	}
	aliases := make(map[string]string, len(n.members))
	for _, m := range n.members {
		aliases[caseless(m.key)] = m.key
	}
	for _, m := range n.members {
		if alias, ok := aliases[caseless(m.value.text)]; ok {
			l.fail(m.at, "the alias stands for another, %q, and not for a VM", alias)
		}
	}
}

// caseless returns the same for two texts exactly when [strings.EqualFold] holds.
func caseless(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, text)
}

// parseSeconds reads numbers with the units h, m and s, the largest first and each at most once.
func parseSeconds(text string) (int, bool) {
	total := 0
	for _, unit := range []struct {
		name    string
		seconds int
	}{{"h", 3600}, {"m", 60}, {"s", 1}} {
		number, rest, found := strings.Cut(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || int(n) > (math.MaxInt32-total)/unit.seconds {
			return 0, false
		}
		total, text = total+int(n)*unit.seconds, rest
	}
	return total, text == "" && total > 0
}
