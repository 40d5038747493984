package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// checked is the catalogue's verdict on one tool.
type checked struct {
	Server string        `json:"server"`
	Tool   string        `json:"tool"`
	Class  catalog.Class `json:"class"`
	Kind   catalog.Kind  `json:"kind"`
	Reason string        `json:"reason"`
}

func (a *app) check() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "check SERVER TOOL",
		Short: "Show what the catalogue says of a tool: read_only, mutating or unknown",
		Long: `Check looks a tool up in the catalogue by its name alone, without a ZVM. SERVER is the key of its MCP server, or "-" for
a tool of the agent host itself. A tool in neither list is unknown, and unknown is not safe: the human is asked.`,
		Args: cobra.ExactArgs(2),
	}, 0, func(_ context.Context, args []string) error {
		known, err := a.catalogue()
		if err != nil {
			return err
		}
		name := catalog.Name{Server: args[0], Tool: args[1]}
		if name.Server == "-" {
			name = catalog.Name{Tool: args[1], BuiltIn: true}
		}
		found := known.ClassifyCall(name, nil)
		verdict := checked{args[0], args[1], found.Class, found.Kind, found.Reason}
		return a.result(verdict, func(t *table) { showVerdict(t, verdict) })
	})
}

func showVerdict(t *table, v checked) {
	t.row("tool", v.Server+"/"+v.Tool)
	t.row("class", v.Class.String())
	if v.Kind != catalog.Ordinary {
		t.row("kind", v.Kind.String())
	}
	t.row("reason", v.Reason)
}
