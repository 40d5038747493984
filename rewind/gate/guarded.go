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

// finding is what is known of one target: the record of its guard, or why there is none.
type finding struct {
	guard   *rewind.GuardRecord
	lacking string // why no guard lets the call run, though the VM is known
	err     error
}

// guarded decides on a call that changes machines. Of several objections the strictest wins: one that is broken, then a
// guard that is missing, then a name that means no VM or several, then machines that the call does not show.
func (g *Gate) guarded(ctx context.Context, ledger Ledger, call Call, r catalog.Result) Verdict {
	v := Verdict{Class: r.Class, Targets: names(r.Targets)}
	findings, err := g.lookAll(ctx, ledger, v.Targets)
	if err != nil {
		v.Reason = fmt.Sprintf("Whether %s may run depends on guards, and they cannot be looked up (%v). It did not run.", call, err)
		return v
	}
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
			v.Guards = append(v.Guards, *f.guard)
		}
	}
	switch {
	case len(unguarded) > 0 && (g.policy.OnMutating != catalog.GuardFirst || ledger == nil):
		v.Guards = nil
		v.Next, v.NextCommand = nextCall(unguarded, call.Name), nextCommand(unguarded, call.Name)
		v.Reason = fmt.Sprintf("%s changes a machine without a guard (%s). It did not run. It may run after: %s, or on the command line: %s",
			call, strings.Join(lacking, "; "), v.Next, v.NextCommand)
		return v
	case len(unguarded) > 0:
		made := g.tag(ctx, ledger, call, unguarded)
		if made.Decision != Allow {
			made.Class, made.Targets = v.Class, v.Targets
			return made
		}
		v.Guards = append(v.Guards, made.Guards...)
	}
	switch {
	case len(unresolved) > 0:
		v.Decision, v.Guards = Ask, nil
		v.Reason = call.question("It changes a machine that Zerto does not know as exactly one VM: " + strings.Join(unresolved, "; ") + ".")
	case !r.TargetKnown:
		v.Decision, v.Guards = Ask, nil
		v.Reason = call.question("The machines that its command line names are guarded, but it may reach others: " + r.TargetProblem + ".")
	default:
		v.Decision = Allow
		v.Reason = call.sentence("every machine it changes is guarded")
	}
	return v
}

