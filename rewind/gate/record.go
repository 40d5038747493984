package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// recorded gives the verdict on a call that is no read, with a ledger: nothing runs while a freeze is in force, and nothing
// that may change a machine runs unrecorded. A ledger that fails stops all but what makes recovery points.
func (g *Gate) recorded(ctx context.Context, call Call, s step) Verdict {
	ledger, freeze, err := g.openLedger(ctx)
	if err != nil {
		if s.nature == harmless {
			return s.verdict
		}
		return s.unrecorded(call, err)
	}
	var v Verdict
	if freeze != nil {
		v = call.frozen(s, freeze)
	} else {
		v = g.weigh(ctx, ledger, call, s)
	}
	err = g.append(ctx, ledger, call, s, v)
	if err != nil && s.nature != harmless && v.Decision != Deny {
		return s.unrecorded(call, err)
	}
	return v
}

// openLedger returns the ledger and the freeze in force. A panic in it is an error like any other.
func (g *Gate) openLedger(ctx context.Context) (ledger Ledger, freeze *Freeze, err error) {
	defer func() {
		if recover() != nil {
			ledger, freeze, err = nil, nil, errors.New("it failed")
		}
	}()
	ledger, err = g.policy.Ledger(ctx)
	if err != nil {
		return nil, nil, err
	}
	if ledger == nil {
		return nil, nil, errors.New("there is none")
	}
	freeze, err = ledger.Frozen(ctx)
	return ledger, freeze, err
}

func (s step) unrecorded(call Call, err error) Verdict {
	return Verdict{Class: s.verdict.Class, Targets: names(s.result.Targets), Reason: fmt.Sprintf(
		"%s did not run: the ledger cannot be used (%v), so neither a freeze nor an approval can be known, and nothing would be recorded. "+
			"Reads go on. A person can see what is wrong with: zerto-rewind audit verify", call, err)}
}

func (c Call) frozen(s step, f *Freeze) Verdict {
	why := ""
	if f.Reason != "" {
		why = ": " + f.Reason
	}
	return Verdict{Class: s.verdict.Class, Targets: names(s.result.Targets), Reason: fmt.Sprintf(
		"%s did not run: %s froze everything but reads and local calls at %s%s. Only a person can lift that, at a terminal: zerto-rewind thaw",
		c, f.By, f.At.UTC().Format(time.RFC3339), why)}
}

// append writes the verdict into the record.
func (g *Gate) append(ctx context.Context, ledger Ledger, call Call, s step, v Verdict) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it failed")
		}
	}()
	digest, err := ledger.Digest(ctx, call.Args)
	if err != nil {
		return err
	}
	event := Event{
		Kind: EventVerdict, Host: call.Host, Mode: call.Mode, AgentID: call.AgentID, Session: call.Session, CallID: call.CallID,
		Server: ServerOf(call.Name), Tool: call.Name.Tool, Digest: digest,
		Class: v.Class.String(), Decision: v.Decision.String(), Reason: oneLine(v.Reason), Targets: v.Targets,
		Approval: v.Approval,
	}
	if event.Targets == nil && s.result.TargetKnown {
		event.Targets = names(s.result.Targets)
	}
	for _, guard := range v.Guards {
		event.Changes = append(event.Changes, guard.ChangeID)
		event.Evidence = append(event.Evidence, Evidence(guard)...)
	}
	return ledger.Append(ctx, event)
}

// permitted looks for a person's leave for a call that would be denied or asked about.
func (g *Gate) permitted(ctx context.Context, ledger Ledger, call Call, s step, v Verdict) Verdict {
	targets := v.Targets
	if !s.result.TargetKnown {
		targets = nil
	} else if targets == nil {
		targets = names(s.result.Targets)
	}
	// An unknown tool that a person has agreed to is asked about once per change. One that deletes recovery points is
	// always asked about, and so is the host's own shell, whose next command may do anything.
	if s.nature == toAsk && s.result.Class == catalog.Unknown && !call.Name.BuiltIn {
		consented, err := g.consented(ctx, ledger, call, targets)
		switch {
		case err != nil:
			return s.withoutLeave(call, v, err)
		case consented != nil:
			consented.Class, consented.Targets = v.Class, targets
			return *consented
		}
	}
	approval, err := ledger.Spend(ctx, call, targets)
	if err != nil {
		return s.withoutLeave(call, v, err)
	}
	if approval != nil {
		return Verdict{
			Decision: Allow, Class: v.Class, Targets: v.Targets, Approval: approval.ID,
			Reason: call.sentence(fmt.Sprintf("%s approved this one call at %s, and Zerto may be unable to take it back",
				approval.By, approval.At.UTC().Format(time.RFC3339))),
		}
	}
	if digest, err := ledger.Digest(ctx, call.Args); err == nil && call.Name.Tool != "" {
		v.ApproveCommand = approveCommand(call.Name, digest)
	}
	return v
}

// withoutLeave keeps the reason of a denial, which says more than that the ledger failed after it.
func (s step) withoutLeave(call Call, v Verdict, err error) Verdict {
	if v.Decision == Deny {
		return v
	}
	return s.unrecorded(call, err)
}

// consented returns the verdict on an unknown tool that a person has agreed to while a guard stands, nil where nobody has
// or it stands no more.
func (g *Gate) consented(ctx context.Context, ledger Ledger, call Call, targets []string) (*Verdict, error) {
	consents, err := ledger.Consents(ctx, call, targets)
	if err != nil {
		return nil, err
	}
	for _, c := range consents {
		findings, err := g.lookAll(ctx, ledger, []string{c.VM})
		if err != nil || findings[0].guard == nil || findings[0].guard.ChangeID != c.ChangeID {
			continue // whatever the reason, the person is asked again
		}
		v := &Verdict{Decision: Allow, Reason: call.sentence(fmt.Sprintf(
			"a person agreed to this tool for change %s (%s), whose guard stands", c.ChangeID, c.Source))}
		v.Guards = append(v.Guards, *findings[0].guard)
		return v, nil
	}
	return nil, nil
}

// approveCommand is the command line that approves exactly one call.
func approveCommand(name catalog.Name, digest string) string {
	words := []string{"zerto-rewind", "approve", "--server", quoted(ServerOf(name)), "--tool", quoted(name.Tool)}
	if digest != "" {
		words = append(words, "--call", digest)
	}
	return strings.Join(words, " ")
}
