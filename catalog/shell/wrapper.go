package shell

import "strings"

// wrapper is a program whose arguments are another one.
type wrapper struct {
	options  grammar
	operands int // words between the options and the program
	assigns  bool
	appends  bool // adds words that the line does not show
	// joins means that a shell reads the words joined.
	joins bool
	// noProgram are options with which it only reads, or starts no other program.
	noProgram []string
	// elsewhere are options that make it run the program on another machine.
	elsewhere []string
	// split are options whose value is a command line.
	split []string
	// writes are options that name a file to write.
	writes []string
}

var wrappers = map[string]wrapper{
	"sudo":             {options: grammar{"aCcDgpRrTtUuh", "--user --group --chdir --close-from --prompt --chroot --role --type --command-timeout --other-user --host"}, assigns: true, noProgram: []string{"-l", "--list", "-v", "--validate", "-V", "--version", "-K"}, elsewhere: []string{"-h", "--host"}},
	"doas":             {options: grammar{"aCu", ""}},
	"env":              {options: grammar{"uCS", "--unset --chdir --split-string"}, assigns: true, split: []string{"-S", "--split-string"}},
	"nohup":            {},
	"time":             {options: grammar{"fo", "--format --output"}, writes: []string{"-o", "--output"}},
	"nice":             {options: grammar{"n", "--adjustment"}},
	"ionice":           {options: grammar{"cnpPu", "--class --classdata"}},
	"timeout":          {options: grammar{"ks", "--kill-after --signal"}, operands: 1},
	"setsid":           {},
	"stdbuf":           {options: grammar{"ioe", "--input --output --error"}},
	"command":          {noProgram: []string{"-v", "-V"}},
	"builtin":          {},
	"exec":             {options: grammar{"a", ""}},
	"noglob":           {},
	"xargs":            {options: grammar{"adEILnPsl", "--arg-file --delimiter --max-args --max-procs --max-chars --replace --max-lines --eof"}, appends: true},
	"parallel":         {options: grammar{"jnNSaCILdPs", "--jobs --arg-file --colsep --sshlogin --sshloginfile --slf --delay --timeout --joblog --results --workdir --retries --max-args"}, appends: true, joins: true, elsewhere: []string{"-S", "--sshlogin", "--sshloginfile", "--slf"}},
	"watch":            {options: grammar{"nq", "--interval"}, joins: true},
	"chrt":             {options: grammar{"TPD", ""}, operands: 1},
	"taskset":          {operands: 1},
	"unbuffer":         {},
	"caffeinate":       {options: grammar{"tw", ""}},
	"sshpass":          {options: grammar{"fdpP", ""}},
	"proxychains":      {options: grammar{"f", ""}},
	"proxychains4":     {options: grammar{"f", ""}},
	"torsocks":         {},
	"chroot":           {options: grammar{"", "--userspec --groups"}, operands: 1},
	"strace":           {options: grammar{"abeEIoOpPsSuUX", "--output"}, writes: []string{"-o", "--output"}},
	"ltrace":           {options: grammar{"aAeFlnopsuwx", "--output"}, writes: []string{"-o", "--output"}},
	"unshare":          {},
	"nsenter":          {options: grammar{"tSG", "--target"}},
	"systemd-run":      {options: grammar{"HMpuEt", "--unit --property --host --machine --setenv --slice --description --on-active --on-calendar --uid --gid"}, elsewhere: []string{"-H", "--host", "-M", "--machine"}},
	"systemd-cat":      {options: grammar{"tp", ""}},
	"busybox":          {},
	"toybox":           {},
	"winpty":           {},
	"rlwrap":           {},
	"xvfb-run":         {},
	"dbus-run-session": {},
	"hyperfine":        {joins: true},
	"entr":             {},
}

