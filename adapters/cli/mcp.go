package cli

import (
	"context"

	"github.com/spf13/cobra"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
)

func (a *app) mcp() *cobra.Command {
	var recoverDir string
	c := a.command(cobra.Command{
		Use:   "mcp [--recover-dir DIR]",
		Short: "Offer the rewind loop to an agent as an MCP server on stdin and stdout",
		Long: `Mcp serves the Model Context Protocol over stdin and stdout until stdin ends. Files are written below --recover-dir
alone; without it, small text files come back inside the answer.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		session, _, err := a.session()
		if err != nil {
			return err
		}
		known, err := a.catalogue()
		if err != nil {
			return err
		}
		options := []mcpadapter.Option{
			mcpadapter.WithCatalog(known), mcpadapter.WithLogger(a.log), mcpadapter.WithVersion(readBuild().Version),
		}
		r := a.reader()
		if agent := r.text(setAgent); agent != "" {
			options = append(options, mcpadapter.WithAgent(agent))
		}
		if recoverDir != "" {
			options = append(options, mcpadapter.WithRecoverDir(recoverDir))
		}
		return mcpadapter.Serve(ctx, session, a.io.In, a.io.Out, options...)
	})
	c.Flags().StringVar(&recoverDir, "recover-dir", "", "existing `folder` below which recovered files are written")
	c.AddCommand(a.mcpInstall())
	return c
}
