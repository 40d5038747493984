package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// LoadError is one thing wrong with a catalogue file. Line and Column count from 1, columns in characters.
type LoadError struct {
	Line, Column int
	Problem      string
}

// Error returns "line:column: problem", so that a file name and a colon can go in front.
func (e *LoadError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem) }

const (
	maxProblems = 20 // of one file; more would only hide the first
	maxNesting  = 12 // a catalogue needs nine
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// document is JSON text with the place of every value kept, which encoding/json throws away.
type document struct {
	data     []byte
	at       int   // of what is read next
	breaks   []int // where lines end, once that is asked for
	problems []error
}

type node struct {
	at      int
	kind    byte   // '{', '[', '"', or the first byte of a number, true, false or null
	text    string // of a string, unquoted; of a number, true, false or null as written
	members []member
	items   []node
}

type member struct {
	at    int
	key   string
	value node
}

// parse returns the one JSON value of data, or records why there is none.
func (d *document) parse(data []byte) (node, bool) {
	d.data = bytes.TrimPrefix(data, byteOrderMark)
	switch {
	case looksLikeUTF16(d.data):
		d.fail(0, "the file is UTF-16; save it as UTF-8")
	case !utf8.Valid(d.data):
		d.fail(firstInvalid(d.data), "the file is not UTF-8")
	case len(bytes.TrimSpace(d.data)) == 0:
		d.fail(0, `the catalogue is empty; an empty one is {"version": 1}`)
	}
	if len(d.problems) > 0 {
		return node{}, false
	}
	if err := json.Unmarshal(d.data, new(json.RawMessage)); err != nil {
		d.failSyntax(err)
		return node{}, false
	}
	return d.value(1), len(d.problems) == 0
}

// value reads one value. The text is known to be valid JSON, so what follows what needs no second check.
func (d *document) value(depth int) node {
	d.skip(" \t\r\n,:")
	n := node{at: d.at, kind: d.data[d.at]}
	switch n.kind {
	case '"':
		n.text = d.quoted()
	case '{', '[':
		if depth > maxNesting {
			d.fail(n.at, "nested too deep for a catalogue")
			d.at = len(d.data)
			return n
		}
		d.at++
		seen := map[string]member{}
		for d.more() {
			if n.kind == '[' {
				n.items = append(n.items, d.value(depth+1))
			} else {
				n.members = append(n.members, d.member(seen, depth))
			}
		}
	default:
		for d.at < len(d.data) && strings.IndexByte(" \t\r\n,]}", d.data[d.at]) < 0 {
			d.at++
		}
		n.text = string(d.data[n.at:d.at])
	}
	return n
}

func (d *document) member(seen map[string]member, depth int) member {
	m := member{at: d.at}
	m.key = d.quoted()
	folded := strings.ToLower(m.key)
	switch other, taken := seen[folded]; {
	case !taken:
		seen[folded] = m
	case other.key == m.key:
		d.fail(m.at, "key %q is given twice; the first is in line %d", m.key, d.line(other.at))
	default:
		d.fail(m.at, "keys %q and %q differ only in case", other.key, m.key)
	}
	m.value = d.value(depth + 1)
	return m
}

// more goes to the next member or item, or behind the end of the object or array.
func (d *document) more() bool {
	d.skip(" \t\r\n,")
	if d.at == len(d.data) {
		return false
	}
	if c := d.data[d.at]; c == ']' || c == '}' {
		d.at++
		return false
	}
	return true
}

func (d *document) quoted() string {
	start, plain := d.at, true
	for d.at++; d.data[d.at] != '"'; d.at++ {
		if d.data[d.at] == '\\' {
			d.at++
			plain = false
		}
	}
	d.at++
	if plain {
		return string(d.data[start+1 : d.at-1])
	}
	var text string
	_ = json.Unmarshal(d.data[start:d.at], &text)
	return text
}

func (d *document) skip(characters string) {
	for d.at < len(d.data) && strings.IndexByte(characters, d.data[d.at]) >= 0 {
		d.at++
	}
}

// failSyntax places an error of encoding/json, whose offset counts the bytes read, the offending one included.
func (d *document) failSyntax(err error) {
	at := 0
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		at = max(0, int(syntax.Offset)-1)
	}
	d.fail(at, "%v", err)
}

func (d *document) fail(at int, format string, args ...any) {
	if len(d.problems) < maxProblems {
		before := d.data[:min(at, len(d.data))]
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		d.problems = append(d.problems, &LoadError{Line: d.line(at), Column: column, Problem: fmt.Sprintf(format, args...)})
	}
}

func (d *document) line(at int) int {
	if d.breaks == nil {
		d.breaks = []int{}
		for i, c := range d.data {
			if c == '\n' {
				d.breaks = append(d.breaks, i)
			}
		}
	}
	before, _ := slices.BinarySearch(d.breaks, at)
	return before + 1
}

func looksLikeUTF16(data []byte) bool {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return true
	}
	return len(data) >= 2 && (data[0] == 0) != (data[1] == 0)
}

func firstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	return at
}
