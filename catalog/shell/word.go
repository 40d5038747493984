package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hole stands in a text for what is not known of it. It is a noncharacter of Unicode: no text has it by right.
const hole = '\uFDD0'

// word is one argument of a program, as far as it is known.
type word struct {
	text   string // with a hole for each part that is not known
	splits bool   // may turn out to be no word at all, or several
	piped  bool   // what the program reads under this name is written by another one
}

func plain(text string) word { return word{text: text} }

var anyWords = word{text: string(hole), splits: true}

// known reports whether the word is exactly its text.
func (w word) known() bool { return !w.splits && !strings.ContainsRune(w.text, hole) }

// mayBeOption reports whether a program could take the word for an option, or for several words.
func (w word) mayBeOption() bool {
	return w.splits || strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, string(hole))
}

func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// harmlessVariables hold one word that is no option, in every shell that is not set up to deceive.
var harmlessVariables = set("HOME PWD OLDPWD USER LOGNAME HOSTNAME UID TMPDIR ? $ # ! 0 LINENO RANDOM PPID")

func (r *reader) words(list []*syntax.Word) []word {
	words := make([]word, len(list))
	for i, w := range list {
		words[i] = r.word(w)
	}
	return words
}

func (r *reader) word(w *syntax.Word) word {
	if expandsBraces(w) {
		return anyWords
	}
	var b wordBuilder
	for i, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.literal(lit.Value, i == 0)
			continue
		}
		r.part(&b, part, false)
	}
	return word{b.text.String(), b.splits, b.piped}
}

type wordBuilder struct {
	text          strings.Builder
	splits, piped bool
}

func (r *reader) part(b *wordBuilder, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		b.text.WriteString(unescape(p.Value, "$`\"\\"))
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			b.text.WriteRune(hole)
			return
		}
		b.text.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			r.part(b, inner, true)
		}
	case *syntax.ParamExp:
		b.text.WriteString(r.variable(b, p, quoted))
	case *syntax.ProcSubst:
		b.text.WriteRune(hole)
		b.piped = true
	default:
		b.text.WriteRune(hole)
		b.splits = b.splits || !quoted
	}
}

func (r *reader) variable(b *wordBuilder, p *syntax.ParamExp, quoted bool) string {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	bare := !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if value, ok := r.values[name]; ok && bare {
		return value
	}
	several := name == "@" || p.Index != nil || p.Names != 0 || p.Excl
	b.splits = b.splits || several || !quoted && !(bare && harmlessVariables[name])
	return string(hole)
}

// literal adds text outside of quotes.
func (b *wordBuilder) literal(text string, first bool) {
	if first && strings.HasPrefix(text, "~") {
		_, rest, slash := strings.Cut(text, "/")
		b.text.WriteRune(hole)
		if !slash {
			return
		}
		text = "/" + rest
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.text.WriteByte(text[i])
		case c == '*' || c == '?' || c == '[' && strings.Contains(text[i:], "]"):
			b.text.WriteRune(hole)
			b.splits = true
		default:
			b.text.WriteByte(c)
		}
	}
}

// expandsBraces reports whether a word may be several, as web0{1,2} is.
func expandsBraces(w *syntax.Word) bool {
	opens, separates := false, false
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			continue
		}
		opens = opens || strings.Contains(lit.Value, "{")
		separates = separates || strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, "..")
	}
	return opens && separates
}

// unescape takes the backslash away in front of these characters, and a backslash at the end of a line with the line's
// end.
func unescape(text, escaped string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(escaped, text[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// document returns what a program reads from a here-document.
func (r *reader) document(redirect *syntax.Redirect) string {
	if redirect.Hdoc == nil {
		return ""
	}
	literal := false
	for _, part := range redirect.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		literal = literal || !ok || strings.Contains(lit.Value, `\`)
	}
	var b wordBuilder
	for _, part := range redirect.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text := lit.Value
			if !literal {
				text = unescape(text, "$`\\")
			}
			b.text.WriteString(text)
			continue
		}
		r.part(&b, part, true)
	}
	return b.text.String()
}

// set makes a set of the words of a text.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}
