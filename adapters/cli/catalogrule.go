package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const claimFlag = "i-am-a-human-operator"

// ruleLife is how long a ruling of read_only holds unless it says otherwise: long enough to be of use, and short enough
// that a tool which nobody looks at any more is asked about again.
const ruleLife = 90 * 24 * time.Hour

func (a *app) catalogRule() *cobra.Command {
	var from string
	var claimed bool
	expires := span(ruleLife)
	c := a.command(cobra.Command{
		Use:   "rule SERVER TOOL CLASS",
		Short: "Rule that a tool is read_only, mutating or unknown: a person's decision",
		Long: `Rule writes into the user's file who ruled what on a tool, when and on what basis. It asks at the terminal, since it can
make a tool laxer; SERVER is the key of its MCP server, or "-" for a tool of the agent host itself. A ruling of
read_only expires. With --fingerprint-from it is bound to the tool as that file defines it: the proxy takes a tool for
unknown again once its server has listed another description, schema or annotation. The hook and intercept see no
definitions and go by the name.`,
		Args: exactly("SERVER", "TOOL", "CLASS"),
	}, 0, func(ctx context.Context, args []string) error {
		o := catalogfile.Order{Name: toolName(nil, args[:2]), At: time.Now()}
		var err error
		if o.Class, err = parseClass(args[2]); err != nil {
			return err
		}
		if o.Class == catalog.ReadOnly {
			o.For = time.Duration(expires)
		}
		var tool *catalog.Definition
		if from != "" {
			if tool, err = definitionIn(from, o.Name); err != nil {
				return err
			}
			f, err := tool.Fingerprint()
			if err != nil {
				return fmt.Errorf("%s: %s: %w", from, o.Name, err)
			}
			o.Fingerprint = &f
		}
		if o.Basis, err = a.operator(ctx, claimed, o, tool); err != nil {
			return err
		}
		if o.By, err = a.person(); err != nil {
			return err
		}
		return a.ruling(ctx, o, catalogfile.Rule)
	})
	c.Flags().StringVar(&from, "fingerprint-from", "", "`file` with the server's answer to tools/list, to bind the ruling to")
	c.Flags().Var(&expires, "expires", "how long a ruling of read_only holds, 0 for ever")
	c.Flags().Lookup("expires").DefValue = "90d"
	c.Flags().BoolVar(&claimed, claimFlag, false, "rule without a terminal; the record says that nothing proved it")
	return c
}

// operator makes sure of a person, and says how.
func (a *app) operator(ctx context.Context, claimed bool, o catalogfile.Order, tool *catalog.Definition) (catalog.Basis, error) {
	if claimed {
		return catalog.OperatorClaimed, nil
	}
	if a.io.Operator == nil || !a.io.Operator() {
		return 0, &usageError{fmt.Errorf("only a person at a terminal may rule on a tool, and there is none here; "+
			"a person without one gives --%s, which is recorded", claimFlag)}
	}
	if tool != nil {
		a.say("%s says of itself: %q", o.Name, tool.Description)
		if o.Class == catalog.ReadOnly && tool.DeniesReadOnly() {
			a.say("It says too that it is not read-only.")
		}
	}
	_, _ = fmt.Fprintf(a.io.Err, "Every agent here will go by it that %s is %s. Type the tool's name, %s, to rule so: ",
		plain(o.Name.String()), o.Class, plain(o.Name.Tool))
	answer, err := a.readLine(ctx)
	if err != nil {
		return 0, err
	}
	if strings.TrimSpace(answer) != o.Name.Tool {
		return 0, errors.New("not confirmed, so nothing was done")
	}
	return catalog.OperatorProven, nil
}

func (a *app) catalogAddMutating() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "add-mutating SERVER TOOL",
		Short: "Make a tool mutating, which an agent may do too",
		Long: `Add-mutating can make a tool stricter only, so it asks nobody. What an agent says of a tool that nobody knew is not
believed as to its target: a person goes on being asked about each call.`,
		Args: exactly("SERVER", "TOOL"),
	}, 0, func(ctx context.Context, args []string) error {
		r := a.reader()
		o := catalogfile.Order{Name: toolName(nil, args), Class: catalog.Mutating, By: r.text(setAgent), At: time.Now(), Basis: catalog.AgentsOwn}
		err := r.err()
		if o.By == "" && err == nil {
			o.By, err = a.person()
		}
		if err != nil {
			return err
		}
		return a.ruling(ctx, o, addMutating)
	})
}

