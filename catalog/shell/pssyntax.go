package shell

import (
	"strings"
	"unicode"
)

// psCommand is one command of PowerShell: what stands between two separators.
type psCommand struct {
	words []psWord
	// called means that the call operator stands in front, so that even a text in quotes is a program.
	called bool
	// into are the files that its output goes into.
	into []word
}

// psWord is a word, with the commands in the braces and brackets that it holds.
type psWord struct {
	word
	inner  []psCommand
	block  bool // a block in braces, which runs when and where its command says
	quoted bool // begins with a quote
	// variable is the name of the variable that it begins with.
	variable string
}

// psParser splits a line of PowerShell. It knows words, quotes, blocks and separators, not the grammar: what it cannot
// place is a failure.
type psParser struct {
	text   []rune
	at     int
	nested int
	failed bool
}

func (p *psParser) peek(ahead int) rune {
	if p.at+ahead < len(p.text) {
		return p.text[p.at+ahead]
	}
	return 0
}

func (p *psParser) looking(at string) bool {
	for i, r := range []rune(at) {
		if p.peek(i) != r {
			return false
		}
	}
	return true
}

// skipTo moves behind the next occurrence of a text.
func (p *psParser) skipTo(end string) string {
	start := p.at
	for ; p.at < len(p.text); p.at++ {
		if p.looking(end) {
			passed := string(p.text[start:p.at])
			p.at += len([]rune(end))
			return passed
		}
	}
	p.failed = true
	return ""
}

// commands reads up to the closing character, or to the end for 0.
func (p *psParser) commands(closing rune) []psCommand {
	if p.nested++; p.nested > maxDepth {
		p.failed = true
	}
	defer func() { p.nested-- }()
	var all []psCommand
	var current psCommand
	end := func() {
		if len(current.words) > 0 || len(current.into) > 0 {
			all = append(all, current)
		}
		current = psCommand{}
	}
	for !p.failed {
		switch c := p.peek(0); {
		case p.at >= len(p.text):
			p.failed = p.failed || closing != 0
			end()
			return all
		case c == closing:
			p.at++
			end()
			return all
		case c == ')' || c == '}' || c == '<' && !p.looking("<#"):
			p.failed = true
		case p.looking("<#"):
			p.skipTo("#>")
		case c == '#':
			for p.at < len(p.text) && p.peek(0) != '\n' {
				p.at++
			}
		case c == '`' && (p.peek(1) == '\n' || p.peek(1) == '\r' && p.peek(2) == '\n'):
			p.at += 2
		case c == '\n' || c == '\r' || c == ';' || c == '|':
			p.at++
			end()
		case c == '&':
			p.at++
			end()
			current.called = p.peek(0) != '&'
		case c == '.' && len(current.words) == 0 && (unicode.IsSpace(p.peek(1)) || p.peek(1) == '{'):
			p.at++
			current.called = true
		case unicode.IsSpace(c):
			p.at++
		case p.redirects():
			current.into = append(current.into, p.redirection()...)
		default:
			current.words = append(current.words, p.word())
		}
	}
	end()
	return all
}

// redirects reports whether a redirection begins here: > with a number or a star in front.
func (p *psParser) redirects() bool {
	return p.peek(0) == '>' || (p.peek(0) == '*' || unicode.IsDigit(p.peek(0))) && p.peek(1) == '>'
}

func (p *psParser) redirection() []word {
	for p.peek(0) != '>' {
		p.at++
	}
	for p.peek(0) == '>' {
		p.at++
	}
	if p.peek(0) == '&' {
		p.at += 2
		return nil
	}
	for p.peek(0) == ' ' {
		p.at++
	}
	if strings.EqualFold(string(p.text[p.at:min(p.at+5, len(p.text))]), "$null") {
		p.at += 5
		return nil
	}
	if c := p.peek(0); c == 0 || unicode.IsSpace(c) || strings.ContainsRune(";|&)}", c) {
		p.failed = true
		return nil
	}
	return []word{p.word().word}
}

