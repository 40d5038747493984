package shell

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// Dialect is the language of a command line.
type Dialect uint8

// The dialects. Bash is the zero value and stands for every shell in the tradition of the Bourne shell.
const (
	Bash Dialect = iota
	PowerShell
)

// Machine is another machine than the agent's own, as a command line addresses it.
type Machine struct {
	// Name is a host name, an address, or the name or number under which a hypervisor knows the machine.
	Name string
	// Changed is false when the line only reads there.
	Changed bool
}

// Reading is what a command line does. The zero value is that of an empty line.
type Reading struct {
	// Machines are those that the line names, each one once, in the order in which they occur.
	Machines []Machine
	// ChangesLocal reports whether the line may change the machine that the agent runs on.
	ChangesLocal bool
	// Unresolved says why there may be more to the line than the rest of the reading, in a clause that quotes nothing of
	// the line. It is empty when there is not.
	Unresolved string
}

// Local reports whether the line addresses the agent's own machine alone.
func (r Reading) Local() bool { return len(r.Machines) == 0 && r.Unresolved == "" }

// maxLine bounds the lines that are read, in bytes. Far longer ones carry data, which nobody could judge either.
const maxLine = 64 << 10

// Read reads a command line. It runs nothing, looks nothing up, and always returns: what cannot be read is Unresolved.
func Read(line string, dialect Dialect) Reading { return Reader{}.read(line, dialect) }

// Reader reads command lines for a gate. The zero value is ready for use, and it is safe for concurrent use.
type Reader struct {
	// LocalVM is the name of the machine that the agent runs on. Where it is empty, that machine is nobody's business.
	LocalVM string
}

// ReadCommand reads a command line for the shell tool of an agent host, by the name the host gives the tool. A tool
// whose dialect depends on the machine gets the stricter of both readings.
//
// Of the result only the class, the scope, the targets and the problem with them are set. The targets are the machines
// that the line changes. They are there even when TargetKnown is false, and are then not all.
func (r Reader) ReadCommand(tool, line string) catalog.Result {
	switch tool {
	case "Bash":
		return r.read(line, Bash).result()
	case "PowerShell":
		return r.read(line, PowerShell).result()
	}
	reading := r.read(line, Bash)
	reading.add(r.read(line, PowerShell))
	return reading.result()
}

func (r Reader) read(line string, dialect Dialect) (reading Reading) {
	defer func() {
		if recover() != nil {
			reading.unresolved("the command line could not be read")
		}
	}()
	// What can be read of a line that is given up counts, or a line would become laxer by what is put behind it.
	if len(line) > maxLine {
		reading.unresolved("the command line is too long to be read")
		line = line[:maxLine]
	}
	if strings.ContainsFunc(line, strange) {
		reading.unresolved("the command line holds a character that no command line needs")
		line = strings.Map(func(r rune) rune {
			if strange(r) {
				return hole
			}
			return r
		}, line)
	}
	newReader(&reading, r.LocalVM).code(line, dialect)
	return reading
}

// strange reports whether a character has no place in a command line. The parser takes some control characters for the
// end of the text, and what stands behind one would go unseen. Invalid UTF-8 comes as U+FFFD.
func strange(r rune) bool {
	return r == hole || r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r)
}

func (r *Reading) unresolved(why string) {
	if r.Unresolved == "" {
		r.Unresolved = why
	}
}

func (r *Reading) address(name string, changed bool) {
	i := slices.IndexFunc(r.Machines, func(m Machine) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		r.Machines = append(r.Machines, Machine{name, changed})
		return
	}
	r.Machines[i].Changed = r.Machines[i].Changed || changed
}

func (r *Reading) add(other Reading) {
	for _, m := range other.Machines {
		r.address(m.Name, m.Changed)
	}
	r.ChangesLocal = r.ChangesLocal || other.ChangesLocal
	if other.Unresolved != "" {
		r.unresolved(other.Unresolved)
	}
}

func (r Reading) result() catalog.Result {
	var result catalog.Result
	for _, m := range r.Machines {
		if m.Changed {
			result.Targets = append(result.Targets, catalog.Target{Value: m.Name})
		}
	}
	result.TargetProblem = r.Unresolved
	result.TargetKnown = len(result.Targets) > 0 && r.Unresolved == ""
	switch {
	case len(result.Targets) > 0:
		result.Class, result.Reason = catalog.Mutating, "the command line changes another machine"
	case r.Unresolved != "":
		result.Reason = r.Unresolved
	case len(r.Machines) > 0:
		result.Class, result.Reason = catalog.ReadOnly, "the command line only reads on other machines"
	case r.ChangesLocal:
		result.Class, result.Reason = catalog.Mutating, "the command line addresses no other machine"
	default:
		result.Class, result.Reason = catalog.ReadOnly, "the command line only reads the agent's own machine"
	}
	if r.Local() {
		result.Scope = catalog.Local
	}
	return result
}
