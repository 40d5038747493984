package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Target is one machine as a call names it: a name, an address or an id. It is what the caller wrote, not proof that
// such a machine exists; an alias from the server's own settings may stand here too.
type Target struct {
	Arg   string `json:"arg,omitempty"` // argument that named it; empty for a server's default machine
	Value string `json:"value"`
	Node  string `json:"node,omitempty"` // node part of a selector
}

// largestExactFloat is the largest integer up to which every integer has its own float64.
const largestExactFloat = 1 << 53

// readTargets fills the target fields. Whatever it cannot read with certainty makes the whole target unknown.
func (r *Result) readTargets(e *Entry, args map[string]any, defaultMachine string) {
	for _, arg := range e.Indirect {
		if _, state := argument(args, arg); state != missing {
			r.unknownTarget(arg, "stands for a machine that the call does not show")
		}
	}
	r.Containers = r.readArguments(e.Container, NameForm, args)
	r.Targets = r.readArguments(e.Target, e.Form, args)
	if len(r.Targets) == 0 && r.TargetProblem == "" {
		switch {
		case args == nil:
			r.TargetProblem = "the arguments of the call are not known"
		case e.ServerDefault && defaultMachine != "":
			r.Targets = []Target{{Value: defaultMachine}}
		case e.ServerDefault:
			r.TargetProblem = "the call names no machine, and the server's own default is not known"
		default:
			r.TargetProblem = "the call names no machine"
		}
	}
	r.TargetKnown = r.TargetProblem == ""
}

func (r *Result) readArguments(names []string, form Form, args map[string]any) []Target {
	var targets []Target
	for _, arg := range names {
		value, state := argument(args, arg)
		switch state {
		case missing:
			continue
		case garbled:
			r.unknownTarget(arg, "is not known, or spelled in more than one way")
			continue
		}
		texts, ok := texts(value)
		if !ok {
			r.unknownTarget(arg, "is neither text, nor a whole number, nor a list of these")
		}
		for _, text := range texts {
			t, problem := readTarget(text, form)
			if problem != "" {
				r.unknownTarget(arg, problem)
				continue
			}
			t.Arg = arg
			targets = append(targets, t)
		}
	}
	return targets
}

// unknownTarget keeps the first problem: one is enough to stop, and the first is the one to mend first.
func (r *Result) unknownTarget(arg, problem string) {
	if r.TargetProblem == "" {
		r.TargetProblem = fmt.Sprintf("argument %q %s", arg, problem)
	}
}

// texts returns the members of a text, a comma list, a whole number or an array of these. It is false for any other
// value and for an empty array.
func texts(value any) ([]string, bool) {
	switch v := value.(type) {
	case []any:
		var all []string
		for _, item := range v {
			text, ok := scalar(item)
			if !ok {
				return nil, false
			}
			all = append(all, commaList(text)...)
		}
		return all, len(all) > 0
	case []string:
		var all []string
		for _, item := range v {
			all = append(all, commaList(item)...)
		}
		return all, len(all) > 0
	}
	text, ok := scalar(value)
	if !ok {
		return nil, false
	}
	return commaList(text), true
}

func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		_, err := strconv.ParseUint(v.String(), 10, 64)
		return v.String(), err == nil
	case float64:
		return strconv.FormatFloat(v, 'f', 0, 64), v == math.Trunc(v) && 0 <= v && v <= largestExactFloat
	case int:
		return strconv.Itoa(v), v >= 0
	case int64:
		return strconv.FormatInt(v, 10), v >= 0
	}
	return "", false
}

func commaList(text string) []string {
	members := strings.Split(text, ",")
	for i := 1; i < len(members); i++ {
		members[i] = strings.TrimPrefix(members[i], " ")
	}
	return members
}

// readTarget reads the name of one machine. The problem is empty exactly when it could.
func readTarget(text string, form Form) (t Target, problem string) {
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" || addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() {
			return Target{}, "holds an address that belongs to no one machine"
		}
		return Target{Value: text}, ""
	}
	name, node := text, ""
	if i := strings.IndexAny(text, ":/"); form == SelectorForm && i >= 0 {
		node, name = text[:i], text[i+1:]
		if !plainName(node) {
			return Target{}, "holds a selector that cannot be read"
		}
	}
	switch {
	case !plainName(name):
		return Target{}, "holds a pattern, or something that is not the name of one machine"
	case form != NameForm && strings.Contains(name, " "):
		return Target{}, "holds a list or a pattern"
	case form == PatternForm && !strings.Contains(strings.Trim(name, "."), "."):
		return Target{}, "holds a bare word, which may be a group of machines: give the full host name or the address"
	}
	switch strings.ToLower(name) {
	case "all", "any", "ungrouped":
		return Target{}, "holds the name of a group of machines"
	case "localhost", "localhost.localdomain":
		return Target{}, "holds the machine that the server itself runs on"
	}
	return Target{Value: name, Node: node}, ""
}

// plainName reports whether text can only be the name or id of one thing: no pattern, no user, no port, no path, no
// option, no variable, and no character that two programs could read in two ways.
func plainName(text string) bool {
	if text == "" || !utf8.ValidString(text) || strings.TrimSpace(text) != text || text[0] == '-' {
		return false
	}
	letters := false
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			letters = true
		case !strings.ContainsRune("-_. ()#+", r):
			return false
		}
	}
	return letters
}
