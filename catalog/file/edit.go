package catalogfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// Edit is a catalogue file that is being edited.
type Edit struct {
	path string
	doc  *catalog.Document
	text layout
	root *hujson.Object
	puts []catalog.Name
}

// edited returns the content after the edit; nil if there was none.
func edited(path string, before []byte, edit func(*Edit) error) ([]byte, error) {
	if before == nil {
		before = []byte(emptyFile)
	}
	before = withoutMark(before)
	doc, err := load(before)
	if err != nil {
		return nil, damaged(path, err)
	}
	value, err := parseComments(before)
	if err != nil {
		return nil, damaged(path, err) // not after load
	}
	root, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("the catalogue is no object") // not after load
	}
	e := &Edit{path: path, doc: doc, text: layoutOf(before, root), root: root}
	if err := edit(e); err != nil || len(e.puts) == 0 {
		return nil, err
	}
	after := bytes.TrimSuffix(value.Pack(), []byte("\n")) // which parsing has put there
	return after, e.check(after)
}

// Catalog returns what the file said before the edit, rulings that have expired included.
func (e *Edit) Catalog() *catalog.Catalog { return e.doc.Catalog }

// Put describes a tool as the entry does, in place of what the file said of that tool. The entry's aliases and source
// are those of the group that it comes to stand in. Comments, one line each, go in front of it if it is new to the file.
func (e *Edit) Put(entry catalog.Entry, comments ...string) error {
	if strings.ContainsFunc(strings.Join(comments, ""), unicode.IsControl) {
		return errors.New("a comment has one line, and no control characters")
	}
	servers, err := e.servers()
	if err != nil {
		return err
	}
	name := catalog.Name{Server: entry.Server, Tool: entry.Tool, BuiltIn: entry.BuiltIn}
	e.puts = append(e.puts, name)
	groups := groupsOf(servers)
	var home *group
	for _, g := range groups {
		if !g.holds(name) {
			continue
		}
		switch tool, names, at := g.find(name); {
		case at >= 0 && len(names.Elements) == 1:
			return e.rewrite(tool, entry)
		case at >= 0:
			removeElement(names, at)
			return e.text.add(g.tools, 4, entryText(entry, e.text.newline+e.text.indent(4)), nil)
		}
		if !g.clashes(name, groups) {
			home = g
		}
	}
	if home == nil {
		if home, err = e.newGroup(servers, entry); err != nil {
			return err
		}
	}
	return e.text.add(home.tools, 4, entryText(entry, e.text.newline+e.text.indent(4)), comments)
}

func (e *Edit) servers() (*hujson.Array, error) {
	if find(e.root, "servers") == nil {
		if err := e.text.addMember(e.root, 1, "servers", "[]"); err != nil {
			return nil, err
		}
	}
	servers, ok := find(e.root, "servers").(*hujson.Array)
	if !ok {
		return nil, errors.New("servers are no list") // not after load
	}
	return servers, nil
}

func (e *Edit) newGroup(servers *hujson.Array, entry catalog.Entry) (*group, error) {
	inner := e.text.newline + e.text.indent(3)
	head := `"server": ` + quote(entry.Server)
	if entry.BuiltIn {
		head = `"builtIn": true`
	}
	text := "{" + inner + head + "," + inner + `"tools": []` + e.text.newline + e.text.indent(2) + "}"
	if err := e.text.add(servers, 2, text, nil); err != nil {
		return nil, err
	}
	return groupOf(&servers.Elements[len(servers.Elements)-1]), nil
}

// rewrite gives an object that describes this tool alone the entry's meaning, and leaves its names and note alone.
func (e *Edit) rewrite(object *hujson.Object, entry catalog.Entry) error {
	want := entryFields(entry)
	for i := len(object.Members) - 1; i >= 0; i-- {
		key := object.Members[i].Name.Value.(hujson.Literal).String()
		if key == "names" || key == "note" {
			continue
		}
		at := slices.IndexFunc(want, func(f field) bool { return f.key == key })
		if at < 0 {
			removeMember(object, i)
			continue
		}
		value, err := hujson.Parse([]byte(want[at].json))
		if err != nil {
			return err
		}
		if member := &object.Members[i].Value; !bytes.Equal(minimal(member.Value), minimal(value.Value)) {
			member.BeforeExtra = append(member.BeforeExtra, inside(member.Value)...)
			member.Value = value.Value
		}
		want = slices.Delete(want, at, at+1)
	}
	for _, f := range want {
		if f.key == "note" {
			continue
		}
		if err := e.text.addMember(object, 5, f.key, f.json); err != nil {
			return err
		}
	}
	return nil
}

func minimal(v hujson.ValueTrimmed) []byte {
	value := hujson.Value{Value: v}.Clone()
	value.Minimize()
	return value.Pack()
}

// check makes sure, before anybody sees it, that the edited file is valid and says the same of every other tool, of the
// policy and of the aliases of VMs. Whether it says of the tool what was wanted is not looked at, nor are the servers'
// default machines.
func (e *Edit) check(after []byte) error {
	if len(after) > MaxSize {
		return fmt.Errorf("the catalogue would have more than %d bytes", MaxSize)
	}
	doc, err := load(after)
	if err != nil {
		return fmt.Errorf("%s was not changed: it would no longer be valid: %w", e.path, err)
	}
	before, now := others(e.doc, e.puts), others(doc, e.puts)
	if !bytes.Equal(before, now) {
		return fmt.Errorf("%s was not changed: the edit would change what it says of other tools", e.path)
	}
	return nil
}

