package catalog

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Load reads a catalogue file: one JSON document in UTF-8, with or without a byte order mark.
//
//	{
//	  "version": 1,
//	  "servers": [{
//	    "server": "ProxmoxMCP-Plus", "aliases": ["proxmox"], "source": "owner/repository@revision",
//	    "tools": [{"names": ["start_vm", "stop_vm"], "class": "mutating", "target": ["vmid"], "container": ["node"]}]
//	  }],
//	  "aliases": {"my-pve": "ProxmoxMCP-Plus"},
//	  "serverDefaults": {"my-ssh": "web01"},
//	  "policy": {"onMutating": "guard", "maxAge": "30m", "localVM": "build01"},
//	  "vmAliases": {"web": "web01"}
//	}
//
// A group of tools of the agent host itself has "builtIn": true in place of "server". The other keys of a tool are the
// JSON names of [Entry]. Keys "aliases" and "serverDefaults" at the top are a user's own server keys, as in
// [Catalog.WithAlias] and [Catalog.WithServerDefault]; an alias is checked when the file is merged with others. Keys
// "policy" and "vmAliases" are what [LoadDocument] returns beside the catalogue.
//
// Nothing is accepted in silence: an unknown key, a key given twice or again in another case, a name that a host would
// refuse, a tool described twice, a second document, a list of an entry with more than 32 members. The error joins a [*LoadError] for each, at most twenty.
func Load(data []byte) (*Catalog, error) {
	d, err := LoadDocument(data)
	if err != nil {
		return nil, err
	}
	return d.Catalog, nil
}

// LoadDocument reads a catalogue file as [Load] does, and returns all that it says.
func LoadDocument(data []byte) (*Document, error) {
	var l loader
	l.read(data)
	place := func(i int) string { return fmt.Sprintf("line %d", l.line(l.places[i])) }
	checkEntries(l.entries, place, func(i int, problem error) {
		l.fail(l.places[i], "%v", problem)
	})
	return l.done()
}

// loadBuiltIn reads entries that a test has checked as LoadDocument does. A hook reads them before each tool call.
func loadBuiltIn(data []byte) (*Catalog, error) {
	var l loader
	l.read(data)
	d, err := l.done()
	if err != nil {
		return nil, err
	}
	return d.Catalog, nil
}

func (l *loader) read(data []byte) {
	if root, ok := l.parse(data); ok {
		l.root(root)
	}
}

func (l *loader) done() (*Document, error) {
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	l.doc.Catalog = build([][]*listed{l.entries}, l.aliases, l.machines)
	return &l.doc, nil
}

type loader struct {
	document
	doc      Document
	entries  []*listed
	places   []int // of the names of entries
	aliases  map[string]string
	machines map[string]string
}

// fields names the keys that an object may have.
type fields map[string]func(node)

func (l *loader) root(root node) {
	version := ""
	l.object(root, fields{
		"version": func(n node) {
			if version = n.text; version != "1" || n.kind != '1' {
				l.fail(n.at, "version must be 1")
			}
		},
		"servers":        func(n node) { l.each(n, l.server) },
		"aliases":        func(n node) { l.aliases = l.serverKeys(n, checkAlias) },
		"serverDefaults": func(n node) { l.machines = l.serverKeys(n, checkServerDefault) },
		"policy":         l.policy,
		"vmAliases":      l.vmAliases,
	})
	if version == "" && root.kind == '{' {
		l.fail(root.at, `"version": 1 is missing`)
	}
}

func (l *loader) server(n node) {
	var group Entry
	var tools node
	l.object(n, fields{
		"server":  l.text(&group.Server),
		"builtIn": l.flag(&group.BuiltIn),
		"aliases": l.texts(&group.Aliases),
		"source":  l.text(&group.Source),
		"tools":   func(n node) { tools = n },
	})
	if tools.kind == 0 {
		l.fail(n.at, `"tools" is missing`)
		return
	}
	if err := group.checkLengths(); err != nil {
		l.fail(n.at, "%v", err)
		return
	}
	before := len(l.entries)
	l.each(tools, func(n node) { l.tool(n, group) })
	if len(l.entries) > before {
		return // and each of them is checked
	}
	if err := group.checkServer(); err != nil {
		l.fail(n.at, "%v", err)
	}
}

