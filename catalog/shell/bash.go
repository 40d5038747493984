package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// bash reads the statements of a text up to the first that is none: a shell runs those in front of it.
func (r *reader) bash(text string) {
	alone := onlyCall(text)
	if at := tooDeep(text); at >= 0 {
		r.found.unresolved("a command line is nested too deep to be read")
		text = text[:at]
	}
	for statement, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			r.found.unresolved("a command line cannot be parsed")
			return
		}
		inner := *r
		if !alone {
			inner.stdin = nil
		}
		inner.walk(statement)
	}
}

// tooDeep returns where more brackets are open than a parser should follow, or -1. It knows no quotes: nobody has so many
// more of one kind than of the other.
func tooDeep(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			if open++; open > maxBrackets {
				return i
			}
		case ')', ']', '}':
			open = max(0, open-1)
		}
	}
	return -1
}

// onlyCall reports whether a text can be nothing but one program with its arguments, so that the program reads what
// the shell would have read.
func onlyCall(text string) bool { return !strings.ContainsAny(text, "|&;<>()`{}\n") }

// walk visits every statement below the node, wherever a shell lets one stand.
func (r *reader) walk(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.statement(n)
		case *syntax.ForClause:
			return !r.loop(n)
		case *syntax.Assign:
			r.assign(n)
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word.Lit() != "Q" {
				r.found.unresolved("the value of a variable is expanded as code")
			}
		case *syntax.FuncDecl:
			r.shared.unbound = true // what it sets is not followed to where it is called
		case *syntax.TestDecl:
			r.found.unresolved("a command line is written for another shell")
		}
		return true
	})
}

func (r *reader) statement(s *syntax.Stmt) {
	inner := *r
	for _, redirect := range s.Redirs {
		inner.redirect(redirect)
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || !r.step(len(call.Args)/wordChunk) {
		return
	}
	c := command{words: r.words(call.Args)}
	for _, a := range call.Assigns {
		c.steered = c.steered || !harmlessSettings[a.Name.Value]
	}
	inner.run(c)
}

// harmlessSettings change how a program that only reads writes, and nothing else.
var harmlessSettings = set("IFS LANG LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME TZ TERM COLUMNS LINES NO_COLOR")

func (r *reader) redirect(redirect *syntax.Redirect) {
	target := r.word(redirect.Word).text
	if strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/") {
		r.found.unresolved("a redirection reaches over the network")
		return
	}
	toStdin := redirect.N == nil || redirect.N.Value == "0"
	switch redirect.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if toStdin {
			text := r.document(redirect)
			r.stdin = &text
		}
	case syntax.WordHdoc:
		if toStdin {
			r.stdin = &target
		}
	case syntax.RdrIn, syntax.DplIn:
		if toStdin {
			r.stdin = nil
		}
	case syntax.DplOut:
		if strings.Trim(target, "0123456789-") != "" {
			r.writes(target)
		}
	default:
		r.writes(target)
	}
}

func (r *reader) writes(file string) {
	switch file {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
	default:
		r.changes()
	}
}

// aiming lists variables that make a program reach another machine than its command line shows, or run code.
var aiming = set(`BASH_ENV ENV PROMPT_COMMAND LD_PRELOAD LD_LIBRARY_PATH DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST RSYNC_RSH
	RSYNC_CONNECT_PROG GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GOVC_VM LIBVIRT_DEFAULT_URI PGHOST PGHOSTADDR MYSQL_HOST SSH_ASKPASS`)

func (r *reader) assign(a *syntax.Assign) {
	if a.Name != nil {
		r.sets(a.Name.Value)
	}
}

func (r *reader) sets(variable string) {
	switch variable {
	case "PATH":
		r.changes() // programs may be others than their names say
	case "IFS":
		r.shared.unbound = true
	}
	if aiming[variable] || strings.HasPrefix(variable, "ZVM_") || strings.HasPrefix(variable, "ZERTO_REWIND_") || strings.HasPrefix(variable, "ANSIBLE_") {
		r.found.unresolved("a variable is set that decides where programs reach")
	}
}

// loop reads the body of a loop over literal words once for each. It is false for a loop whose variable can have other
// values, of which the body is still to be read.
func (r *reader) loop(clause *syntax.ForClause) bool {
	words, ok := clause.Loop.(*syntax.WordIter)
	size := int(clause.End().Offset()-clause.DoPos.Offset()) / loopChunk
	if !r.step(size) {
		return true
	}
	if !ok || clause.Select || !words.InPos.IsValid() || len(words.Items) == 0 || mayRebind(clause.Do, words.Name.Value) {
		return false
	}
	unbound := r.shared.unbound
	values := r.words(words.Items)
	for _, value := range values {
		if !value.known() || strings.ContainsFunc(value.text, notInName) {
			return false
		}
	}
	for _, value := range values {
		if !r.step(1 + size) {
			break
		}
		inner := *r
		inner.values = map[string]string{words.Name.Value: value.text}
		for name, outer := range r.values {
			if name != words.Name.Value {
				inner.values[name] = outer
			}
		}
		for _, statement := range clause.Do {
			inner.walk(statement)
		}
	}
	return !unbound
}

// notInName reports whether a character could make one word several, or something else than itself.
func notInName(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.@:/", r))
}

// mayRebind reports whether the statements may give the variable another value: they name it in any other way than to
// expand it, or run code that stands elsewhere.
func mayRebind(statements []*syntax.Stmt, name string) bool {
	rebinds := setByShell[name]
	expanded := map[*syntax.Lit]bool{}
	names := func(text string) bool {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "-v"), name)
		return ok && (rest == "" || strings.ContainsRune("=+[", rune(rest[0])))
	}
	for _, statement := range statements {
		syntax.Walk(statement, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.ParamExp:
				expanded[n.Param] = true
			case *syntax.Lit:
				rebinds = rebinds || !expanded[n] && (names(n.Value) || runsCode[n.Value] || n.Value == "IFS")
			case *syntax.SglQuoted:
				rebinds = rebinds || names(n.Value)
			case *syntax.FuncDecl:
				rebinds = true
			}
			return true
		})
	}
	return rebinds
}

var (
	runsCode   = set("eval source . trap")
	setByShell = set("REPLY OPTARG OPTIND MAPFILE COPROC OLDPWD PWD IFS")
)
