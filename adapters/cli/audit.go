package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
)

func (a *app) audit() *cobra.Command {
	var since time.Duration
	c := a.command(cobra.Command{
		Use:   "audit [--since 24h|7d]",
		Short: "Show the record: which calls were judged, how and why, and what persons decided",
		Long: `Audit shows the record of the ledger, oldest first, with --json as one JSON object per line. It holds every verdict but
those on reads and on what stays on the agent's own machine, and every guard, approval, consent, freeze and thaw. Of the
arguments of a call it has a keyed digest alone.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		var from time.Time
		if since > 0 {
			from = time.Now().Add(-since)
		}
		if a.json {
			encoder := json.NewEncoder(a.io.Out)
			encoder.SetEscapeHTML(false)
			return l.Lines(ctx, from, func(line ledger.Line) error { return encoder.Encode(line) })
		}
		t := &table{}
		t.row("TIME", "WHO", "WHAT", "TOOL", "ON", "REASON")
		if err := l.Lines(ctx, from, func(line ledger.Line) error { showLine(t, line); return nil }); err != nil {
			return err
		}
		_, err = io.WriteString(a.io.Out, t.String())
		return err
	})
	c.Flags().Var((*span)(&since), "since", "how far back to look, as a `duration` such as 90m, 7d or 2w; 0 for all of it")
	c.AddCommand(a.settings.offline(a.auditVerify(), setStateDir))
	return c
}

func showLine(t *table, l ledger.Line) {
	tool := "-"
	if l.Tool != "" {
		tool = l.Server + "/" + l.Tool
	}
	what := string(l.Kind)
	if l.Decision != "" {
		what = l.Decision
	}
	t.row(moment(l.At), orDash(cmp.Or(l.By, l.AgentID, l.Agent)), what, tool,
		orDash(strings.Join(l.Targets, ", ")), orDash(cmp.Or(l.Reason, strings.Join(l.Changes, ", "))))
}

func (a *app) auditVerify() *cobra.Command {
	var heads []string
	c := a.command(cobra.Command{
		Use:   "verify [--head HASH]...",
		Short: "Check that nothing in the record was edited, deleted or moved",
		Long: `Verify recomputes the chain of hashes in the record. It finds lines that were edited, deleted, put in or moved, and an end
that was cut off, as far as whoever did it left the hashes as they were.

A chain cannot show more by itself: whoever can write the ledger can compute a new one over whatever they like, and can
replace the whole file by an older copy. What shows that is a head kept where they cannot write: note the one that is
printed, and give it later with --head. The exit code is 1 when something is not as it was.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		l, err := a.ledger(ctx)
		if err != nil {
			return err
		}
		v, err := l.Verify(ctx, heads...)
		if err != nil {
			return err
		}
		if err := a.result(v, func(t *table) { showChain(t, v) }); err != nil {
			return err
		}
		if len(v.Problems) > 0 {
			return fmt.Errorf("the record is not what it was: %s", v.Problems[0].What)
		}
		return nil
	})
	c.Flags().StringSliceVar(&heads, "head", nil, "a `hash` that was printed earlier, and has to be in the record; may be repeated")
	return c
}

func showChain(t *table, v *ledger.Verification) {
	t.row("lines", strconv.FormatInt(v.Lines, 10))
	t.row("head", v.Head)
	for _, p := range v.Problems {
		t.row("problem", fmt.Sprintf("at line %d: %s", p.Seq, p.What))
	}
}
