package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	decoder  *json.Decoder
	problems []error
}

type node struct {
	at      int
	token   json.Token // json.Delim for an object or array
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
	var whole json.RawMessage
	if err := json.Unmarshal(d.data, &whole); err != nil {
		d.failSyntax(err)
		return node{}, false
	}
	d.decoder = json.NewDecoder(bytes.NewReader(d.data))
	d.decoder.UseNumber()
	return d.value(1), len(d.problems) == 0
}

// value reads one value. The text is known to be valid JSON, so the decoder has no error to give.
func (d *document) value(depth int) node {
	n := node{at: d.next()}
	if depth > maxNesting {
		d.fail(n.at, "nested too deep for a catalogue")
		_ = d.decoder.Decode(new(json.RawMessage))
		return n
	}
	n.token, _ = d.decoder.Token()
	switch n.token {
	case json.Delim('['):
		for d.decoder.More() {
			n.items = append(n.items, d.value(depth+1))
		}
	case json.Delim('{'):
		for d.decoder.More() {
			n.members = append(n.members, d.member(n.members, depth))
		}
	default:
		return n
	}
	_, _ = d.decoder.Token()
	return n
}

func (d *document) member(before []member, depth int) member {
	m := member{at: d.next()}
	token, _ := d.decoder.Token()
	m.key, _ = token.(string)
	for _, other := range before {
		switch {
		case other.key == m.key:
			d.fail(m.at, "key %q is given twice; the first is in line %d", m.key, d.line(other.at))
		case strings.EqualFold(other.key, m.key):
			d.fail(m.at, "keys %q and %q differ only in case", other.key, m.key)
		}
	}
	m.value = d.value(depth + 1)
	return m
}

// next is the offset of the next token.
func (d *document) next() int {
	at := int(d.decoder.InputOffset())
	for at < len(d.data) && strings.IndexByte(" \t\r\n,:", d.data[at]) >= 0 {
		at++
	}
	return at
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
	return bytes.Count(d.data[:min(at, len(d.data))], []byte("\n")) + 1
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
