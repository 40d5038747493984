package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDocument is far above every settings file, and keeps a wrong path from filling the memory. In bytes.
const maxDocument = 16 << 20

var bom = []byte("\ufeff")

// DamagedError says that a settings file cannot be read as what it should be. Line and Column count from 1; a Column is in
// bytes. Both are 0 where no place can be told.
type DamagedError struct {
	Path         string
	Line, Column int
	Reason       string
}

func (e *DamagedError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s; the file was left as it is", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s; the file was left as it is", e.Path, e.Line, e.Column, e.Reason)
}

// A document is the text of a JSON file, with or without comments. An edit splices the text, so that every byte of somebody
// else stays; the tree is read anew after each.
type document struct {
	file    string
	marked  bool // begins with a byte order mark
	text    []byte
	root    hujson.Value
	newline string
	unit    string // one step of indentation
}

// parseDocument reads a file. One without content is an empty object.
func parseDocument(path string, data []byte) (*document, error) {
	d := &document{file: path}
	text, marked := bytes.CutPrefix(data, bom)
	d.marked = marked
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) || bytes.IndexByte(text, 0) >= 0 {
		return nil, &DamagedError{Path: path, Reason: "it is UTF-16 or binary, not UTF-8 text"}
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, d.damaged(text, at, "it is not UTF-8 here")
	}
	d.newline, d.unit = "\n", "  "
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		d.newline = "\r\n"
	}
	if err := d.set(bytes.Clone(text)); err != nil {
		return nil, err
	}
	if d.root.Value.Kind() != '{' {
		return nil, d.damaged(d.text, d.root.StartOffset, "it holds no JSON object")
	}
	if indent, ok := d.itemIndent(&d.root); ok && indent != "" {
		d.unit = indent
	}
	return d, nil
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func (d *document) damaged(text []byte, at int, reason string) error {
	line := 1 + bytes.Count(text[:at], []byte("\n"))
	return &DamagedError{Path: d.file, Line: line, Column: at - bytes.LastIndexByte(text[:at], '\n'), Reason: reason}
}