// word reads one word, which goes on behind a comma.
func (p *psParser) word() psWord {
	var b strings.Builder
	w := psWord{quoted: isQuote(p.peek(0))}
	for !p.failed && p.at < len(p.text) {
		c := p.peek(0)
		switch {
		case c == ',':
			p.at++
			b.WriteRune(',')
			p.skipSpace()
		case unicode.IsSpace(c):
			start := p.at
			if p.skipSpace(); p.peek(0) != ',' {
				p.at = start
				w.text = b.String()
				return w
			}
		case strings.ContainsRune(";|&)}<>", c):
			w.text = b.String()
			return w
		case isQuote(c):
			p.quotedPart(&w, &b)
		case c == '`':
			p.at++
			if next := p.peek(0); next != 0 {
				b.WriteRune(next)
			}
			p.at++
		case c == '@' && isQuote(p.peek(1)):
			p.hereString(&w, &b)
		case c == '{':
			if b.Len() > 0 {
				w.text = b.String()
				return w // a block is a word of its own
			}
			p.at++
			w.inner, w.block = p.commands('}'), true
			return w
		case c == '(' || (c == '$' || c == '@') && (p.peek(1) == '(' || c == '@' && p.peek(1) == '{'):
			p.nestedPart(&w, &b)
		case c == '$':
			if name := p.variable(); b.Len() == 0 {
				w.variable = name
			}
			b.WriteRune(hole)
		case c == '@' && b.Len() == 0:
			p.variable()
			w.splits = true // the members of a list or table become arguments
			b.WriteRune(hole)
		default:
			b.WriteRune(c)
			p.at++
		}
	}
	w.text = b.String()
	return w
}

func (p *psParser) skipSpace() {
	for p.peek(0) == ' ' || p.peek(0) == '\t' || p.peek(0) == '`' && p.peek(1) == '\n' {
		p.at++
	}
}

func isQuote(r rune) bool {
	return strings.ContainsRune("'\"‘’‚‛“”„", r) && r != 0
}

func isSingleQuote(r rune) bool { return strings.ContainsRune("'‘’‚‛", r) && r != 0 }

func (p *psParser) nestedPart(w *psWord, b *strings.Builder) {
	if p.peek(0) != '(' {
		p.at++
	}
	closing := ')'
	if p.peek(0) == '{' {
		closing = '}'
	}
	p.at++
	if b.Len() > 0 && !strings.HasSuffix(b.String(), ",") {
		b.WriteRune('(') // a call of a method, which callsMethod looks for
	}
	w.inner = append(w.inner, p.commands(closing)...)
	b.WriteRune(hole)
}

// variable reads the name behind a sign that makes it one.
func (p *psParser) variable() string {
	p.at++
	if p.peek(0) == '{' {
		p.at++
		return p.skipTo("}")
	}
	start := p.at
	if strings.ContainsRune("$?^_", p.peek(0)) && p.peek(0) != 0 {
		p.at++
	}
	for r := p.peek(0); unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == ':' && p.peek(1) != ':'; r = p.peek(0) {
		p.at++
	}
	return string(p.text[start:p.at])
}

func (p *psParser) quotedPart(w *psWord, b *strings.Builder) {
	single := isSingleQuote(p.peek(0))
	p.at++
	for p.at < len(p.text) {
		c := p.peek(0)
		same := isQuote(c) && isSingleQuote(c) == single
		switch {
		case same && isQuote(p.peek(1)) && isSingleQuote(p.peek(1)) == single:
			b.WriteRune(c)
			p.at += 2
		case same:
			p.at++
			return
		case single:
			b.WriteRune(c)
			p.at++
		default:
			p.expandable(w, b)
		}
	}
	p.failed = true
}

// expandable reads one part of a text in double quotes.
func (p *psParser) expandable(w *psWord, b *strings.Builder) {
	switch c := p.peek(0); {
	case c == '`':
		p.at++
		b.WriteRune(p.peek(0))
		p.at++
	case c == '$' && p.peek(1) == '(':
		p.at += 2
		w.inner = append(w.inner, p.commands(')')...)
		b.WriteRune(hole)
	case c == '$' && (unicode.IsLetter(p.peek(1)) || strings.ContainsRune("_{$?^", p.peek(1)) && p.peek(1) != 0):
		p.variable()
		b.WriteRune(hole)
	default:
		b.WriteRune(c)
		p.at++
	}
}

func (p *psParser) hereString(w *psWord, b *strings.Builder) {
	single := isSingleQuote(p.peek(1))
	p.at += 2
	end := "\n\"@"
	if single {
		end = "\n'@"
	}
	body := p.skipTo(end)
	if single {
		b.WriteString(body)
		return
	}
	inside := psParser{text: []rune(body), nested: p.nested}
	for inside.at < len(inside.text) && !inside.failed {
		inside.expandable(w, b)
	}
	p.failed = p.failed || inside.failed
}
