package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// catalogued is one entry in force, and where it comes from.
type catalogued struct {
	*catalog.Entry

	Origin string `json:"origin"` // "built-in", or the path of the user's file
}

type cataloguedList struct {
	Entries []catalogued `json:"entries"`
}

func (a *app) catalogList() *cobra.Command {
	var server, class string
	c := a.command(cobra.Command{
		Use:   "list [--server SERVER] [--class CLASS]",
		Short: "List the tools that the catalogue has",
		Args:  exactly(),
	}, 0, func(context.Context, []string) error {
		var only catalog.Class
		if class != "" {
			var err error
			if only, err = parseClass(class); err != nil {
				return err
			}
		}
		r, err := a.rules()
		if err != nil {
			return err
		}
		list := cataloguedList{Entries: []catalogued{}}
		for e := range r.catalog.Entries() {
			if (class == "" || e.Class == only) && (server == "" || isOf(e, server)) {
				list.Entries = append(list.Entries, catalogued{e, r.originOf(e)})
			}
		}
		return a.result(list, func(t *table) { showEntries(t, list.Entries) })
	})
	c.Flags().StringVar(&server, "server", "", "only tools of this `server`, \"-\" for those of agent hosts")
	c.Flags().StringVar(&class, "class", "", "only tools of this `class`: read_only, mutating or unknown")
	return c
}

func isOf(e *catalog.Entry, server string) bool {
	if server == "-" {
		return e.BuiltIn
	}
	asked := catalog.Name{Server: server, Tool: e.Tool}
	for _, name := range append([]string{e.Server}, e.Aliases...) {
		if asked.Same(catalog.Name{Server: name, Tool: e.Tool, BuiltIn: e.BuiltIn}) {
			return true
		}
	}
	return false
}

// originOf tells where an entry in force comes from.
func (r *rulebook) originOf(e *catalog.Entry) string {
	if r.file != nil {
		own := r.file.Catalog.ClassifyCall(e.Name(), nil).Entry
		if own != nil && own.Void == e.Void && own.Class == e.Class {
			return r.file.Path
		}
	}
	return "built-in"
}

func showEntries(t *table, entries []catalogued) {
	t.row("SERVER", "TOOL", "CLASS", "KIND", "TARGET", "ORIGIN")
	for _, e := range entries {
		t.row(orDash(e.Server), e.Tool, e.Class.String(), orDash(e.Kind.String()), orDash(strings.Join(e.Target, " ")), e.Origin)
	}
}

// shown is all that the catalogue says of one tool.
type shown struct {
	checked

	// Entry is what the tool was found under, null when it was not.
	Entry *catalogued `json:"entry"`
}

func (a *app) catalogShow() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "show [SERVER] TOOL",
		Short: "Show all that the catalogue says of a tool, and who ruled on it",
		Long: `Show prints a tool's entry, with the arguments that name its target and the ruling that gave it its class. SERVER and TOOL
are as in check.`,
		Args: oneOrTwo,
	}, 0, func(_ context.Context, args []string) error {
		r, err := a.rules()
		if err != nil {
			return err
		}
		name := toolName(r.catalog, args)
		s := shown{checked: verdictOn(r.catalog, name)}
		if e := r.catalog.ClassifyCall(name, nil).Entry; e != nil {
			s.Entry = &catalogued{e, r.originOf(e)}
		}
		return a.result(s, func(t *table) { showEntry(t, s) })
	})
}

func showEntry(t *table, s shown) {
	showVerdict(t, s.checked)
	e := s.Entry
	if e == nil {
		return
	}
	if e.Scope == catalog.Local {
		t.row("scope", "the agent's own machine alone")
	}
	for _, list := range []struct {
		name string
		args []string
	}{{"target", e.Target}, {"container", e.Container}, {"indirect", e.Indirect}, {"command", e.Command}} {
		if len(list.args) > 0 {
			t.row(list.name, strings.Join(list.args, " "))
		}
	}
	for _, c := range e.When {
		t.row("when", condition(c))
	}
	if e.Note != "" {
		t.row("note", e.Note)
	}
	if e.Source != "" {
		t.row("source", e.Source)
	}
	t.row("origin", e.Origin)
	if r := e.Ruling; r != nil {
		t.row("ruled by", r.By)
		t.row("ruled at", r.At)
		t.row("rests on", r.Basis.String())
		t.row("until", orDash(r.Until))
		fingerprint := "-"
		if r.Fingerprint != nil {
			fingerprint = r.Fingerprint.String()
		}
		t.row("bound to", fingerprint)
	}
}

func condition(c catalog.Condition) string {
	switch {
	case c.Absent:
		return fmt.Sprintf("%s is not given: %s", c.Arg, c.Class)
	case c.Is != nil:
		return fmt.Sprintf("%s is %t: %s", c.Arg, *c.Is, c.Class)
	}
	return fmt.Sprintf("%s is one of %s: %s", c.Arg, strings.Join(c.In, ", "), c.Class)
}

// parseClass is for an argument.
func parseClass(text string) (catalog.Class, error) {
	var class catalog.Class
	if err := class.UnmarshalText([]byte(text)); err != nil {
		return class, &usageError{errors.New("CLASS is read_only, mutating or unknown")}
	}
	return class, nil
}