// ruledOn is what a ruling did.
type ruledOn struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	*catalogfile.Ruled

	// Recorded is false when the ruling stands in the file alone, and not in the ledger too.
	Recorded bool `json:"recorded"`
}

// writer writes a ruling into the file at path.
type writer func(ctx context.Context, path string, base *catalog.Catalog, o catalogfile.Order) (*catalogfile.Ruled, error)

func addMutating(ctx context.Context, path string, base *catalog.Catalog, o catalogfile.Order) (*catalogfile.Ruled, error) {
	return catalogfile.AddMutating(ctx, path, base, o.Name, o.By, o.At)
}

// addMutating is add-mutating over MCP.
func (a *app) addMutating(ctx context.Context, name catalog.Name, agent string) (changed bool, err error) {
	done, err := a.rule(ctx, catalogfile.Order{
		Name: name, Class: catalog.Mutating, By: agent, At: time.Now(), Basis: catalog.AgentsOwn,
	}, addMutating)
	if err != nil {
		return false, err
	}
	return done.Changed, nil
}

// rule writes a ruling into the user's file and into the record.
func (a *app) rule(ctx context.Context, o catalogfile.Order, write writer) (ruledOn, error) {
	base, err := catalog.Default()
	if err != nil {
		return ruledOn{}, err
	}
	path, err := a.catalogToWrite()
	if err != nil {
		return ruledOn{}, err
	}
	done, err := write(ctx, path, base, o)
	if err != nil {
		return ruledOn{}, err
	}
	r := ruledOn{Server: gate.ServerOf(o.Name), Tool: o.Name.Tool, Ruled: done}
	if !done.Changed {
		return r, nil
	}
	if err := a.record(ctx, ruledEvent(o, done)); err != nil {
		a.log.Warn("a ruling stands in the catalogue's file, but could not be recorded in the ledger", "file", path, "error", err)
		return r, nil
	}
	r.Recorded = true
	return r, nil
}

func (a *app) ruling(ctx context.Context, o catalogfile.Order, write writer) error {
	done, err := a.rule(ctx, o, write)
	if err != nil {
		return err
	}
	return a.result(done, func(t *table) {
		t.row("tool", o.Name.String())
		t.row("was", done.Before.Class.String())
		t.row("is", done.After.Class.String())
		if r := done.Entry.Ruling; done.Changed && r != nil {
			t.row("by", r.By)
			t.row("rests on", r.Basis.String())
			t.row("until", orDash(r.Until))
		}
		t.row("file", done.Path)
		if !done.Changed {
			t.row("note", "it is as strict already, so nothing was written")
		}
	})
}

func ruledEvent(o catalogfile.Order, done *catalogfile.Ruled) gate.Event {
	e := gate.Event{
		Kind: gate.EventRuled, Server: gate.ServerOf(o.Name), Tool: o.Name.Tool, Class: done.After.Class.String(),
		Reason: fmt.Sprintf("it was %s; the ruling rests on %s", done.Before.Class, o.Basis),
	}
	if o.Basis == catalog.AgentsOwn {
		e.Agent = o.By
	} else {
		e.By = o.By
	}
	if o.Fingerprint != nil {
		e.Evidence = []string{o.Fingerprint.String()}
	}
	return e
}

// record adds an event to the record of the ledger.
func (a *app) record(ctx context.Context, e gate.Event) error {
	l, err := a.ledger(ctx)
	if err != nil {
		return err
	}
	return l.Append(ctx, e)
}

// toolsListIn reads a server's answer to tools/list.
func toolsListIn(path string) (*catalog.ToolsList, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, catalogfile.MaxSize+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(data) > catalogfile.MaxSize {
		return nil, fmt.Errorf("%s has more than %d bytes", path, catalogfile.MaxSize)
	}
	list, err := catalog.ParseToolsList(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// definitionIn finds the one tool in a server's answer that a host would call so.
func definitionIn(path string, name catalog.Name) (*catalog.Definition, error) {
	list, err := toolsListIn(path)
	if err != nil {
		return nil, err
	}
	var found *catalog.Definition
	for i, tool := range list.Tools {
		if !name.Same(catalog.Name{Server: name.Server, Tool: tool.Name}) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s has two tools that a host may call %s", path, name.Tool)
		}
		found = &list.Tools[i]
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no tool %s", path, name.Tool)
	}
	return found, nil
}
