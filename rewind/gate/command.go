package gate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// CommandReader says what a command line does, so that it is judged as any other call is. The shell package of the
// catalogue has one.
type CommandReader interface {
	// ReadCommand reads the command line for a host's shell tool, by the tool's name in the catalogue. Of the result, the
	// targets are machines that the line changes, all of them only if TargetKnown is true. With a TargetProblem, there
	// may be more to the line than the result says. The scope is Local if it addresses no machine but the agent's own.
	// Neither reason quotes the line. The zero result is that of a line of which nothing is known.
	ReadCommand(tool, line string) catalog.Result
}

// shell finds out what a call of a shell is by its command line.
func (g *Gate) shell(call Call, tool *catalog.Entry) step {
	line, ok := tool.CommandLine(call.Args)
	if ok && call.Name.Tool == "Bash" {
		switch readCommand(line) {
		case localRead:
			return step{free, Verdict{Decision: NoOpinion, Class: catalog.ReadOnly, Reason: "The command only reads the agent's own machine."}, catalog.Result{}}
		case guardsVMs:
			return step{harmless, Verdict{Decision: Allow, Class: catalog.Mutating, Reason: "The command guards VMs and changes nothing else."}, catalog.Result{}}
		}
	}
	if !ok || g.policy.Commands == nil {
		return call.ask(catalog.Result{}, "A shell can reach any machine, and what this command line does is not known.")
	}
	return call.read(g.policy.Commands.ReadCommand(tool.Tool, line))
}

// read takes a command line that was read for what it does. A machine that it certainly changes needs its guard even if
// the rest of the line cannot be told: else a line would become laxer by what is put behind it.
func (c Call) read(r catalog.Result) step {
	v := Verdict{Class: r.Class, Reason: c.sentence(r.Reason)}
	open := r.TargetProblem != ""
	switch {
	case len(r.Targets) > 0:
		return step{changing, v, r}
	case !open && r.Scope == catalog.Local:
		v.Decision = NoOpinion
		return step{free, v, r}
	case !open && r.Safe():
		v.Decision = Allow
		return step{free, v, r}
	case open:
		return c.ask(r, "What its command line does cannot be told: "+r.TargetProblem+".")
	}
	return c.ask(r, "What its command line does is not known.")
}

// commandKind is what is known of a command line. The zero value is nothing.
type commandKind int

const (
	unreadCommand commandKind = iota
	localRead                 // reads the agent's own machine, and nothing else
	guardsVMs                 // inserts tagged checkpoints, and nothing else
)

// localReaders can, with whatever options, neither write, nor start another program, nor reach another machine. So
// neither sort, which writes with -o, nor find, nor git, whose settings name programs to start, is one.
var localReaders = []string{
	"basename", "cat", "cut", "df", "dirname", "du", "echo", "grep", "head", "id", "ls", "nl", "pwd", "readlink",
	"realpath", "stat", "tail", "true", "uname", "wc", "whoami",
}

// protectOptions are the options of "zerto-rewind protect" that change neither the ZVM it talks to nor how.
var protectOptions = []string{"--action", "--change", "--agent", "--json", "--timeout"}

// readCommand knows the few command lines that need no shell parser. It is sure, or it says unreadCommand.
func readCommand(line string) commandKind {
	words, plain := plainWords(line)
	if !plain || len(words) == 0 {
		return unreadCommand
	}
	switch {
	case slices.Contains(localReaders, words[0]):
		return localRead
	case words[0] == "zerto-rewind" && len(words) > 2 && words[1] == "protect" &&
		!slices.ContainsFunc(words[2:], strangeOption) && !lacksValue(words[len(words)-1]):
		return guardsVMs
	}
	return unreadCommand
}

func strangeOption(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return strings.HasPrefix(word, "-") && !slices.Contains(protectOptions, name)
}

// lacksValue reports whether a line ends in an option whose value is missing, which is none that guards.
func lacksValue(last string) bool {
	return last != "--json" && strings.HasPrefix(last, "-") && !strings.Contains(last, "=")
}

// plainWords splits one simple command in which nothing is expanded: words of letters, digits and a few signs, and
// words that are quoted as a whole. It is false for every other line.
func plainWords(line string) (words []string, ok bool) {
	if !utf8.ValidString(line) {
		return nil, false
	}
	line = strings.Trim(line, " ")
	for line != "" {
		end := 0
		if quote := line[0]; quote == '\'' || quote == '"' {
			end = strings.IndexByte(line[1:], quote) + 2
			if end < 2 || strings.ContainsAny(line[1:end-1], "$`\\!") || !isPrintable(line[1:end-1]) {
				return nil, false
			}
			words = append(words, line[1:end-1])
		} else {
			if end = strings.IndexByte(line, ' '); end < 0 {
				end = len(line)
			}
			if strings.ContainsFunc(line[:end], notPlain) {
				return nil, false
			}
			words = append(words, line[:end])
		}
		rest := strings.TrimLeft(line[end:], " ")
		if rest != "" && len(rest) == len(line[end:]) {
			return nil, false // two quoted parts of one word
		}
		line = rest
	}
	return words, true
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func notPlain(r rune) bool {
	return !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=,+@", r))
}

// quoted writes a word so that a shell, and plainWords, read it as it is.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, notPlain) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
