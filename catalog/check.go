package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What a host lets through in a name. A host refuses a whole server for one tool name outside these characters; a
// server's key may hold a dot, which the host then rewrites.
const (
	toolNameChars   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	serverNameChars = toolNameChars + "."
	maxNameLength   = 64
)

// maxListed bounds each list of an entry: a file gives its lists to every tool that it names beside them.
const maxListed = 32

// checkEntries reports each problem with the position of its entry in the list. Place is where its reader finds an entry.
func checkEntries(entries []*listed, place func(i int) string, report func(i int, problem error)) {
	claimed := map[string]int{}
	for i, e := range entries {
		if err := e.check(); err != nil {
			report(i, err)
			continue
		}
		for _, key := range e.keys {
			if first, taken := claimed[key]; taken && first != i {
				report(i, fmt.Errorf("%s: described before, as %s in %s; names that a host may spell alike are one name",
					e.shown(), entries[first].shown(), place(first)))
				break
			}
			claimed[key] = i
		}
	}
}

func (e *Entry) check() error {
	problems := []error{e.checkLengths()}
	if problems[0] == nil {
		problems = append(problems, e.checkNames(), e.checkClass(), e.checkArguments(), e.checkRuling())
		for i := range e.When {
			problems = append(problems, e.When[i].check())
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%s: %w", e.shown(), err)
	}
	return nil
}

// shown is the name of an entry that may be invalid, so that it stands in a line and hides nothing.
func (e *Entry) shown() string {
	name := e.Name().String()
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

func (e *Entry) checkLengths() error {
	if max(len(e.Aliases), len(e.When), len(e.Target), len(e.Container), len(e.Indirect), len(e.Command)) > maxListed {
		return fmt.Errorf("more than %d aliases, conditions or arguments of a kind", maxListed)
	}
	return nil
}

func (e *Entry) checkNames() error {
	chars := toolNameChars
	if e.BuiltIn {
		chars = strings.TrimSuffix(chars, "-")
	}
	return cmp.Or(e.checkServer(), checkName("tool", e.Tool, chars))
}

func (e *Entry) checkServer() error {
	if e.BuiltIn {
		if e.Server != "" || len(e.Aliases) > 0 {
			return errors.New("a built-in tool has no server and no aliases")
		}
		return nil
	}
	if err := checkName("server", e.Server, serverNameChars); err != nil {
		return err
	}
	for _, alias := range e.Aliases {
		if err := checkName("server alias", alias, serverNameChars); err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) checkClass() error {
	switch {
	case e.Class > Mutating || e.Kind > Undo || e.Scope > Local || e.Form > SelectorForm:
		return errors.New("class, kind, scope or form is not one of the known")
	case e.Kind != Ordinary && (e.Class != Mutating || len(e.When) > 0):
		return fmt.Errorf("kind %s needs class mutating and no conditions", e.Kind)
	case len(e.When) > 0 && e.Class == ReadOnly:
		return errors.New("an entry with conditions cannot be read_only by itself")
	}
	return nil
}

func (e *Entry) checkArguments() error {
	seen := map[string]bool{}
	for _, arg := range slices.Concat(e.Target, e.Container, e.Indirect) {
		if err := checkName("argument", arg, serverNameChars); err != nil {
			return err
		}
		folded := strings.ToLower(lettersAndDigits(arg))
		if seen[folded] {
			return fmt.Errorf("argument %q is listed twice", arg)
		}
		seen[folded] = true
	}
	for _, arg := range e.Command {
		if err := checkName("argument", arg, serverNameChars); err != nil {
			return err
		}
	}
	return nil
}

func (c *Condition) check() error {
	if err := checkName("argument", c.Arg, serverNameChars); err != nil {
		return err
	}
	tests := 0
	for _, set := range []bool{len(c.In) > 0, c.Is != nil, c.Absent} {
		if set {
			tests++
		}
	}
	if tests != 1 {
		return fmt.Errorf("condition on %q needs exactly one of in, is and absent", c.Arg)
	}
	if c.Class != ReadOnly && c.Class != Mutating {
		return fmt.Errorf("condition on %q needs class read_only or mutating", c.Arg)
	}
	return nil
}

func checkAlias(alias, server string) error {
	return errors.Join(checkName("server alias", alias, serverNameChars), checkName("server", server, serverNameChars))
}

func checkServerDefault(server, machine string) error {
	if err := checkName("server", server, serverNameChars); err != nil {
		return err
	}
	if _, problem := readTarget(machine, NameForm); problem != "" {
		return fmt.Errorf("default machine of server %q: %s", server, problem)
	}
	return nil
}

func checkName(what, name, chars string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s name is empty", what)
	case len(name) > maxNameLength:
		return fmt.Errorf("%s name has %d bytes; hosts take at most %d", what, len(name), maxNameLength)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !strings.ContainsRune(chars, r) }); i >= 0 {
		return fmt.Errorf("%s name %q has a character that hosts refuse: only letters, digits and %q are taken",
			what, name, chars[62:])
	}
	return nil
}

// Name returns the name by which a catalogue finds the entry; a server has others among its aliases.
func (e *Entry) Name() Name { return Name{Server: e.Server, Tool: e.Tool, BuiltIn: e.BuiltIn} }
