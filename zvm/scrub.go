package zvm

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html"
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
	var e *echo
	for _, form := range s {
		if !strings.Contains(t, form.run) {
			continue
		}
		if e == nil {
			e = newEcho(t)
		}
		found = append(found, form.find(e)...)
	}
	slices.SortFunc(found, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// secretForm is one text to be found in any escape. Its letters and digits are never escaped, so the longest run of them tells cheaply
// where there is nothing to be found.
type secretForm struct {
	parts []secretPart
	run   string
}

// secretPart is a run of letters and digits, one character that may be escaped, or white space of any length.
type secretPart struct {
	literal string
	escapes []escape // none for a run
	space   bool
}

func newSecretForm(text string) *secretForm {
	f := &secretForm{}
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch n := strings.IndexFunc(text, escapable); {
		case unicode.IsSpace(r):
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
			f.parts = append(f.parts, secretPart{space: true})
		case n == 0:
			f.parts = append(f.parts, secretPart{literal: text[:size], escapes: escapesOf(text[:size])})
			text = text[size:]
		default:
			if n < 0 {
				n = len(text)
			}
			f.parts = append(f.parts, secretPart{literal: text[:n]})
			if n > len(f.run) {
				f.run = text[:n]
			}
			text = text[n:]
		}
	}
	return f
}

// escapable reports whether some encoder replaces r.
func escapable(r rune) bool {
	return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.')
}

// echo is a text that may hold secrets. For each place it knows where the backslashes and the zeros there end, so that a long run of
// them is not read again from each of its places.
type echo struct {
	text           string
	slashes, zeros []int
}

func newEcho(text string) *echo { return &echo{text, runEnds(text, '\\'), runEnds(text, '0')} }

func runEnds(text string, c byte) []int {
	ends := make([]int, len(text)+1)
	ends[len(text)] = len(text)
	for at := len(text) - 1; at >= 0; at-- {
		if ends[at] = at; text[at] == c {
			ends[at] = ends[at+1]
		}
	}
	return ends
}

// partial is the beginning of a secret in a text. Of all that end at one place only the longest counts.
type partial struct{ end, start int }

// find returns the places of all occurrences, those that overlap others included. It follows them together, part by part, so that its
// time does not depend on how they overlap.
func (f *secretForm) find(t *echo) [][]int {
	shortest := 0
	for _, part := range f.parts {
		shortest += part.shortest()
	}
	var now, next []partial
	for at := range max(0, len(t.text)-shortest+1) {
		now = f.parts[0].append(now, t, partial{at, at})
	}
	shortest -= f.parts[0].shortest()
	for _, part := range f.parts[1:] {
		now = longest(now)
		next = next[:0]
		for _, p := range now {
			if p.end+shortest <= len(t.text) {
				next = part.append(next, t, p)
			}
		}
		shortest -= part.shortest()
		now, next = next, now
	}
	found := make([][]int, 0, len(now))
	for _, p := range longest(now) {
		found = append(found, []int{p.start, p.end})
	}
	return found
}

func byEnd(p partial, end int) int { return cmp.Compare(p.end, end) }

func longest(all []partial) []partial {
	order := func(a, b partial) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start)) }
	if !slices.IsSortedFunc(all, order) {
		slices.SortFunc(all, order)
	}
	return slices.CompactFunc(all, func(a, b partial) bool { return a.end == b.end })
}

// shortest is how little of a text the part can take: no escape is shorter than what it stands for.
func (part secretPart) shortest() int {
	if part.space {
		return 1
	}
	return len(part.literal)
}

// append adds to list what p becomes with the part behind it.
func (part secretPart) append(list []partial, t *echo, p partial) []partial {
	switch {
	case part.space:
		for end := spaceEnd(t, p.end); end > 0; end = spaceEnd(t, end) {
			if at, been := slices.BinarySearchFunc(list, end, byEnd); been && list[at].start <= p.start {
				break
			}
			list = append(list, partial{end, p.start})
		}
	case part.escapes == nil:
		if strings.HasPrefix(t.text[p.end:], part.literal) {
			list = append(list, partial{p.end + len(part.literal), p.start})
		}
	default:
		for _, end := range part.ends(t, p.end) {
			list = append(list, partial{end, p.start})
		}
	}
	return list
}