var place = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (.*)$`)

func (d *document) set(text []byte) error {
	if at := tooDeep(text); at >= 0 {
		return d.damaged(text, at, "it is nested too deeply here")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		e := &DamagedError{Path: d.file, Reason: err.Error()}
		if m := place.FindStringSubmatch(err.Error()); m != nil {
			e.Line, _ = strconv.Atoi(m[1])
			e.Column, _ = strconv.Atoi(m[2])
			e.Reason = m[3]
		}
		return e
	}
	d.text, d.root = text, root
	return nil
}

// maxNesting is far above every settings file. The parser takes time by the square of it, and knows no limit.
const maxNesting = 500

// tooDeep returns where more containers are open than that, -1 if nowhere.
func tooDeep(text []byte) int {
	open := 0
	for i := 0; i < len(text); i++ {
		end := ""
		switch c := text[i]; {
		case c == '[' || c == '{':
			if open++; open > maxNesting {
				return i
			}
		case c == ']' || c == '}':
			open--
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(text[i:], []byte("//")):
			end = "\n"
		case bytes.HasPrefix(text[i:], []byte("/*")):
			end = "*/"
		}
		if end == "" {
			continue
		}
		length := bytes.Index(text[i+2:], []byte(end))
		if length < 0 {
			return -1
		}
		i += 1 + length + len(end)
	}
	return -1
}

// bytes returns the file.
func (d *document) bytes() []byte {
	if d.marked {
		return append(bytes.Clone(bom), d.text...)
	}
	return bytes.Clone(d.text)
}

// hasComments reports whether a strict JSON reader would stumble over the file.
func (d *document) hasComments() bool {
	standard := d.root.Clone()
	standard.Standardize()
	return !bytes.Equal(standard.Pack(), d.text)
}

// member returns an object's member of exactly that name, nil when there is none.
func (d *document) member(v *hujson.Value, name string) (*hujson.Value, error) {
	if v.Value.Kind() != '{' {
		return nil, d.damaged(d.text, v.StartOffset, "want an object here")
	}
	all, _ := items(v)
	var found *hujson.Value
	i := -1
	for key, value := range members(v) {
		if i++; key != name {
			continue
		}
		if found != nil {
			return nil, d.twice(name, all[i])
		}
		found = value
	}
	return found, nil
}

// distinct refuses an object that has a name twice.
func (d *document) distinct(v *hujson.Value) error {
	all, _ := items(v)
	seen := make(map[string]bool, len(all))
	i := -1
	for name := range members(v) {
		if i++; seen[name] {
			return d.twice(name, all[i])
		}
		seen[name] = true
	}
	return nil
}

func (d *document) twice(name string, at item) error {
	return d.damaged(d.text, at.start, strconv.Quote(name)+" stands here a second time")
}

// decode reads a part of the document into v. Only a part with a number that no float64 holds, which other readers take for
// infinite, has numbers as they are written.
func decode(part *hujson.Value, v any) error {
	standard := part.Clone()
	standard.Standardize()
	standard.BeforeExtra, standard.AfterExtra = nil, nil
	text := standard.Pack()
	err := json.Unmarshal(text, v)
	var unfit *json.UnmarshalTypeError
	if errors.As(err, &unfit) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(v)
	}
	return err
}

// members goes through an object's members, and elements through those of an array. Of any other value there are none.
func members(v *hujson.Value) iter.Seq2[string, *hujson.Value] {
	return func(yield func(string, *hujson.Value) bool) {
		object, ok := v.Value.(*hujson.Object)
		for i := 0; ok && i < len(object.Members); i++ {
			name, _ := object.Members[i].Name.Value.(hujson.Literal)
			if !yield(name.String(), &object.Members[i].Value) {
				return
			}
		}
	}
}

func elements(v *hujson.Value) iter.Seq2[int, *hujson.Value] {
	return func(yield func(int, *hujson.Value) bool) {
		array, ok := v.Value.(*hujson.Array)
		for i := 0; ok && i < len(array.Elements); i++ {
			if !yield(i, &array.Elements[i]) {
				return
			}
		}
	}
}

// An item is a member of an object or an element of an array, by its offsets: where the text before it begins, where it
// begins and ends, and where the comma behind it ends.
type item struct{ before, start, end, comma int }

// items returns what a value holds, and whether a comma follows the last.
func items(v *hujson.Value) (all []item, trailing bool) {
	add := func(first, last *hujson.Value) {
		all = append(all, item{
			before: first.StartOffset - len(first.BeforeExtra), start: first.StartOffset,
			end: last.EndOffset, comma: last.EndOffset + len(last.AfterExtra) + 1,
		})
		trailing = last.AfterExtra != nil
	}
	switch composite := v.Value.(type) {
	case *hujson.Object:
		for i := range composite.Members {
			add(&composite.Members[i].Name, &composite.Members[i].Value)
		}
	case *hujson.Array:
		for i := range composite.Elements {
			add(&composite.Elements[i], &composite.Elements[i])
		}
	}
	return all, trailing
}

// itemIndent returns the indentation of a value's first item, and false if it does not begin its line.
func (d *document) itemIndent(v *hujson.Value) (string, bool) {
	all, _ := items(v)
	if len(all) == 0 {
		return "", false
	}
	line := d.text[bytes.LastIndexByte(d.text[:all[0].start], '\n')+1 : all[0].start]
	if all[0].start-len(line) <= v.StartOffset || len(bytes.TrimLeft(line, " \t")) > 0 {
		return "", false
	}
	return string(line), true
}

// lineIndent returns the indentation of the line that holds the offset.
func (d *document) lineIndent(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// add puts an item behind those of an object or an array. A name makes it a member.
func (d *document) add(v *hujson.Value, name string, content any) error {
	all, trailing := items(v)
	closing := v.EndOffset - 1
	indent, multiline := d.itemIndent(v)
	if len(all) == 0 {
		indent, multiline = d.lineIndent(v.StartOffset)+d.unit, true
	}
	text, err := d.render(name, content, indent, multiline)
	if err != nil {
		return err
	}
	separator := " "
	if multiline {
		separator = d.newline + indent
	}
	if len(all) == 0 {
		inside := bytes.TrimRight(d.text[v.StartOffset+1:closing], " \t\r\n") // comments
		return d.splice(v.StartOffset+1, closing, string(inside)+separator+text+d.newline+d.lineIndent(v.StartOffset))
	}
	last := all[len(all)-1]
	if trailing {
		text += ","
		last.end = last.comma
	}
	tail := bytes.TrimRight(d.text[last.end:closing], " \t\r\n") // comments, which belong to what stands before them
	if endsInLineComment(tail) {
		separator = d.newline + d.lineIndent(v.StartOffset) + d.unit
	}
	text = string(tail) + separator + text
	if !trailing {
		text = "," + text
	}
	return d.splice(last.end, last.end+len(tail), text)
}

func (d *document) render(name string, content any, indent string, multiline bool) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if multiline {
		encoder.SetIndent(indent, d.unit)
	}
	if err := encoder.Encode(content); err != nil {
		return "", err
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if name != "" {
		text = strconv.Quote(name) + ": " + text
	}
	return strings.ReplaceAll(text, "\n", d.newline), nil
}

// replace puts other content in place of a value.
func (d *document) replace(v *hujson.Value, content any) error {
	text, err := d.render("", content, d.lineIndent(v.StartOffset), bytes.IndexByte(d.text[v.StartOffset:v.EndOffset], '\n') >= 0)
	if err != nil {
		return err
	}
	return d.splice(v.StartOffset, v.EndOffset, text)
}

// remove takes out an item, and leaves the comments around it and between its name and its value.
func (d *document) remove(v *hujson.Value, index int) error {
	all, trailing := items(v)
	if index < 0 || index >= len(all) {
		return errors.New("no such item")
	}
	gone := all[index]
	behind := gone.end
	if trailing || index < len(all)-1 {
		behind = gone.comma
	}
	around := bytes.Clone(d.text[gone.before:gone.start])
	if object, ok := v.Value.(*hujson.Object); ok {
		around = append(append(around, object.Members[index].Name.AfterExtra...), object.Members[index].Value.BeforeExtra...)
	}
	if behind == gone.comma {
		around = append(around, d.text[gone.end:gone.comma-1]...)
	}
	before := bytes.TrimRight(around, " \t\r\n")
	if endsInLineComment(before) && !bytes.HasPrefix(d.text[behind:], []byte(d.newline)) {
		before = append(before, d.newline...)
	}
	switch {
	case len(all) == 1:
		after := d.text[behind : v.EndOffset-1]
		if len(before) == 0 && len(bytes.TrimSpace(after)) == 0 {
			after = nil
		}
		return d.splice(v.StartOffset+1, v.EndOffset-1, string(before)+string(after))
	case index < len(all)-1 || trailing:
		return d.splice(gone.before, behind, string(before))
	}
	// The last one, without a comma: the comma of the one before it goes too.
	previous := all[index-1]
	between := d.text[previous.end : previous.comma-1]
	return d.splice(previous.end, behind, string(between)+string(before))
}

// endsInLineComment reports whether text must be followed by a new line. It may say so of a comment that is closed.
func endsInLineComment(text []byte) bool {
	return bytes.Contains(text[bytes.LastIndexByte(text, '\n')+1:], []byte("//"))
}

// isEmpty reports whether an object or an array holds nothing, not even a comment.
func (d *document) isEmpty(v *hujson.Value) bool {
	all, _ := items(v)
	return len(all) == 0 && len(bytes.TrimSpace(d.text[v.StartOffset+1:v.EndOffset-1])) == 0
}

func (d *document) splice(from, to int, text string) error {
	spliced := bytes.Join([][]byte{d.text[:from], []byte(text), d.text[to:]}, nil)
	return d.set(spliced)
}
