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
	// Shell is true for a tool that runs command lines, which are judged one by one.
	Shell bool `json:"shell"`
}

func (a *app) check() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "check [SERVER] TOOL",
		Short: "Show what the catalogue says of a tool: read_only, mutating or unknown",
		Long: `Check looks a tool up in the catalogue by its name alone, without a ZVM. SERVER is the key of its MCP server, or "-" for
a tool of the agent host itself. Without SERVER, TOOL is the whole name as an agent host writes it, such as
mcp__proxmox__stop_vm or Bash. A tool in neither list is unknown, and unknown is not safe: the human is asked.

A tool that runs command lines is unknown by its name. The hook judges each of its calls by the machines that the command
line addresses, and asks the human where that cannot be told.`,
		Args: oneOrTwo,
	}, 0, func(_ context.Context, args []string) error {
		known, err := a.catalogue()
		if err != nil {
			return err
		}
		name := toolName(known, args)
		verdict := verdictOn(known, name)
		return a.result(verdict, func(t *table) { showVerdict(t, verdict) })
	})
}

func verdictOn(known *catalog.Catalog, name catalog.Name) checked {
	found := known.ClassifyCall(name, nil)
	verdict := checked{
		Server: name.Server, Tool: name.Tool, Class: found.Class, Kind: found.Kind, Reason: found.Reason,
		Shell: found.Entry != nil && len(found.Entry.Command) > 0,
	}
	if name.BuiltIn {
		verdict.Server = "-"
	}
	return verdict
}

func oneOrTwo(c *cobra.Command, args []string) error {
	if len(args) < 2 {
		return exactly("TOOL")(c, args)
	}
	return exactly("SERVER", "TOOL")(c, args)
}

func toolName(known *catalog.Catalog, args []string) catalog.Name {
	if len(args) == 1 {
		name, _ := known.ParseToolName(args[0]) // a name that was split by guess is unknown
		return name
	}
	if args[0] == "-" {
		return catalog.Name{Tool: args[1], BuiltIn: true}
	}
	return catalog.Name{Server: args[0], Tool: args[1]}
}

func showVerdict(t *table, v checked) {
	tool := v.Tool
	if v.Server != "" {
		tool = v.Server + "/" + v.Tool
	}
	t.row("tool", tool)
	t.row("class", v.Class.String())
	if v.Kind != catalog.Ordinary {
		t.row("kind", v.Kind.String())
	}
	t.row("reason", v.Reason)
	if v.Shell {
		t.row("calls", "judged by the machines that each command line addresses")
	}
}