func (l *loader) tool(n node, e Entry) {
	var names node
	classGiven := false
	l.object(n, fields{
		"names": func(n node) { names = n },
		"class": func(n node) { classGiven = true; l.word(&e.Class)(n) },
		"kind":  l.word(&e.Kind), "scope": l.word(&e.Scope), "form": l.word(&e.Form),
		"when": func(n node) {
			l.each(n, func(n node) { e.When = append(e.When, l.condition(n)) })
		},
		"target": l.texts(&e.Target), "container": l.texts(&e.Container),
		"indirect": l.texts(&e.Indirect), "command": l.texts(&e.Command),
		"serverDefault": l.flag(&e.ServerDefault),
		"note":          l.text(&e.Note),
		"ruling":        func(n node) { e.Ruling = l.ruling(n) },
	})
	if !classGiven {
		l.fail(n.at, `"class" is missing`)
	}
	if len(names.items) == 0 {
		l.fail(n.at, `"names" must list at least one tool`)
		return
	}
	l.each(names, func(n node) {
		named := e // whose lists all share: nobody changes an entry of a catalogue
		l.text(&named.Tool)(n)
		l.entries = append(l.entries, list(&named))
		l.places = append(l.places, n.at)
	})
}

func (l *loader) condition(n node) Condition {
	var c Condition
	l.object(n, fields{
		"arg": l.text(&c.Arg), "in": l.texts(&c.In), "absent": l.flag(&c.Absent), "class": l.word(&c.Class),
		"is": func(n node) { c.Is = new(bool); l.flag(c.Is)(n) },
	})
	return c
}

func (l *loader) ruling(n node) *Ruling {
	var r Ruling
	l.object(n, fields{
		"by": l.text(&r.By), "at": l.text(&r.At), "until": l.text(&r.Until), "basis": l.word(&r.Basis),
		"fingerprint": func(n node) {
			var f Fingerprint
			l.object(n, fields{
				"name": l.text(&f.Name), "description": l.text(&f.Description), "inputSchema": l.text(&f.InputSchema),
				"outputSchema": l.text(&f.OutputSchema), "annotations": l.text(&f.Annotations),
			})
			if err := f.check(); err != nil && n.kind == '{' {
				l.fail(n.at, "%v", err)
			}
			r.Fingerprint = &f
		},
	})
	return &r
}

func (l *loader) object(n node, known fields) {
	if n.kind != '{' {
		l.fail(n.at, "expected an object")
		return
	}
	for _, m := range n.members {
		read, ok := known[m.key]
		if !ok {
			l.fail(m.at, "unknown key %q; known here are %s", m.key, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		read(m.value)
	}
}

func (l *loader) each(n node, read func(node)) {
	if n.kind != '[' {
		l.fail(n.at, "expected a list")
		return
	}
	for _, item := range n.items {
		read(item)
	}
}

func (l *loader) text(to *string) func(node) {
	return func(n node) {
		if n.kind != '"' {
			l.fail(n.at, "expected text in quotes")
			return
		}
		*to = n.text
	}
}

func (l *loader) texts(to *[]string) func(node) {
	return func(n node) {
		l.each(n, func(n node) {
			var text string
			l.text(&text)(n)
			*to = append(*to, text)
		})
	}
}

func (l *loader) flag(to *bool) func(node) {
	return func(n node) {
		if *to = n.text == "true"; n.kind != 't' && n.kind != 'f' {
			l.fail(n.at, "expected true or false")
		}
	}
}

func (l *loader) word(to encoding.TextUnmarshaler) func(node) {
	return func(n node) {
		var text string
		l.text(&text)(n)
		if err := to.UnmarshalText([]byte(text)); err != nil && n.kind == '"' {
			l.fail(n.at, "%v", err)
		}
	}
}

// serverKeys reads an object whose keys are a user's names for servers.
func (l *loader) serverKeys(n node, check func(key, value string) error) map[string]string {
	if n.kind != '{' {
		l.fail(n.at, "expected an object")
		return nil
	}
	byServer := make(map[string]string, len(n.members))
	for _, m := range n.members {
		var value string
		l.text(&value)(m.value)
		if err := check(m.key, value); err != nil {
			l.fail(m.at, "%v", err)
		}
		if _, taken := byServer[fold(m.key)]; taken {
			l.fail(m.at, "server %q is given twice: a host may spell the two names alike", m.key)
		}
		byServer[fold(m.key)] = value
	}
	return byServer
}
