package zvm

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// shortestScrubbed keeps the scrubber from eating ordinary text: a password of three letters is part of many words, and an echo of
// it proves nothing to anybody.
const shortestScrubbed = 4

// scrubMargin is how much more of a text is read than is kept of it, so that a secret at the cut is seen whole. Servers accept no
// header as long as this.
const scrubMargin = 16 << 10

// scrubber removes known secrets from text that a server sent, because servers echo what they were sent: as it is, in base64, and
// either escaped for a URL, JSON, HTML or Go, or with its white space folded.
type scrubber []*secretForm

func newScrubber(secrets ...string) scrubber {
	var forms scrubber
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		if len(s) < shortestScrubbed {
			continue
		}
		for _, text := range []string{s, base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s))} {
			forms = append(forms, newSecretForm(text))
		}
	}
	return forms
}

// text returns t without secrets.
func (s scrubber) text(t string) string { return s.head(t, len(t)) }

// head returns the first limit bytes of t without secrets, the one that begins there and ends behind them included.
func (s scrubber) head(t string, limit int) string {
	limit = min(limit, len(t))
	var b strings.Builder
	end := 0
	for _, at := range s.find(t) {
		if at[0] >= limit {
			break
		}
		if at[0] >= end {
			b.WriteString(t[end:at[0]])
			b.WriteString(redacted)
		}
		end = max(end, at[1])
	}
	if end < limit {
		b.WriteString(t[end:limit])
	}
	return b.String()
}

// find returns where secrets are, in the order of their beginnings.
func (s scrubber) find(t string) [][]int {
	var found [][]int
	for _, form := range s {
		found = append(found, form.find(t)...)
	}
	slices.SortFunc(found, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// secretForm is one text to be found in any escape. Its letters and digits are never escaped, so the longest run of them tells cheaply
// where there is nothing to be found.
type secretForm struct {
	text    string
	run     string
	pattern *regexp.Regexp // made when it is needed
}

func newSecretForm(text string) *secretForm {
	f := &secretForm{text: text}
	for _, run := range strings.FieldsFunc(text, escapable) {
		if len(run) > len(f.run) {
			f.run = run
		}
	}
	return f
}

// escapable reports whether some encoder replaces r.
func escapable(r rune) bool {
	return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.')
}

func (f *secretForm) find(t string) [][]int {
	if !strings.Contains(t, f.run) {
		return nil
	}
	if f.pattern == nil {
		f.pattern = regexp.MustCompile(patternOf(f.text))
		f.pattern.Longest()
	}
	found := f.pattern.FindAllStringIndex(t, -1)
	if utf8.ValidString(f.text) {
		return found
	}
	// Bytes that are no characters by themselves may be part of one in the text, where no pattern sees them.
	for from := 0; ; {
		at := strings.Index(t[from:], f.text)
		if at < 0 {
			return found
		}
		found = append(found, []int{from + at, from + at + len(f.text)})
		from += at + 1
	}
}

// patternOf returns the expression of text in every escape and mixture of escapes.
func patternOf(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteString(anySpace())
			}
			space = true
			continue
		}
		space = false
		if escapable(r) {
			b.WriteString(anyEscape(r))
		} else {
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String()
}

// anySpace is the expression of white space of any length, escaped or not: all that strings.Fields folds, which is more than \s is.
var anySpace = sync.OnceValue(func() string {
	forms := []string{`\+`, `(?i:%2b|\\+[nrtvf]|(?:&|\\+u0026)(?:amp;)?nbsp;)`}
	for _, spaces := range unicode.White_Space.R16 {
		for r := spaces.Lo; r <= spaces.Hi; r += spaces.Stride {
			forms = append(forms, anyEscape(rune(r)))
		}
	}
	return `(?:` + strings.Join(forms, "|") + `)+`
})

// anyEscape is one character, as it is or escaped, perhaps once more by another encoder.
func anyEscape(r rune) string {
	var percent, units strings.Builder
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&percent, "%%(?:25)?%02x", c)
	}
	for _, u := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&units, `\\+u%04x`, u)
	}
	forms := []string{
		percent.String(), units.String(), fmt.Sprintf(`\\+u%08x`, r), fmt.Sprintf(`\\+x%02x`, r),
		fmt.Sprintf(`(?:&|\\+u0026)(?:amp;)?#(?:%d|x0*%x);`, r, r),
	}
	if named := html.EscapeString(string(r)); named != string(r) {
		forms = append(forms, `(?:&|\\+u0026)(?:amp;)?`+regexp.QuoteMeta(named[1:]))
	}
	switch r {
	case '"':
		forms = append(forms, `(?:&|\\+u0026)(?:amp;)?quot;`)
	case '\'':
		forms = append(forms, `(?:&|\\+u0026)(?:amp;)?apos;`)
	}
	return `(?:\\*` + regexp.QuoteMeta(string(r)) + `|(?i:` + strings.Join(forms, "|") + `))`
}