func (r *reader) wrapped(w wrapper, c command) {
	options, rest, ok := w.options.leading(c.args())
	if !ok {
		r.unknownCode("which program runs cannot be told from the options of the one that starts it")
		return
	}
	for _, name := range w.split {
		if value, given := valueOf(options, name); given {
			r.code(value.text+" "+join(rest), Bash)
			return
		}
	}
	if has(options, w.elsewhere...) {
		r.found.unresolved(strangeOptions)
	}
	if has(options, w.writes...) {
		r.changes()
	}
	if has(options, w.noProgram...) {
		return
	}
	for w.assigns && len(rest) > 0 && strings.Contains(rest[0].text, "=") && !rest[0].splits {
		variable, _, _ := strings.Cut(rest[0].text, "=")
		r.sets(variable)
		c.steered = c.steered || !harmlessSettings[variable]
		rest = rest[1:]
	}
	for range w.operands {
		if len(rest) == 0 || rest[0].splits {
			r.unknownCode("which program runs cannot be told")
			return
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		r.emptyWrapper(options)
		return
	}
	if w.appends {
		rest = withUnknownArguments(options, rest)
	}
	if w.joins && len(rest) > 0 {
		r.code(join(rest), Bash)
	}
	r.run(c.with(rest...))
}

// emptyWrapper reads a wrapper that is given no program: it prints, or its options make it do something of its own, such
// as to run a shell.
func (r *reader) emptyWrapper(options []option) {
	switch {
	case has(options, "-i", "-s", "--login", "--shell"):
		r.shellOnStdin()
	case len(options) > 0:
		r.changes()
	}
}

// withUnknownArguments puts what xargs and parallel add into the words, at the end and where a placeholder stands.
func withUnknownArguments(options []option, words []word) []word {
	placeholder := "{}"
	if value, given := valueOf(options, "-I", "--replace"); given && value.text != "" {
		placeholder = value.text
	}
	filled := make([]word, 0, len(words)+1)
	for _, w := range words {
		if w.text == ":::" || w.text == "::::" || w.text == ":::+" {
			break
		}
		if strings.Contains(w.text, placeholder) || strings.ContainsAny(w.text, "{") {
			w = word{text: string(hole), splits: true}
		}
		filled = append(filled, w)
	}
	return append(filled, anyWords)
}

var shells = set("bash sh dash zsh ksh mksh ash fish rbash")

var shellOptions = grammar{short: "oO", long: "--rcfile --init-file"}

// shellProgram reads bash, sh and the like as programs.
func (r *reader) shellProgram(c command) {
	options, rest, ok := shellOptions.leading(c.args())
	switch {
	case !ok:
		r.unknownCode("what a shell runs cannot be told from its options")
	case has(options, "-c"):
		if len(rest) == 0 {
			return
		}
		if rest[0].splits {
			r.unknownCode("a shell runs code that is not known here")
			return
		}
		r.code(rest[0].text, Bash)
	case has(options, "--version", "--help"):
	case len(rest) == 0 || has(options, "-s"):
		r.shellOnStdin()
	case rest[0].piped, strings.HasPrefix(rest[0].text, "/dev/"), rest[0].text == "-":
		r.unknownCode("a shell runs code that another program writes")
	default:
		r.changes()
	}
}

func (r *reader) shellOnStdin() {
	if r.stdin == nil {
		r.unknownCode("a shell runs code that another program writes")
		return
	}
	text := *r.stdin
	inner := *r
	inner.stdin = nil
	inner.code(text, Bash)
}

func (r *reader) source(c command) {
	args := c.args()
	if len(args) > 0 && (args[0].piped || strings.HasPrefix(args[0].text, "/dev/")) {
		r.unknownCode("a shell runs code that another program writes")
		return
	}
	r.changes()
}

func (r *reader) eval(c command) {
	if len(c.args()) > 0 {
		r.code(join(c.args()), Bash)
	}
}

// later reads programs that run what stands on their stdin, or in a file, at another time.
func (r *reader) later(c command) {
	options, _, ok := grammar{short: "fqt"}.all(c.args())
	if ok && has(options, "-f", "-l", "-r", "-d", "-c") {
		r.changes()
		return
	}
	r.shellOnStdin()
}

// git runs what its settings name.
func (r *reader) git(c command) {
	options, _, ok := grammar{"cC", "--git-dir --work-tree --namespace --exec-path --config-env"}.leading(c.args())
	if !ok {
		options = nil
	}
	for _, o := range options {
		if _, value, _ := strings.Cut(o.value.text, "="); o.name == "-c" && strings.ContainsAny(value, " !") {
			r.code(strings.TrimPrefix(value, "!"), Bash)
		}
	}
	r.ordinary("git", c)
}

// trap runs its first argument later; alias gives its second half a name, under which any words may follow.
func (r *reader) trap(c command) {
	options, rest, ok := grammar{}.leading(c.args())
	if !ok || len(rest) == 0 || has(options, "-p", "-l") {
		return
	}
	r.code(rest[0].text, Bash)
}

func (r *reader) alias(c command) {
	for _, w := range c.args() {
		if _, text, defines := strings.Cut(w.text, "="); defines {
			r.code(text+" $@", Bash)
		}
	}
}

// find runs programs once it has found files.
func (r *reader) find(c command) {
	args := c.args()
	for i, w := range args {
		switch w.text {
		case "-exec", "-execdir", "-ok", "-okdir":
			var started []word
			for _, part := range args[i+1:] {
				if part.text == ";" || part.text == "+" {
					break
				}
				if strings.Contains(part.text, "{}") {
					part = word{text: string(hole)}
				}
				started = append(started, part)
			}
			if len(started) > 0 {
				r.run(c.with(started...))
			}
			if r.shared.left < 0 {
				return
			}
		}
	}
	runs := false
	for _, w := range args {
		runs = runs || w.splits || strings.HasPrefix(w.text, string(hole)) || findWrites[w.text]
	}
	if runs {
		r.changes()
	}
}

var findWrites = set("-delete -fprint -fprint0 -fprintf -fls")

// terminal reads programs that keep others running, and take them as words or as one text.
func (r *reader) terminal(c command) {
	r.changes()
	for i, w := range c.args() {
		switch {
		case strings.ContainsAny(w.text, " ;&|"):
			r.code(w.text, Bash)
		case i+1 < len(c.args()):
			if name, ok := programName(w); ok && reaches(name) {
				r.run(c.with(c.args()[i:]...))
				return
			}
		}
	}
}
