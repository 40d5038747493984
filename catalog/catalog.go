// Package catalog answers one question about a tool of an AI agent: what is it? Read-only, mutating, or unknown, and if
// it acts on a machine, which of its arguments names that machine.
//
// Unknown is the normal case and is not safe. The package is pure: no network, no clock, no files, no environment.
//
//	c, err := catalog.Default()
//	name, _ := c.ParseToolName("mcp__proxmox__stop_vm")
//	result := c.ClassifyCall(name, map[string]any{"node": "pve1", "vmid": "100"})
//	// result.Class == catalog.Mutating, result.Targets[0].Value == "100"
//
// # How a tool is found
//
// Users choose the keys under which hosts know MCP servers, and hosts rewrite names: they change case, and turn dots,
// dashes and spaces into underscores. So a server is matched by its project name or an alias, and two ASCII spellings
// that a host may give one name are one name here. A catalogue that holds both is refused.
//
// A tool whose server is not recognised is looked up by its bare name. That may only make a verdict stricter: when
// every entry with that tool name says mutating (or undo), so does the verdict; otherwise it is unknown. A tool is never
// read-only, a checkpoint or local because some other server has a harmless tool of that name, and its arguments are
// not read, since they may mean something else there.
//
// # Built-in data
//
// [Default] describes servers as they were at the revisions that each entry's Source names. Its class for a shell is
// Unknown: what a command line does is not known by the name of the shell. A run of an Ansible playbook is Mutating with
// check mode too, because a task may opt out of it. The clone, failover test and sweep tools of Zerto AI Rewind are
// Mutating and name no target that a call could show, so that a human confirms each.
package catalog

import (
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

//go:embed defaults.json
var defaults []byte

var loadDefaults = sync.OnceValues(func() (*Catalog, error) { return loadBuiltIn(defaults) })

// Default returns the built-in catalogue. All callers share one, which is safe since a Catalog never changes. The error
// is that of [Load] and means a broken build.
func Default() (*Catalog, error) { return loadDefaults() }

// Catalog is a set of entries. It never changes after it was made and is safe for concurrent use; methods named With
// derive another. The zero value is empty: to it every tool is unknown.
type Catalog struct {
	layers   [][]*listed       // a later layer replaces what it names again
	aliases  map[string]string // a user's key for a server, folded, to the server's name
	machines map[string]string // a user's key for a server, folded, to the machine it acts on by default

	index   map[string]*listed // by folded server and tool
	inForce []*listed          // that no later layer replaced
	byTool  map[string]Verdict // by folded tool, for servers that are not recognised
	servers map[string]bool    // folded names and aliases
}

// listed is an entry with what it is found by.
type listed struct {
	Entry
	servers []string // folded; none for a built-in
	keys    []string
}

// New makes a catalogue of these entries. The error joins one for each entry that is invalid or names a tool that an
// earlier one names too. Entries count from 0.
func New(entries ...Entry) (*Catalog, error) {
	var problems []error
	layer := make([]*listed, len(entries))
	for i := range entries {
		layer[i] = list(entries[i].clone())
	}
	place := func(i int) string { return fmt.Sprintf("entry %d", i) }
	checkEntries(layer, place, func(i int, problem error) {
		problems = append(problems, fmt.Errorf("%s: %w", place(i), problem))
	})
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return build([][]*listed{layer}, nil, nil), nil
}

// Merge returns base with user laid over it: an entry, alias or default machine of user replaces the one of base that
// goes by the same name. This is a person's way to make a tool laxer as well as stricter. It fails when user has an
// alias for a server that neither knows.
func Merge(base, user *Catalog) (*Catalog, error) {
	aliases, machines := merged(base.aliases, user.aliases), merged(base.machines, user.machines)
	c := build(slices.Concat(base.layers, user.layers), aliases, machines)
	if err := c.checkAliases(); err != nil {
		return nil, err
	}
	return c, nil
}

// With returns a copy in which these entries replace those that go by the same names. The error is that of [New].
func (c *Catalog) With(entries ...Entry) (*Catalog, error) {
	over, err := New(entries...)
	if err != nil {
		return nil, err
	}
	return Merge(c, over)
}

// WithAlias returns a copy that also knows server under the key alias. It fails when the catalogue has no such server
// or when alias is not a name that a host could give a server.
func (c *Catalog) WithAlias(alias, server string) (*Catalog, error) {
	if err := checkAlias(alias, server); err != nil {
		return nil, err
	}
	over := &Catalog{aliases: map[string]string{fold(alias): server}}
	return Merge(c, over)
}

// WithServerDefault returns a copy that knows the machine on which the server of this key acts when a call names none.
// It fails when either is empty or not a plain name.
func (c *Catalog) WithServerDefault(server, machine string) (*Catalog, error) {
	if err := checkServerDefault(server, machine); err != nil {
		return nil, err
	}
	return Merge(c, &Catalog{machines: map[string]string{fold(server): machine}})
}

// Len returns the number of entries that are in force.
func (c *Catalog) Len() int { return len(c.inForce) }

// Entries yields a copy of each entry that is in force, in the order they were given.
func (c *Catalog) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, e := range c.inForce {
			if !yield(e.clone()) {
				return
			}
		}
	}
}

func build(layers [][]*listed, aliases, machines map[string]string) *Catalog {
	c := &Catalog{
		layers: layers, aliases: aliases, machines: machines,
		index: map[string]*listed{}, byTool: map[string]Verdict{}, servers: map[string]bool{},
	}
	all := slices.Concat(layers...)
	for _, e := range all {
		for _, key := range e.keys {
			if e.outranks(c.index[key]) {
				c.index[key] = e
			}
		}
		for _, server := range e.servers {
			c.servers[server] = true
		}
	}
	for _, e := range all {
		if slices.ContainsFunc(e.keys, func(key string) bool { return c.index[key] == e }) {
			c.inForce = append(c.inForce, e)
		}
	}
	c.indexToolNames()
	return c
}

// outranks reports whether the entry replaces one that was described before, or nil for none. A void one does not stand
// in front of one that says mutating.
func (e *listed) outranks(other *listed) bool {
	return e.Void == "" || other == nil || other.Class != Mutating
}

func (c *Catalog) indexToolNames() {
	for _, e := range c.inForce {
		if e.BuiltIn {
			continue
		}
		tool, verdict := fold(e.Tool), e.byNameAlone()
		if other, taken := c.byTool[tool]; taken && other != verdict {
			verdict = Verdict{}
		}
		c.byTool[tool] = verdict
	}
}

func (c *Catalog) checkAliases() error {
	var problems []error
	for _, alias := range slices.Sorted(maps.Keys(c.aliases)) {
		if server := c.aliases[alias]; !c.servers[fold(server)] {
			problems = append(problems, fmt.Errorf("alias %q is for server %q, which is not in the catalogue", alias, server))
		}
	}
	return errors.Join(problems...)
}

func merged(base, over map[string]string) map[string]string {
	m := maps.Clone(base)
	if m == nil {
		m = make(map[string]string, len(over))
	}
	maps.Copy(m, over)
	return m
}
