package catalogfile

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// layout is how a file is laid out.
type layout struct {
	newline string
	unit    string // of indentation
}

// layoutOf takes the unit from how far the first member stands in.
func layoutOf(data []byte, root *hujson.Object) layout {
	l := layout{newline: "\n", unit: "  "}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		l.newline = "\r\n"
	}
	if len(root.Members) > 0 {
		if unit := lastIndent(root.Members[0].Name.BeforeExtra); unit != "" {
			l.unit = unit
		}
	}
	return l
}

func (l layout) indent(depth int) string { return strings.Repeat(l.unit, depth) }

// lastIndent returns the blanks behind the last line break, if there is one and nothing but blanks behind it.
func lastIndent(extra hujson.Extra) string {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 || len(bytes.TrimLeft(extra[i+1:], " \t")) > 0 {
		return ""
	}
	return string(extra[i+1:])
}

// add puts an element behind the last of an array whose elements stand in by depth.
func (l layout) add(array *hujson.Array, depth int, element string, comments []string) error {
	value, err := hujson.Parse([]byte(element))
	if err != nil {
		return err
	}
	var first hujson.Extra
	var last *hujson.Value
	if n := len(array.Elements); n > 0 {
		first, last = array.Elements[0].BeforeExtra, &array.Elements[n-1]
	}
	value.BeforeExtra, value.AfterExtra = l.makeRoom(first, last, &array.AfterExtra, depth)
	line := l.newline + lastIndent(value.BeforeExtra)
	for _, comment := range comments {
		value.BeforeExtra = append(value.BeforeExtra, "// "+comment+line...)
	}
	array.Elements = append(array.Elements, value)
	return nil
}

// addMember puts a member behind the last of an object whose members stand in by depth.
func (l layout) addMember(object *hujson.Object, depth int, key, json string) error {
	value, err := hujson.Parse([]byte(json))
	if err != nil {
		return err
	}
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: value}
	m.Value.BeforeExtra = hujson.Extra(" ")
	var first hujson.Extra
	var last *hujson.Value
	if n := len(object.Members); n > 0 {
		first, last = object.Members[0].Name.BeforeExtra, &object.Members[n-1].Value
	}
	m.Name.BeforeExtra, m.Value.AfterExtra = l.makeRoom(first, last, &object.AfterExtra, depth)
	object.Members = append(object.Members, m)
	return nil
}

// makeRoom returns what goes in front of and behind a new last element. What stood between the last one and the closing
// bracket, a comment on the last one say, stays behind that one. The first element shows how elements are set apart.
func (l layout) makeRoom(first hujson.Extra, last *hujson.Value, closing *hujson.Extra, depth int) (before, after hujson.Extra) {
	lines := last == nil || bytes.IndexByte(first, '\n') >= 0 || bytes.IndexByte(*closing, '\n') >= 0
	if !lines {
		comments := leftOver(*closing)
		if comments != nil {
			*closing = nil
		}
		return append(comments, ' '), keepComma(last.AfterExtra)
	}
	comments, end := splitEnd(*closing)
	indent := lastIndent(first)
	if indent == "" {
		indent = l.indent(depth)
	}
	if last != nil {
		after = last.AfterExtra
	} else if len(end) == 0 {
		end = hujson.Extra(l.newline + l.indent(depth-1))
	}
	*closing = end
	return append(comments, l.newline+indent...), keepComma(after)
}

// keepComma returns what makes a trailing comma where there was one: an extra that is empty and not nil.
func keepComma(after hujson.Extra) hujson.Extra {
	if after == nil {
		return nil
	}
	return hujson.Extra{}
}

// splitEnd cuts the last line break and the blanks behind it off, with which a closing bracket is set on its line.
func splitEnd(extra hujson.Extra) (comments, end hujson.Extra) {
	trimmed := bytes.TrimRight(extra, " \t")
	if !bytes.HasSuffix(trimmed, []byte("\n")) {
		return bytes.Clone(extra), nil
	}
	trimmed = bytes.TrimSuffix(bytes.TrimSuffix(trimmed, []byte("\n")), []byte("\r"))
	return bytes.TrimRight(bytes.Clone(extra[:len(trimmed)]), " \t\r\n"), bytes.Clone(extra[len(trimmed):])
}

// removeElement takes an element away, and leaves the comments around it.
func removeElement(array *hujson.Array, at int) {
	removed := array.Elements[at]
	array.Elements = append(array.Elements[:at], array.Elements[at+1:]...)
	left := leftOver(removed.BeforeExtra, removed.AfterExtra)
	switch {
	case at < len(array.Elements):
		array.Elements[at].BeforeExtra = append(left, array.Elements[at].BeforeExtra...)
	case at == 0:
		array.AfterExtra = append(left, array.AfterExtra...)
	default:
		array.AfterExtra = append(closeUp(&array.Elements[at-1], removed.AfterExtra), append(left, array.AfterExtra...)...)
	}
}

// removeMember takes a member away, and leaves the comments around it.
func removeMember(object *hujson.Object, at int) {
	removed := object.Members[at]
	object.Members = append(object.Members[:at], object.Members[at+1:]...)
	left := leftOver(removed.Name.BeforeExtra, removed.Name.AfterExtra,
		removed.Value.BeforeExtra, inside(removed.Value.Value), removed.Value.AfterExtra)
	switch {
	case at < len(object.Members):
		object.Members[at].Name.BeforeExtra = append(left, object.Members[at].Name.BeforeExtra...)
	case at == 0:
		object.AfterExtra = append(left, object.AfterExtra...)
	default:
		object.AfterExtra = append(closeUp(&object.Members[at-1].Value, removed.Value.AfterExtra), append(left, object.AfterExtra...)...)
	}
}

// closeUp makes a value the last one: with a trailing comma where the one behind it had one. It returns the comment that
// stood in front of its comma.
func closeUp(last *hujson.Value, removedAfter hujson.Extra) hujson.Extra {
	if removedAfter != nil {
		last.AfterExtra = append(hujson.Extra{}, last.AfterExtra...)
		return nil
	}
	moved := leftOver(last.AfterExtra)
	last.AfterExtra = nil
	return moved
}

// inside joins the comments in a list or an object.
func inside(v hujson.ValueTrimmed) hujson.Extra {
	var left hujson.Extra
	switch c := v.(type) {
	case *hujson.Array:
		for _, e := range c.Elements {
			left = append(left, leftOver(e.BeforeExtra, inside(e.Value), e.AfterExtra)...)
		}
		left = append(left, leftOver(c.AfterExtra)...)
	case *hujson.Object:
		for _, m := range c.Members {
			left = append(left, leftOver(m.Name.BeforeExtra, m.Name.AfterExtra, m.Value.BeforeExtra, inside(m.Value.Value), m.Value.AfterExtra)...)
		}
		left = append(left, leftOver(c.AfterExtra)...)
	}
	return left
}

// leftOver joins what holds a comment. What is blank is dropped.
func leftOver(extras ...hujson.Extra) hujson.Extra {
	var left hujson.Extra
	for _, extra := range extras {
		if len(bytes.TrimSpace(extra)) > 0 {
			left = append(left, extra...)
		}
	}
	return left
}
