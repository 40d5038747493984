package catalogfile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// Order is a ruling to be made: somebody gives a tool a class.
type Order struct {
	Name  catalog.Name
	Class catalog.Class
	By    string
	At    time.Time
	Basis catalog.Basis
	// For is how long a ruling of read_only holds; zero means that it does not expire.
	For time.Duration
	// Fingerprint binds the ruling to the tool as it is defined now; nil binds it to the name alone.
	Fingerprint *catalog.Fingerprint
}

// Ruled is what a ruling did.
type Ruled struct {
	Path   string          `json:"path"`
	Before catalog.Verdict `json:"before"`
	After  catalog.Verdict `json:"after"`
	// Changed is false when the tool had the class already and nothing was written.
	Changed bool          `json:"changed"`
	Entry   catalog.Entry `json:"entry"`
}

// RefusedError says why a ruling cannot be made, by anyone or by an agent.
type RefusedError struct {
	Name   catalog.Name
	Reason string
}

// Error names the tool and the reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Name, e.Reason) }

// Rule writes a person's ruling into the file at path, which need not be there yet. Base is the built-in data that the
// file is laid over. It is for callers that know that a person rules: an agent has [AddMutating]. A tool that deletes or
// rolls back recovery points cannot become read_only, nor can a shell, whose calls are judged one by one.
func Rule(ctx context.Context, path string, base *catalog.Catalog, o Order) (*Ruled, error) {
	if o.Basis == catalog.AgentsOwn {
		return nil, errors.New("an agent's ruling goes through AddMutating")
	}
	return rule(ctx, path, base, o, func(known *catalog.Entry) (*catalog.Entry, error) {
		if o.Class != catalog.ReadOnly || known == nil {
			return known, nil
		}
		switch {
		case known.Kind == catalog.Undo:
			return nil, &RefusedError{o.Name, "it deletes or rolls back recovery points, so each call of it is a person's decision"}
		case known.BuiltIn && len(known.Command) > 0:
			return nil, &RefusedError{o.Name, "it runs command lines, each of which is judged by what it does"}
		}
		return known, nil
	})
}

// AddMutating makes a tool mutating on behalf of an agent, which by names the agent. It needs no person, since it can
// make a tool stricter only: one that is mutating without conditions stays as it is, and of one that was unknown no
// target is believed, so that a person goes on being asked. A tool that makes recovery points is refused, because a gate
// that asked for a guard before a guard would lock out every change.
func AddMutating(ctx context.Context, path string, base *catalog.Catalog, name catalog.Name, by string, at time.Time) (*Ruled, error) {
	o := Order{Name: name, Class: catalog.Mutating, By: by, At: at, Basis: catalog.AgentsOwn}
	return rule(ctx, path, base, o, func(known *catalog.Entry) (*catalog.Entry, error) {
		switch {
		case known == nil:
			return nil, nil
		case known.Kind == catalog.Checkpoint:
			return nil, &RefusedError{name, "it makes recovery points, and refusing those would lock out every change"}
		case known.Class == catalog.Mutating && len(known.When) == 0 && known.Scope == catalog.Anywhere:
			return nil, errAsStrict
		case known.Class == catalog.Unknown:
			return nil, nil
		}
		return known, nil
	})
}

// errAsStrict ends an edit that has nothing to do.
var errAsStrict = errors.New("the tool is as strict already")

// rule puts a new entry for the tool, with the targets of the one that keep returns, if any.
func rule(ctx context.Context, path string, base *catalog.Catalog, o Order, keep func(*catalog.Entry) (*catalog.Entry, error)) (*Ruled, error) {
	r := &Ruled{Path: path}
	err := Update(ctx, path, func(e *Edit) error {
		merged, err := catalog.Merge(base, e.Catalog())
		if err != nil {
			return damaged(path, err)
		}
		if merged, err = merged.AsOf(moment(o.At)); err != nil {
			return err
		}
		r.Before = merged.Classify(o.Name)
		r.After = r.Before
		known := merged.ClassifyCall(o.Name, nil).Entry
		if known != nil {
			r.Entry = *known
		}
		kept, err := keep(known)
		if err != nil {
			return err
		}
		entry := o.entry(kept)
		if err := e.Put(entry); err != nil {
			return err
		}
		over, err := merged.With(entry)
		if err != nil {
			return err
		}
		r.After, r.Entry, r.Changed = over.Classify(o.Name), entry, true
		return nil
	})
	if errors.Is(err, errAsStrict) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (o Order) entry(kept *catalog.Entry) catalog.Entry {
	e := catalog.Entry{Server: o.Name.Server, Tool: o.Name.Tool, BuiltIn: o.Name.BuiltIn, Class: o.Class}
	if kept != nil {
		e.Target, e.Container, e.Form, e.Indirect = kept.Target, kept.Container, kept.Form, kept.Indirect
		e.Command, e.ServerDefault, e.Note = kept.Command, kept.ServerDefault, kept.Note
		if kept.Kind == catalog.Undo && o.Class == catalog.Mutating {
			e.Kind = catalog.Undo
		}
	}
	e.Ruling = &catalog.Ruling{By: o.By, At: moment(o.At), Basis: o.Basis, Fingerprint: o.Fingerprint}
	if o.For > 0 {
		e.Ruling.Until = moment(o.At.Add(o.For))
	}
	return e
}
