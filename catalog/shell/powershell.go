package shell

import (
	"maps"
	"slices"
	"strings"
)

func (r *reader) powerShell(text string) {
	p := psParser{text: []rune(text)}
	commands := p.commands(0)
	r.psCommands(commands)
	if p.failed {
		r.found.unresolved("a command line cannot be parsed")
	}
}

func (r *reader) psCommands(commands []psCommand) {
	for _, c := range commands {
		for _, file := range c.into {
			r.writes(file.text)
		}
		if len(c.words) > 0 {
			r.psCommand(c)
		}
	}
}

// psInner reads what stands in braces and brackets, where and when it runs being here and now.
func (r *reader) psInner(words []psWord) {
	for _, w := range words {
		r.psCommands(w.inner)
	}
}

func (r *reader) psCommand(c psCommand) {
	if !r.step(1 + len(c.words)/wordChunk) {
		return
	}
	first := c.words[0]
	switch lower := strings.ToLower(first.text); {
	case len(c.words) > 1 && strings.HasSuffix(c.words[1].text, "=") && strings.HasPrefix(first.text, string(hole)) && !c.called:
		r.psInner(c.words[:1])
		if name, ok := strings.CutPrefix(strings.ToUpper(first.variable), "ENV:"); ok {
			r.sets(name)
		}
		r.psAssigned(c.words[2:])
	case first.block || psKeywords[lower] && !c.called && !first.quoted:
		r.psStatement(c.words)
	case c.called || isCommandName(first):
		r.psCall(c)
	default:
		r.psInner(c.words)
		r.psExpression(c.words)
	}
}

// psAssigned reads what is assigned to a variable: a value, or what a command writes.
func (r *reader) psAssigned(words []psWord) {
	if len(words) > 0 {
		r.psCommand(psCommand{words: words})
	}
}

func isCommandName(w psWord) bool {
	if w.quoted || w.text == "" {
		return false
	}
	return !strings.ContainsRune("[!-+@,\"'"+string(hole)+"0123456789", []rune(w.text)[0])
}

var psKeywords = set(`if elseif else foreach for while do until switch try catch finally function filter return param begin process end
	throw exit trap using class enum data in break continue dynamicparam clean`)

// psStatement reads a statement that begins with a keyword. Behind each of its blocks, another command may begin.
func (r *reader) psStatement(words []psWord) {
	start := 0
	flush := func(end int) {
		if start < end {
			r.psCommand(psCommand{words: words[start:end]})
		}
	}
	named := false
	for i, w := range words {
		switch lower := strings.ToLower(w.text); {
		case w.block:
			flush(i)
			r.psCommands(w.inner)
			start = i + 1
		case i == start && !named && !w.quoted && psKeywords[lower]:
			start = i + 1
			named = lower == "function" || lower == "filter"
		case named:
			start, named = i+1, false
		}
	}
	flush(len(words))
}

// psExpression looks for methods, which can start anything.
func (r *reader) psExpression(words []psWord) {
	for _, w := range words {
		object, _, called := strings.Cut(w.text, "(")
		if !called || w.quoted {
			continue
		}
		if kind, ok := strings.CutPrefix(object, "["); ok {
			kind, _, _ = strings.Cut(strings.ToLower(kind), "]")
			if psPlainTypes[strings.TrimPrefix(kind, "system.")] {
				continue
			}
		}
		r.unknownCode("a method is called, and what it does is not known")
	}
}

var psPlainTypes = set("math string datetime datetimeoffset timespan guid int int32 int64 double convert environment io.path char regex version uri text.encoding array")

// psArguments are the parameters and operands of a cmdlet.
type psArguments struct {
	named    map[string]psWord
	operands []psWord
	blocks   []psWord
}

func psParse(words []psWord) psArguments {
	a := psArguments{named: map[string]psWord{}}
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, value, attached := strings.Cut(strings.ToLower(w.text), ":")
		switch {
		case w.block:
			a.blocks = append(a.blocks, w)
		case w.quoted || len(w.text) < 2 || !isDash([]rune(w.text)[0]):
			a.operands = append(a.operands, w)
		case attached && value != "":
			w.text = w.text[len(name)+1:]
			a.named[strings.TrimLeft(name, dashes)] = w
		case i+1 < len(words) && !words[i+1].block && (words[i+1].quoted || words[i+1].text == "" || !isDash([]rune(words[i+1].text)[0])):
			a.named[strings.TrimLeft(name, dashes)] = words[i+1]
			i++
		default:
			a.named[strings.TrimLeft(name, dashes)] = psWord{}
		}
	}
	return a
}

const dashes = "-–—―"

func isDash(r rune) bool { return strings.ContainsRune(dashes, r) }

// get returns a parameter, whose name PowerShell lets one cut short. It refuses to run what gives one twice.
func (a psArguments) get(names ...string) (psWord, bool) {
	given := slices.Sorted(maps.Keys(a.named))
	for _, name := range names {
		for _, short := range given {
			if short == name || len(short) > 1 && strings.HasPrefix(name, short) {
				return a.named[short], true
			}
		}
	}
	return psWord{}, false
}

