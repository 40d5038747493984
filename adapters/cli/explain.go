package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func (a *app) explain() *cobra.Command {
	var flags hookFlags
	c := a.inSteps(cobra.Command{
		Use:   "explain [--host HOST] < CALL.json",
		Short: "Show how the hook would answer one tool call, and why",
		Long: `Explain reads what an agent host sends to the hook before a tool runs, and shows which host was recognised, what the
catalogue says of the tool, the verdict, and exactly what the hook would write and exit with. It runs nothing and uses up
no approval.`,
		Args: exactly(),
	}, hookLimit, "`limit` for the verdict, as the hook's", func(ctx context.Context, _ []string) error {
		config, err := a.hookConfig(flags)
		if err != nil {
			return err
		}
		config.Gate = a.gateLookingOn
		e := hookadapter.Explain(ctx, a.io.In, config)
		return a.result(e, func(t *table) { showExplanation(t, e) })
	})
	flags.register(c)
	return c
}

func showExplanation(t *table, e hookadapter.Explanation) {
	optional := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	host := e.Host
	if host == "" {
		host = "not recognised"
	}
	t.row("host", host)
	optional("event", e.Event)
	optional("mode", e.Mode)
	if v := e.Verdict; v != nil {
		t.row("tool", e.Name.String())
		t.row("catalogue", entryInWords(e.Entry))
		t.row("verdict", v.Decision.String())
		t.row("class", v.Class.String())
		optional("machines", strings.Join(v.Targets, ", "))
		for _, guard := range v.Guards {
			t.row("guard", guard.ChangeID)
		}
		t.row("reason", v.Reason)
		optional("next", v.NextCommand)
		optional("approve", v.ApproveCommand)
	}
	t.row("the host gets", e.Decision.String())
	t.row("exit code", strconv.Itoa(e.ExitCode))
	t.row("stdout", strconv.Quote(e.Stdout))
	t.row("stderr", strconv.Quote(e.Stderr))
}

func entryInWords(e *catalog.Entry) string {
	switch {
	case e == nil:
		return "no entry"
	case e.BuiltIn:
		return "- " + e.Tool + ", " + e.Class.String()
	}
	return e.Server + " " + e.Tool + ", " + e.Class.String()
}