// ends returns where the character at a place of t may end.
func (part secretPart) ends(t *echo, at int) []int {
	var ends []int
	behind := t.slashes[at]
	switch {
	case part.literal == `\`:
		if behind > at {
			ends = append(ends, at+1, behind)
		}
	case strings.HasPrefix(t.text[behind:], part.literal):
		ends = append(ends, behind+len(part.literal))
	case !utf8.ValidString(part.literal):
		if r, size := utf8.DecodeRuneInString(t.text[behind:]); r == utf8.RuneError && size > 0 {
			ends = append(ends, behind+size)
		}
	}
	for _, e := range part.escapes {
		ends = e.appendEnds(ends, t, at)
	}
	return ends
}

// escape is one character as encoders write it, perhaps once more by another encoder. Case does not matter.
type escape struct {
	octets   []string // behind a percent sign
	slashed  []string // behind backslashes
	units    []string // each behind backslashes
	entities []string // behind an ampersand
	hex      string   // of the entity that may have leading zeros
}

// escapesOf returns the escapes of a character. A byte that is none may have become a replacement character.
func escapesOf(character string) []escape {
	r, size := utf8.DecodeRuneInString(character)
	var all []escape
	if r == utf8.RuneError && size == 1 {
		octet := fmt.Sprintf("%02x", character[0])
		all = append(all, escape{octets: []string{octet}, slashed: []string{"x" + octet}})
	}
	e := escape{
		slashed:  []string{fmt.Sprintf("u%08x", r), fmt.Sprintf("x%02x", r)},
		entities: []string{fmt.Sprintf("#%d;", r)},
		hex:      fmt.Sprintf("%x;", r),
	}
	for _, c := range []byte(string(r)) {
		e.octets = append(e.octets, fmt.Sprintf("%02x", c))
	}
	for _, u := range utf16.Encode([]rune{r}) {
		e.units = append(e.units, fmt.Sprintf("u%04x", u))
	}
	if named := html.EscapeString(string(r)); named != string(r) {
		e.entities = append(e.entities, named[1:])
	}
	switch r {
	case '"':
		e.entities = append(e.entities, "quot;")
	case '\'':
		e.entities = append(e.entities, "apos;")
	}
	return append(all, e)
}

func (e escape) appendEnds(ends []int, t *echo, at int) []int {
	if at == len(t.text) {
		return ends
	}
	switch t.text[at] {
	case '%':
		once, twice := octetsEnd(t.text, at, e.octets, "%"), octetsEnd(t.text, at, e.octets, "%25")
		ends = appendFound(ends, once, twice)
	case '\\':
		behind := t.slashes[at]
		for _, text := range e.slashed {
			ends = appendFound(ends, foldedEnd(t.text, behind, text))
		}
		ends = appendFound(ends, e.unitsEnd(t, at))
	}
	for _, at := range entityBodies(t, at) {
		for _, text := range e.entities {
			ends = appendFound(ends, foldedEnd(t.text, at, text))
		}
		if digits := foldedEnd(t.text, at, "#x"); digits > 0 && e.hex != "" {
			ends = appendFound(ends, foldedEnd(t.text, t.zeros[digits], e.hex))
		}
	}
	return ends
}

// octetsEnd prefers the given prefix for each octet and takes the other where it has to.
func octetsEnd(t string, at int, octets []string, prefix string) int {
	for _, octet := range octets {
		end := foldedEnd(t, at, prefix+octet)
		if end < 0 {
			end = max(foldedEnd(t, at, "%"+octet), foldedEnd(t, at, "%25"+octet))
		}
		if end < 0 {
			return -1
		}
		at = end
	}
	return at
}

func (e escape) unitsEnd(t *echo, at int) int {
	if len(e.units) == 0 {
		return -1
	}
	for _, unit := range e.units {
		behind := t.slashes[at]
		if behind == at {
			return -1
		}
		if at = foldedEnd(t.text, behind, unit); at < 0 {
			return -1
		}
	}
	return at
}

// entityBodies returns where the text of an entity may begin that begins at a place of t.
func entityBodies(t *echo, at int) []int {
	body := -1
	switch behind := t.slashes[at]; {
	case behind > at:
		body = foldedEnd(t.text, behind, "u0026")
	case strings.HasPrefix(t.text[at:], "&"):
		body = at + 1
	}
	if body < 0 {
		return nil
	}
	return appendFound([]int{body}, foldedEnd(t.text, body, "amp;"))
}

// foldedEnd returns the end of text at a place of t, whatever its case, or -1.
func foldedEnd(t string, at int, text string) int {
	if end := at + len(text); end <= len(t) && strings.EqualFold(t[at:end], text) {
		return end
	}
	return -1
}

func appendFound(ends []int, more ...int) []int {
	for _, end := range more {
		if end >= 0 {
			ends = append(ends, end)
		}
	}
	return ends
}

// spaceEnd returns the end of the white space at a place of t, escaped or not, or -1. It knows all that strings.Fields folds.
func spaceEnd(t *echo, at int) int {
	behind := t.slashes[at]
	if r, size := utf8.DecodeRuneInString(t.text[behind:]); unicode.IsSpace(r) {
		return behind + size
	}
	if at == len(t.text) || !strings.ContainsRune(`+%&\`, rune(t.text[at])) {
		return -1
	}
	end := -1
	switch {
	case t.text[at] == '+':
		end = at + 1
	case behind > at && behind < len(t.text) && strings.ContainsRune("nrtvfNRTVF", rune(t.text[behind])):
		end = behind + 1
	default:
		end = foldedEnd(t.text, at, "%2b")
	}
	for _, body := range entityBodies(t, at) {
		end = max(end, foldedEnd(t.text, body, "nbsp;"))
	}
	for _, e := range spaceEscapes() {
		for _, found := range e.appendEnds(nil, t, at) {
			end = max(end, found)
		}
	}
	return end
}

var spaceEscapes = sync.OnceValue(func() []escape {
	var all []escape
	for _, spaces := range unicode.White_Space.R16 {
		for r := spaces.Lo; r <= spaces.Hi; r += spaces.Stride {
			all = append(all, escapesOf(string(rune(r)))...)
		}
	}
	return all
})