var psAliases = map[string]string{
	"icm": "invoke-command", "etsn": "enter-pssession", "nsn": "new-pssession", "iex": "invoke-expression", "saps": "start-process",
	"start": "start-process", "iwr": "invoke-webrequest", "irm": "invoke-restmethod", "%": "foreach-object", "?": "where-object",
	"where": "where-object", "foreach": "foreach-object", "gci": "get-childitem", "dir": "get-childitem", "gc": "get-content",
	"gi": "get-item", "gps": "get-process", "gsv": "get-service", "select": "select-object", "sls": "select-string",
	"measure": "measure-object", "ft": "format-table", "fl": "format-list", "gwmi": "get-wmiobject", "gcim": "get-ciminstance",
	"iwmi": "invoke-wmimethod", "icim": "invoke-cimmethod", "exsn": "exit-pssession", "cnsn": "connect-pssession",
}

// psReads are the verbs of cmdlets that only read, by the rules for verbs that PowerShell warns whoever breaks.
var psReads = set("get test measure select where sort group format compare resolve find search show convertto convertfrom join split write read")

func (r *reader) psCall(c psCommand) {
	first, rest := c.words[0], c.words[1:]
	name, ok := programName(first.word)
	if !ok || first.piped {
		r.psInner(c.words)
		r.unknownCode("which program runs stands in a variable")
		return
	}
	if full, ok := psAliases[name]; ok {
		name = full
	}
	args := psParse(rest)
	switch name {
	case "invoke-command":
		r.psInvoke(args)
		return
	case "enter-pssession", "new-pssession", "connect-pssession", "new-cimsession", "restart-computer", "stop-computer":
		r.psInner(rest)
		if !r.psMachines(args, true, (*reader).changes) {
			r.changes()
		}
		return
	case "invoke-expression":
		r.psInner(rest)
		if text, given := args.get("command"); given {
			args.operands = append(args.operands, text)
		}
		if len(args.operands) != 1 {
			r.unknownCode("a shell runs code that is not known here")
			return
		}
		r.code(args.operands[0].text, PowerShell)
		return
	}
	r.psInner(rest)
	switch name {
	case "start-process":
		r.psStart(args)
	case "invoke-webrequest", "invoke-restmethod":
		r.psRequest(args)
	case "curl", "wget":
		r.psRequest(args) // an old PowerShell has its own programs of these names
		r.psOther(name, c, args)
	default:
		r.psOther(name, c, args)
	}
}

// psInvoke reads Invoke-Command, whose block runs on the machines it names.
func (r *reader) psInvoke(args psArguments) {
	_, fromFile := args.get("filepath")
	act := func(there *reader) {
		for _, block := range args.blocks {
			there.psCommands(block.inner)
		}
		if block, given := args.get("scriptblock"); given && block.text != "" {
			there.psCommands(block.inner)
			there.changes() // it runs a block that stands elsewhere
		}
		if fromFile || len(args.blocks) == 0 {
			there.changes()
		}
	}
	r.psInner(args.operands)
	if !r.psMachines(args, true, act) {
		act(r)
	}
}

// psMachines acts on the machines that a cmdlet names, and reports whether it names any, or may.
func (r *reader) psMachines(args psArguments, positional bool, act func(there *reader)) bool {
	if _, given := args.get("session", "cimsession", "tosession", "fromsession", "connectionuri", "vmid", "containerid", "sshconnection"); given {
		act(r)
		r.found.unresolved(noMachine)
		return true
	}
	value, given := args.get("computername", "cn", "hostname", "vmname", "servername")
	if !given && positional && len(args.operands) > 0 {
		value, given = args.operands[0], true
	}
	if !given {
		return false
	}
	for name := range strings.SplitSeq(value.text, ",") {
		if !r.step(1) {
			break
		}
		if name == "." || strings.EqualFold(name, "localhost") {
			act(r)
			continue
		}
		machine, ok := hostName(name)
		if !ok || !value.known() || len(value.inner) > 0 {
			act(r)
			r.found.unresolved(noMachine)
			continue
		}
		act(r.at(machine))
	}
	return true
}

func (r *reader) psStart(args psArguments) {
	program, given := args.get("filepath")
	operands := args.operands
	if !given && len(operands) > 0 {
		program, operands = operands[0], operands[1:]
	}
	list, given := args.get("argumentlist", "args")
	if !given && len(operands) > 0 {
		list = operands[0]
	}
	words := []word{program.word}
	for text := range strings.FieldsFuncSeq(list.text, func(c rune) bool { return c == ',' || c == ' ' }) {
		words = append(words, plain(text))
	}
	r.run(command{words: words})
}

func (r *reader) psRequest(args psArguments) {
	url, given := args.get("uri")
	if !given && len(args.operands) > 0 {
		url = args.operands[0]
	}
	method, given := args.get("method", "custommethod")
	sends := given && !strings.EqualFold(method.text, "get") && !strings.EqualFold(method.text, "head")
	if _, body := args.get("body", "infile", "form"); body {
		sends = true
	}
	r.request([]word{url.word}, sends)
	if _, file := args.get("outfile"); file || !r.onAgents() {
		r.changes()
	}
}

