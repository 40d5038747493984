package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func Example() {
	if err := embedded(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// count_vpgs
	// dr_ tools: true
	// {"vpgs":1}
	// guarded: true
}

func embedded(ctx context.Context) error {
	sim, err := zvmtest.New(zvmtest.WithProfile(zvmtest.Quick)) //nolint:contextcheck // a simulation is ended by its Close, not by a context
	if err != nil {
		return err
	}
	defer sim.Close()
	sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{}))
	zvmClient, err := zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	if err != nil {
		return err
	}
	server, err := newServer(zvmClient) //nolint:contextcheck // registering talks to this server alone
	if err != nil {
		return err
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		return err
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	tools, err := client.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	ours := 0
	for _, tool := range tools.Tools {
		if strings.HasPrefix(tool.Name, "dr_zerto_") {
			ours++
			continue
		}
		fmt.Println(tool.Name)
	}
	fmt.Println("dr_ tools:", ours == len(tools.Tools)-1 && ours > 0)
	count, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "count_vpgs"})
	if err != nil {
		return err
	}
	fmt.Println(count.Content[0].(*mcp.TextContent).Text)
	guard, err := client.CallTool(ctx, &mcp.CallToolParams{
		Name: "dr_zerto_guard_before_mutate", Arguments: map[string]any{"vm": "web01", "action": "upgrade"},
	})
	if err != nil {
		return err
	}
	fmt.Println("guarded:", !guard.IsError)
	return nil
}
