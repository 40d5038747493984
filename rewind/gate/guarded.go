package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const (
	// lookups is how many targets of one call are looked up at once.
	lookups = 8
	// clockMargin is how far ahead of the server's clock, which tells whole seconds, a checkpoint's may be.
	clockMargin = time.Minute
)

// finding is what is known of one target: its guard, or why there is none.
type finding struct {
	guard   *rewind.Guard
	lacking string // why no guard lets the call run, though the VM is known
	err     error
}

// guarded decides on a call that changes machines. Of several objections the strictest wins: one that is broken, then a
// guard that is missing, then a name that means no VM or several.
func (g *Gate) guarded(ctx context.Context, call Call, r catalog.Result) Verdict {
	v := Verdict{Class: r.Class, Targets: names(r.Targets)}
	guards, err := g.guards()
	if err != nil {
		v.Reason = fmt.Sprintf("Whether %s may run depends on guards, and they cannot be looked up (%v). It did not run.", call, err)
		return v
	}
	findings := make([]finding, len(v.Targets))
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, target := range v.Targets {
		group.Go(func() error {
			findings[i] = g.look(ctx, guards, target)
			return nil
		})
	}
	_ = group.Wait() // findings carry the errors

	var unguarded, lacking, unresolved []string
	for i, f := range findings {
		switch {
		case unresolvable(f.err):
			unresolved = append(unresolved, f.err.Error())
		case f.err != nil:
			v.Guards = nil
			v.Reason = fmt.Sprintf("Whether %q is guarded could not be found out (%v). %s did not run. To see what is wrong: zerto-rewind find %s",
				v.Targets[i], f.err, call, quoted(v.Targets[i]))
			return v
		case f.guard == nil:
			unguarded = append(unguarded, v.Targets[i])
			lacking = append(lacking, fmt.Sprintf("%q: %s", v.Targets[i], f.lacking))
		default:
			v.Guards = append(v.Guards, f.guard.Record())
		}
	}
	switch {
	case len(unguarded) > 0:
		v.Guards = nil
		v.Next, v.NextCommand = nextCall(unguarded, call.Name), nextCommand(unguarded, call.Name)
		v.Reason = fmt.Sprintf("%s changes a machine without a guard (%s). It did not run. It may run after: %s, or on the command line: %s",
			call, strings.Join(lacking, "; "), v.Next, v.NextCommand)
	case len(unresolved) > 0:
		v.Decision, v.Guards = Ask, nil
		v.Reason = call.question("It changes a machine that Zerto does not know as exactly one VM: " + strings.Join(unresolved, "; ") + ".")
	default:
		v.Decision = Allow
		v.Reason = call.sentence("every machine it changes is guarded")
	}
	return v
}

func (g *Gate) look(ctx context.Context, guards Guards, target string) (f finding) {
	defer func() {
		if recover() != nil {
			f = finding{err: errors.New("the source of guards failed")}
		}
	}()
	found, err := guards.Guards(ctx, target, g.policy.MaxAge)
	if err != nil {
		return finding{err: err}
	}
	f.lacking = "no guard in the last " + inWords(g.policy.MaxAge)
	for _, guard := range found {
		lacking := g.lacking(guard)
		if lacking == "" {
			return finding{guard: guard}
		}
		f.lacking = lacking
	}
	return f
}

// lacking says why a guard lets nothing run, or "" when it does. The age is that of the oldest checkpoint, by the
// server's clock: a tag can claim any time.
func (g *Gate) lacking(guard *rewind.Guard) string {
	if !guard.Proven() {
		return "its guard is not proven"
	}
	record := guard.Record()
	oldest := slices.MinFunc(record.Checkpoints, func(a, b rewind.TaggedCheckpoint) int { return a.Timestamp.Compare(b.Timestamp) })
	newest := slices.MaxFunc(record.Checkpoints, func(a, b rewind.TaggedCheckpoint) int { return a.Timestamp.Compare(b.Timestamp) })
	switch age := record.ProvenAt.Sub(oldest.Timestamp); {
	case age > g.policy.MaxAge:
		return fmt.Sprintf("its guard is %s old, more than %s", inWords(age.Round(time.Second)), inWords(g.policy.MaxAge))
	case newest.Timestamp.Sub(record.ProvenAt) > clockMargin:
		return "its guard has a checkpoint from the future"
	case !guard.Complete():
		return "its guard lacks the checkpoint of a VPG that protects it"
	}
	return ""
}

// unresolvable reports whether a name means no VM or several, which a person may know better.
func unresolvable(err error) bool {
	var none *rewind.NotFoundError
	var several *rewind.AmbiguousVMError
	return errors.As(err, &none) || errors.As(err, &several)
}

func names(targets []catalog.Target) []string {
	var all []string
	for _, t := range targets {
		if !slices.Contains(all, t.Value) {
			all = append(all, t.Value)
		}
	}
	return all
}

func nextCall(vms []string, name catalog.Name) string {
	// Text and lists of text always have a JSON form.
	args, _ := json.Marshal(struct {
		VMs    []string `json:"vms"`
		Action string   `json:"action"`
	}{vms, name.String()})
	return "zerto_guard_before_mutate " + string(args)
}

func nextCommand(vms []string, name catalog.Name) string {
	words := []string{"zerto-rewind", "protect"}
	for _, vm := range append(slices.Clone(vms), "--action", name.String()) {
		words = append(words, quoted(vm))
	}
	return strings.Join(words, " ")
}