// others writes all that a document says but of these tools.
func others(doc *catalog.Document, but []catalog.Name) []byte {
	var entries []string
	for e := range doc.Catalog.Entries() {
		if !slices.ContainsFunc(but, func(name catalog.Name) bool { return describes(e, name) }) {
			entries = append(entries, encoded(e))
		}
	}
	slices.Sort(entries)
	return []byte(encoded([]any{entries, doc.Policy, doc.VMAliases}))
}

func describes(e *catalog.Entry, name catalog.Name) bool {
	return slices.ContainsFunc(append([]string{e.Server}, e.Aliases...), func(server string) bool {
		return catalog.Name{Server: server, Tool: e.Tool, BuiltIn: e.BuiltIn}.Same(name)
	})
}

// group is one member of "servers".
type group struct {
	servers []string
	builtIn bool
	tools   *hujson.Array
}

func groupsOf(servers *hujson.Array) []*group {
	var groups []*group
	for i := range servers.Elements {
		if g := groupOf(&servers.Elements[i]); g != nil {
			groups = append(groups, g)
		}
	}
	return groups
}

func groupOf(v *hujson.Value) *group {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	g := &group{servers: []string{text(find(object, "server"))}, builtIn: text(find(object, "builtIn")) == "true"}
	if aliases, ok := find(object, "aliases").(*hujson.Array); ok {
		for _, alias := range aliases.Elements {
			g.servers = append(g.servers, text(alias.Value))
		}
	}
	if g.tools, ok = find(object, "tools").(*hujson.Array); !ok {
		return nil
	}
	return g
}

// holds reports whether an entry of this name belongs in the group.
func (g *group) holds(name catalog.Name) bool {
	return slices.ContainsFunc(g.servers, func(server string) bool {
		return catalog.Name{Server: server, Tool: name.Tool, BuiltIn: g.builtIn}.Same(name)
	})
}

// find returns the object that describes a tool that the group holds, and its place among the names there; -1 for none.
func (g *group) find(name catalog.Name) (tool *hujson.Object, names *hujson.Array, at int) {
	for i := range g.tools.Elements {
		tool, ok := g.tools.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		names, ok := find(tool, "names").(*hujson.Array)
		if !ok {
			continue
		}
		at := slices.IndexFunc(names.Elements, func(v hujson.Value) bool {
			return catalog.Name{Server: name.Server, Tool: text(v.Value), BuiltIn: g.builtIn}.Same(name)
		})
		if at >= 0 {
			return tool, names, at
		}
	}
	return nil, nil, -1
}

// clashes reports whether another group describes a tool of this name for one of the group's servers.
func (g *group) clashes(name catalog.Name, groups []*group) bool {
	for _, server := range g.servers {
		name.Server = server
		for _, other := range groups {
			if _, _, at := other.find(name); at >= 0 && other.holds(name) {
				return true
			}
		}
	}
	return false
}

func find(object *hujson.Object, key string) hujson.ValueTrimmed {
	for _, m := range object.Members {
		if text(m.Name.Value) == key {
			return m.Value.Value
		}
	}
	return nil
}

func text(v hujson.ValueTrimmed) string {
	literal, _ := v.(hujson.Literal)
	return literal.String()
}

func quote(text string) string { return string(hujson.String(text)) }

// field is a member of a tool's object.
type field struct{ key, json string }

func entryFields(e catalog.Entry) []field {
	fields := []field{{"class", quote(e.Class.String())}}
	add := func(key string, value any, given bool) {
		if given {
			fields = append(fields, field{key, spaced(encoded(value))})
		}
	}
	add("kind", e.Kind, e.Kind != catalog.Ordinary)
	add("scope", e.Scope, e.Scope != catalog.Anywhere)
	add("when", e.When, len(e.When) > 0)
	add("target", e.Target, len(e.Target) > 0)
	add("container", e.Container, len(e.Container) > 0)
	add("form", e.Form, e.Form != catalog.NameForm)
	add("indirect", e.Indirect, len(e.Indirect) > 0)
	add("command", e.Command, len(e.Command) > 0)
	add("serverDefault", e.ServerDefault, e.ServerDefault)
	add("note", e.Note, e.Note != "")
	add("ruling", e.Ruling, e.Ruling != nil)
	return fields
}

// encoded writes plain data as JSON, in which a person can read every character.
func encoded(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return strings.TrimSpace(b.String())
}

// spaced writes compact JSON as a person would, all in one line.
func spaced(compact string) string {
	value, err := hujson.Parse([]byte(compact))
	if err != nil {
		return compact
	}
	for v := range value.All() {
		switch c := v.Value.(type) {
		case *hujson.Array:
			for i := 1; i < len(c.Elements); i++ {
				c.Elements[i].BeforeExtra = hujson.Extra(" ")
			}
		case *hujson.Object:
			for i := range c.Members {
				if i > 0 {
					c.Members[i].Name.BeforeExtra = hujson.Extra(" ")
				}
				c.Members[i].Value.BeforeExtra = hujson.Extra(" ")
			}
		}
	}
	return string(value.Pack())
}

// entryText writes a tool's object, with a line of its own for its ruling.
func entryText(e catalog.Entry, newline string) string {
	var b strings.Builder
	b.WriteString(`{"names": [` + quote(e.Tool) + "]")
	for _, f := range entryFields(e) {
		gap := ", "
		if f.key == "ruling" || f.key == "note" {
			gap = "," + newline + " "
		}
		b.WriteString(gap + quote(f.key) + ": " + f.json)
	}
	b.WriteString("}")
	return b.String()
}
