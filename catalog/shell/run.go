package shell

import "strings"

// command is one program with its arguments, about to run.
type command struct {
	words []word
	// steered means that variables are set for it which may change what it does.
	steered bool
}

func (c command) args() []word { return c.words[1:] }

// with returns the command with other words.
func (c command) with(words ...word) command {
	c.words = words
	return c
}

// A line that needs more than these is given up. Each command is a step, and so are each turn of a loop and each chunk of
// what is read again: of code, of the body of a loop, of the words of a program.
const (
	maxDepth    = 24
	maxBrackets = 1000
	maxSteps    = 4096
	codeChunk   = 64  // bytes
	loopChunk   = 256 // bytes
	wordChunk   = 16
)

// reader follows command lines from one machine to the next. Copies read for another place, with other variables or
// another stdin, into the same reading.
type reader struct {
	found   *Reading
	localVM string
	// place is the machine on which commands run, empty for the agent's own.
	place string
	// stdin is the text that the next program reads, nil if that is not known.
	stdin  *string
	values map[string]string // variables of loops over literal words
	depth  int
	shared *shared
}

// shared is what all copies of a reader know.
type shared struct {
	left    int  // steps until the line is given up
	unbound bool // variables of loops may have other values than the words of their loops
}

func newReader(found *Reading, localVM string) *reader {
	return &reader{found: found, localVM: localVM, place: localVM, shared: &shared{left: maxSteps}}
}

// at returns a reader for commands that run on another machine.
func (r *reader) at(machine string) *reader {
	r.found.address(machine, false)
	inner := *r
	inner.place = machine
	return &inner
}

// onAgents reports whether commands run on the agent's own machine.
func (r *reader) onAgents() bool { return r.place == r.localVM }

// changes notes that something may change where commands run.
func (r *reader) changes() {
	if r.onAgents() {
		r.found.ChangesLocal = true
	}
	if r.place != "" {
		r.found.address(r.place, true)
	}
}

// unknownCode notes that something runs here, and what is not known. Where that is on another machine, the machine that
// may change is known at least.
func (r *reader) unknownCode(why string) {
	r.changes()
	if r.onAgents() {
		r.found.unresolved(why)
	}
}

// code reads a text that a shell runs.
func (r *reader) code(text string, dialect Dialect) {
	inner := *r
	inner.depth++
	if inner.depth > maxDepth {
		r.found.unresolved("command lines are nested too deep to be read")
		return
	}
	// The line itself is read once, and what stands in front of it must not depend on how long it is.
	if inner.depth > 1 && !r.step(len(text)/codeChunk) {
		return
	}
	if strings.ContainsRune(text, hole) {
		r.unknownCode("a shell runs code that is put together from parts not known here")
	}
	if dialect == PowerShell {
		inner.powerShell(text)
		return
	}
	inner.bash(text)
}

// step reports whether a line may be read on.
func (r *reader) step(n int) bool {
	if r.shared.left -= n; r.shared.left < 0 {
		r.found.unresolved("a command line takes more steps than are read")
		return false
	}
	return true
}

// run reads one command.
func (r *reader) run(c command) {
	if !r.step(1+len(c.words)/wordChunk) || len(c.words) == 0 {
		return
	}
	name, ok := programName(c.words[0])
	if !ok {
		r.unknownCode("which program runs stands in a variable")
		return
	}
	if read := special(name); read != nil {
		read(r, c)
		return
	}
	if wrapper, ok := wrappers[name]; ok {
		r.wrapped(wrapper, c)
		return
	}
	r.ordinary(name, c)
}

// ordinary reads a command that reaches no other machine by itself.
func (r *reader) ordinary(name string, c command) {
	if r.isRead(c) {
		return
	}
	r.changes()
	r.startsOther(name, c)
}

// startsOther looks for a program among the arguments of one that is not known: it may start it.
func (r *reader) startsOther(name string, c command) {
	if namesPackages[name] {
		return
	}
	args := c.args()
	for i, w := range args {
		if shells[w.text] && i+1 < len(args) {
			r.run(c.with(args[i:]...))
		}
		if isNetworkPath(w.text) {
			r.found.unresolved("a command may write to a network path")
		}
		if other, ok := programName(w); ok && reaches(other) && i+1 < len(args) {
			r.found.unresolved("a program is given the name of another one that reaches other machines")
			return
		}
	}
	if inlineCode[name] && mentionsReach(r.inline(args)) || patterns[name] && strings.ContainsAny(join(args), "(|") && mentionsReach(r.inline(args)) {
		r.found.unresolved("code in another language mentions a program or library that reaches other machines")
	}
}

// namesPackages take the names of programs as those of packages, services or pages.
var namesPackages = set(`apt apt-get aptitude yum dnf zypper apk pacman brew port snap pip pip3 npm choco winget scoop systemctl service
	man info tldr rg ag ack sed`)

// inlineCode take code in a language of their own, as an argument or on stdin.
var inlineCode = set(`python python2 python3 perl ruby node deno bun php lua tclsh expect osascript make
	crontab`)

// patterns take code that mostly holds patterns, and starts programs only with a bracket or a bar.
var patterns = set("awk gawk mawk nawk")

// inline returns all of a program's code that the line shows.
func (r *reader) inline(args []word) string {
	if r.stdin == nil {
		return join(args)
	}
	return join(args) + " " + *r.stdin
}

func mentionsReach(code string) bool {
	mentioned := strings.FieldsFunc(strings.ToLower(code), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-')
	})
	for _, m := range mentioned {
		if reaches(m) || remoteLibraries[m] {
			return true
		}
	}
	return false
}

var remoteLibraries = set("paramiko fabric asyncssh netmiko pexpect pywinrm winrm pyvmomi proxmoxer libvirt docker kubernetes boto3 net-ssh node-ssh ssh2 spawn")

// programName returns the name by which a program is known, without its folder and without what Windows appends.
func programName(w word) (string, bool) {
	name := strings.ToLower(w.text[strings.LastIndexAny(w.text, `/\`)+1:])
	for _, suffix := range []string{".exe", ".cmd", ".bat", ".com"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name, name != "" && !w.splits && !strings.ContainsRune(name, hole)
}
