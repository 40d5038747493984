package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	vmName     = "web01"
	configPath = "/etc/nginx/nginx.conf"
	config     = "server { listen 80; }"
)

// world is a simulated ZVM that protects one VM, and a way into that VM.
type world struct {
	sim    *zvmtest.Server
	vm     *zvmtest.VM
	client *zvm.Client
}

func newWorld() (*world, error) {
	sim, err := zvmtest.New(zvmtest.WithProfile(zvmtest.Quick))
	if err != nil {
		return nil, err
	}
	w := &world{sim: sim, vm: sim.AddVM(vmName, sim.AddVPG("web", zvmtest.VPGConfig{}))}
	if err := w.vm.Guest().WriteFile(configPath, []byte(config)); err != nil {
		return nil, err
	}
	w.client, err = zvm.New(sim.URL(), zvm.Password(sim.Username(), sim.Password()), zvm.WithRootCAs(sim.CertPool()))
	return w, err
}

// sshServer is an MCP server that runs commands on the VM: the two that the agent needs.
func (w *world) sshServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ssh-manager", Version: "1"}, nil)
	type in struct {
		Server  string `json:"server"`
		Command string `json:"command"`
	}
	type out struct {
		Output string `json:"output"`
	}
	text := config
	mcp.AddTool(server, &mcp.Tool{Name: "ssh_execute"}, func(_ context.Context, _ *mcp.CallToolRequest, call in) (*mcp.CallToolResult, out, error) {
		switch {
		case strings.HasPrefix(call.Command, "cat "):
			return nil, out{text}, nil
		case strings.HasPrefix(call.Command, "sed -i s/80/eighty/ "):
			text = strings.Replace(text, "80", "eighty", 1)
			return nil, out{}, w.vm.Guest().WriteFile(configPath, []byte(text))
		}
		return nil, out{}, fmt.Errorf("command not found: %s", call.Command)
	})
	return server
}

// throughProxy starts the SSH server behind a proxy, as "zerto-rewind proxy --name ssh-manager -- COMMAND" does, and
// returns a client of both.
func (w *world) throughProxy(ctx context.Context, session *rewind.Session) (*mcp.ClientSession, func() error, error) {
	known, err := catalog.Default()
	if err != nil {
		return nil, nil, err
	}
	judge, err := gate.New(known, func() (gate.Guards, error) { return session, nil }, gate.Policy{Commands: shell.Reader{}})
	if err != nil {
		return nil, nil, err
	}
	hostIn, fromAgent := io.Pipe()
	toAgent, hostOut := io.Pipe()
	serverReads, toServer := io.Pipe()
	fromServer, serverWrites := io.Pipe()
	serving, err := w.sshServer().Connect(ctx, &mcp.IOTransport{Reader: serverReads, Writer: serverWrites}, nil)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- proxyadapter.Run(ctx, proxyadapter.Streams{In: hostIn, Out: hostOut},
			proxyadapter.Streams{In: fromServer, Out: toServer},
			proxyadapter.Config{Server: "ssh-manager", Gate: func() (*gate.Gate, error) { return judge, nil }})
	}()
	go func() {
		_ = serving.Wait()
		_ = serverWrites.Close()
	}()
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "example-agent", Version: "1"}, nil).
		Connect(ctx, &mcp.IOTransport{Reader: toAgent, Writer: fromAgent}, nil)
	if err != nil {
		return nil, nil, err
	}
	return agent, func() error { return errors.Join(fromAgent.Close(), <-ended) }, nil
}

// connect returns a client of a server in this process.
func connect(ctx context.Context, server *mcp.Server) (*mcp.ClientSession, error) {
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		return nil, err
	}
	return mcp.NewClient(&mcp.Implementation{Name: "example-agent", Version: "1"}, nil).Connect(ctx, here, nil)
}

type args map[string]any

// call calls a tool and decodes its answer. A refusal is an error.
func call[T any](ctx context.Context, c *mcp.ClientSession, tool string, a args) (T, error) {
	var answer T
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any(a)})
	if err != nil {
		return answer, err
	}
	if result.IsError {
		return answer, fmt.Errorf("%s: %s", tool, result.Content[0].(*mcp.TextContent).Text)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(data, &answer)
}