// psOther reads a cmdlet that is not known by itself, or a program.
func (r *reader) psOther(name string, c psCommand, args psArguments) {
	verb, noun, cmdlet := strings.Cut(name, "-")
	_, external := reads[name]
	if !cmdlet || external || special(name) != nil || wrappers[name].operands > 0 {
		words := make([]word, len(c.words))
		for i, w := range c.words {
			words[i] = w.word
		}
		r.run(command{words: words})
		return
	}
	reading := psReads[verb] && noun != "evtlog" || verb == "out" && noun != "file" && noun != "printer" || verb == "foreach" || name == "set-location"
	act := (*reader).changes
	if reading {
		act = func(*reader) {}
	}
	switch {
	case psUndo[name] || name == "set-vm" && hasParameter(args, "snapshot"):
		r.found.unresolved(undoes)
	case psMarks[name] || reading && r.onAgents() && strings.HasPrefix(noun, "vm"):
	case noun == "vm" || noun == "vmguest" || hasParameter(args, "vm", "vmname"):
		if !reading {
			r.psVM(args)
		}
	case r.psMachines(args, false, act):
	case !reading && (strings.HasPrefix(noun, "az") || strings.HasPrefix(noun, "ec2") || strings.HasPrefix(noun, "gce") || strings.HasPrefix(noun, "scvm")):
		r.found.unresolved(notNamed)
	default:
		act(r)
		if !reading {
			r.psReach(args)
		}
	}
}

var (
	psUndo = set(`restore-vmsnapshot restore-vmcheckpoint remove-vmsnapshot remove-vmcheckpoint remove-snapshot remove-scvmcheckpoint
		restore-scvmcheckpoint restore-computer`)
	psMarks = set("checkpoint-vm new-snapshot new-scvmcheckpoint")
)

func hasParameter(args psArguments, names ...string) bool {
	for _, name := range names {
		if _, ok := args.named[name]; ok {
			return true
		}
	}
	return false
}

// psVM reads a cmdlet that changes a machine of a hypervisor. Its -ComputerName is the hypervisor.
func (r *reader) psVM(args psArguments) {
	value, given := args.get("vm", "vmname", "name")
	if !given && len(args.operands) > 0 {
		value, given = args.operands[0], true
	}
	if !given || len(value.inner) > 0 {
		r.found.unresolved(noMachine)
		return
	}
	for name := range strings.SplitSeq(value.text, ",") {
		if !r.step(1) {
			return
		}
		r.vm(plain(name), true)
	}
}

// psReach looks for a file on another machine of Windows, and for a program that is to be started.
func (r *reader) psReach(args psArguments) {
	for _, w := range slices.AppendSeq(slices.Clone(args.operands), maps.Values(args.named)) {
		if isNetworkPath(w.text) {
			r.found.unresolved("a command may write to a network path")
		}
		if w.splits {
			r.found.unresolved(noMachine)
		}
	}
	program, _ := args.get("execute")
	if name, ok := programName(program.word); ok && (reaches(name) || shells[name]) {
		r.found.unresolved("a program is given the name of another one that reaches other machines")
	}
}

func isNetworkPath(text string) bool {
	return strings.HasPrefix(text, `\\`) && len(text) > 2 && text[2] != '?'
}

// powerShellProgram reads PowerShell as a program.
func (r *reader) powerShellProgram(c command) {
	args := c.args()
	for i, w := range args {
		lower := strings.ToLower(w.text)
		switch option := strings.TrimLeft(lower, "-/"); {
		case w.splits, strings.HasPrefix(lower, string(hole)):
			r.unknownCode("what a shell runs cannot be told from its options")
			return
		case option == lower:
			if i == 0 || !psTakesValue(args[i-1].text) {
				r.psScript(args[i:])
				return
			}
		case option == "c" || len(option) > 2 && strings.HasPrefix("command", option):
			if code := join(args[i+1:]); code != "-" {
				r.code(code, PowerShell)
				return
			}
		case strings.HasPrefix(option, "e") && option != "executionpolicy" && !strings.HasPrefix("executionpolicy", option) || option == "ec" || option == "e":
			r.unknownCode("a shell runs code in a form that is not read here")
			return
		case option == "f" || option == "file":
			r.changes()
			return
		case option == "version" || option == "help" || option == "?":
			return
		}
	}
	r.unknownCode("a shell runs code that another program writes")
}

func psTakesValue(option string) bool {
	option = strings.TrimLeft(strings.ToLower(option), "-/")
	switch option {
	case "ex", "exec", "executionpolicy", "ep", "w", "windowstyle", "wd", "workingdirectory", "outputformat", "of", "inputformat", "if", "psconsolefile", "configurationname":
		return true
	}
	return false
}

// psScript reads what stands behind the options: the file of a script, or, for Windows PowerShell, code.
func (r *reader) psScript(words []word) {
	r.changes()
	if !strings.HasSuffix(strings.ToLower(words[0].text), ".ps1") {
		r.code(join(words), PowerShell)
	}
}