// lookAll finds the guard of each target. Its error is one of the source of guards as a whole.
func (g *Gate) lookAll(ctx context.Context, ledger Ledger, targets []string) ([]finding, error) {
	findings := make([]finding, len(targets))
	claims := make([][]Claim, len(targets))
	for i, target := range targets {
		if ledger == nil {
			continue
		}
		var err error
		if claims[i], err = ledger.Claims(ctx, g.vmOf(target)); err != nil {
			return nil, fmt.Errorf("the ledger: %w", err)
		}
		findings[i].guard = g.fresh(claims[i])
	}
	if !slices.ContainsFunc(findings, func(f finding) bool { return f.guard == nil }) {
		return findings, nil
	}
	guards, err := g.guards()
	if err != nil {
		return nil, err
	}
	looking, cancel := withRoom(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, target := range targets {
		if findings[i].guard != nil {
			continue
		}
		group.Go(func() error {
			findings[i] = g.look(ctx, looking, ledger, guards, target, claims[i])
			return nil
		})
	}
	_ = group.Wait() // findings carry the errors
	return findings, nil
}

// vmOf returns the name under which Zerto knows a target.
func (g *Gate) vmOf(target string) string {
	if vm, isAlias := g.policy.Aliases[strings.ToLower(target)]; isAlias {
		return vm
	}
	return target
}

// errLate ends a look-up that has used up its part of the time there is for a verdict.
var errLate = errors.New("it took too long for a verdict in time")

// withRoom ends a tenth of the time before ctx does, so that what was found out can still be recorded and told.
func withRoom(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, set := ctx.Deadline()
	if !set {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, deadline.Add(-time.Until(deadline)/10), errLate)
}

// look finds the guard of one target in the journals while looking lasts, and has the ledger know what it saw there.
func (g *Gate) look(ctx, looking context.Context, ledger Ledger, guards Guards, target string, claims []Claim) (f finding) {
	defer func() {
		if recover() != nil {
			f = finding{err: errors.New("the source of guards failed")}
		}
	}()
	found, err := guards.Guards(looking, g.vmOf(target), g.policy.MaxAge)
	if err != nil {
		return finding{err: err}
	}
	known, err := byID(ctx, ledger, found, claims)
	if err != nil {
		return finding{err: fmt.Errorf("the ledger: %w", err)}
	}
	f.lacking = "no guard in the last " + inWords(g.policy.MaxAge)
	for _, guard := range found {
		lacking := g.lacking(guard)
		if lacking == "" {
			lacking = spent(guard, known)
		}
		if lacking == "" {
			record := guard.Record()
			f = finding{guard: &record}
			break
		}
		f.lacking = lacking
	}
	if ledger != nil {
		if err := g.remember(ctx, ledger, target, f.guard, found, claims); err != nil {
			return finding{err: fmt.Errorf("the ledger: %w", err)}
		}
	}
	return f
}

// byID adds what the ledger claims of the VMs whose guards were found, by their ids: a call may name a VM by an address or a
// host name, which the ledger does not know, and a guard that is over is so by every name.
func byID(ctx context.Context, ledger Ledger, found []*rewind.Guard, claims []Claim) ([]Claim, error) {
	if ledger == nil {
		return claims, nil
	}
	all := slices.Clone(claims)
	for _, guard := range found {
		for _, vm := range guard.Record().VMs {
			if slices.ContainsFunc(all, func(c Claim) bool { return c.VM.ID == vm.ID }) {
				continue
			}
			more, err := ledger.Claims(ctx, string(vm.ID))
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// remember keeps the guard that was found, and voids those that should have been and were not.
func (g *Gate) remember(
	ctx context.Context, ledger Ledger, target string, guard *rewind.GuardRecord, found []*rewind.Guard, claims []Claim,
) error {
	if guard != nil {
		var aliases []string
		if g.vmOf(target) != target {
			aliases = append(aliases, target)
		}
		if err := ledger.Keep(ctx, *guard, aliases...); err != nil {
			return err
		}
	}
	for _, c := range claims {
		stands := slices.ContainsFunc(found, func(g *rewind.Guard) bool { return g.ChangeID() == c.Record.ChangeID })
		if stands || c.Closed || c.Void != "" || g.ageOf(c) > g.policy.MaxAge-clockMargin || c.Age < 0 {
			continue
		}
		if err := ledger.Void(ctx, c, "its checkpoints are in the journals no more"); err != nil {
			return err
		}
	}
	return nil
}

// spent says why the ledger holds a guard that stands for one that lets nothing run any more.
func spent(guard *rewind.Guard, claims []Claim) string {
	for _, c := range claims {
		same := c.Record.ChangeID == guard.ChangeID() &&
			slices.ContainsFunc(guard.Record().VMs, func(vm rewind.VM) bool { return strings.EqualFold(string(vm.ID), string(c.VM.ID)) })
		switch {
		case same && c.Closed:
			return "the change of its guard is over"
		case same && c.Void != "":
			return "its guard is void: " + c.Void
		}
	}
	return ""
}

// fresh returns the newest guard that was proven so lately that it need not be proven again, nil without one.
func (g *Gate) fresh(claims []Claim) *rewind.GuardRecord {
	for _, c := range claims {
		switch {
		case c.VM.ID != claims[0].VM.ID:
			return nil // the name means several VMs, which the journals have to tell apart
		case c.Closed, c.Void != "", c.Age < 0, c.Age >= g.policy.ProofAge, g.objection(c.Record, c.Age) != "":
			continue
		}
		return &c.Record
	}
	return nil
}

func (g *Gate) ageOf(c Claim) time.Duration {
	if len(c.Record.Checkpoints) == 0 {
		return g.policy.MaxAge
	}
	return c.Record.ProvenAt.Sub(oldest(c.Record).Timestamp) + c.Age
}

// lacking says why a guard lets nothing run, or "" when it does.
func (g *Gate) lacking(guard *rewind.Guard) string {
	if !guard.Proven() {
		return "its guard is not proven"
	}
	return g.objection(guard.Record(), 0)
}

// objection says why the guard of a record that was proven a while ago lets nothing run, or "" when it does. The age is
// that of the oldest checkpoint, by the server's clock: a tag can claim any time.
func (g *Gate) objection(record rewind.GuardRecord, ago time.Duration) string {
	if len(record.Checkpoints) == 0 {
		return "its guard is not proven"
	}
	newest := slices.MaxFunc(record.Checkpoints, func(a, b rewind.TaggedCheckpoint) int { return a.Timestamp.Compare(b.Timestamp) })
	switch age := record.ProvenAt.Sub(oldest(record).Timestamp) + ago; {
	case age > g.policy.MaxAge:
		return fmt.Sprintf("its guard is %s old, more than %s", inWords(age.Round(time.Second)), inWords(g.policy.MaxAge))
	case newest.Timestamp.Sub(record.ProvenAt) > clockMargin:
		return "its guard has a checkpoint from the future"
	case slices.ContainsFunc(record.Skipped, func(v rewind.SkippedVPG) bool { return v.Protecting }):
		return "its guard lacks the checkpoint of a VPG that protects it"
	}
	return ""
}

func oldest(record rewind.GuardRecord) rewind.TaggedCheckpoint {
	return slices.MinFunc(record.Checkpoints, func(a, b rewind.TaggedCheckpoint) int { return a.Timestamp.Compare(b.Timestamp) })
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
