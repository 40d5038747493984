// Command embed is an MCP server with a tool of its own, to which the rewind loop is added: what a server such as the
// ZVM's own does to offer its agents a way back.
//
//	ZVM_URL=… ZVM_USERNAME=… ZVM_PASSWORD_FILE=… go run ./examples/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, cli.OS()); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "embed:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, io cli.IO) error {
	client, err := cli.Connect(io, "")
	if err != nil {
		return err
	}
	server, err := newServer(client) //nolint:contextcheck // registering talks to this server alone
	if err != nil {
		return err
	}
	return server.Run(ctx, &mcp.StdioTransport{})
}

// newServer returns a server with one tool of its own and the tools of the rewind loop. Their names begin with "dr_", so
// that none can meet one of the server's.
func newServer(client *zvm.Client) (*mcp.Server, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "embed", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count_vpgs", Description: "Counts the VPGs of the ZVM"},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, counted, error) {
			vpgs, err := client.ListVPGs(ctx, zvm.VPGFilter{})
			return nil, counted{len(vpgs)}, err
		})
	session, err := rewind.NewSession(client)
	if err != nil {
		return nil, err
	}
	return server, mcpadapter.Register(server, session, mcpadapter.WithPrefix("dr_"))
}

type counted struct {
	VPGs int `json:"vpgs"`
}
