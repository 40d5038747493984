package proxyadapter_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
)

// TestTheSDKWorksThroughTheProxy has the official client and the official server talk through a proxy, in both eras.
func TestTheSDKWorksThroughTheProxy(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			world := newWorld(t)
			server := mcp.NewServer(&mcp.Implementation{Name: "esxi", Version: "1"}, nil)
			var ran atomic.Int32
			for _, name := range []string{"listVMs", "powerOff", "defragment"} {
				server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
					func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						ran.Add(1)
						return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
					})
			}
			var questions atomic.Int32
			client := throughProxy(t, world.config(), server, era, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				questions.Add(1)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "checkpoint", "vm": "web01"}}, nil
			})
			tools, err := client.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 3 {
				t.Fatalf("%v, %v", tools, err)
			}
			call := func(name string, args map[string]any) *mcp.CallToolResult {
				t.Helper()
				result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return result
			}
			if r := call("listVMs", nil); r.IsError || ran.Load() != 1 {
				t.Errorf("%+v", r)
			}
			if r := call("powerOff", map[string]any{"name": "web01"}); !r.IsError || ran.Load() != 1 {
				t.Errorf("%+v", r)
			}
			r := call("defragment", map[string]any{"depth": 2})
			if r.IsError || ran.Load() != 2 || questions.Load() != 1 || r.Meta["zerto-rewind/changeId"] == nil {
				t.Errorf("%+v after %d questions", r, questions.Load())
			}
			if text := r.Content[0].(*mcp.TextContent).Text; text != `{"depth":2}` {
				t.Error(text)
			}
			if r := call("powerOff", map[string]any{"name": "web01"}); r.IsError || ran.Load() != 3 {
				t.Errorf("the guard lets nothing run: %+v", r)
			}
			if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "listVMs", Arguments: json.RawMessage(`{"a":1,"a":2}`)}); err == nil ||
				!strings.Contains(err.Error(), "more than once") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func throughProxy(
	t *testing.T, config proxyadapter.Config, server *mcp.Server, era string,
	elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error),
) *mcp.ClientSession {
	t.Helper()
	hostIn, fromClient := io.Pipe()
	toClient, hostOut := io.Pipe()
	serverReads, serverIn := io.Pipe()
	serverOut, serverWrites := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := proxyadapter.Run(context.Background(), proxyadapter.Streams{In: hostIn, Out: hostOut},
			proxyadapter.Streams{In: serverOut, Out: serverIn}, config); err != nil {
			t.Error(err)
		}
		_ = hostOut.Close()
	}()
	serving, err := server.Connect(t.Context(), &mcp.IOTransport{Reader: serverReads, Writer: serverWrites}, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = serving.Wait()
		_ = serverWrites.Close()
	}()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: elicit}).
		Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		<-ended
	})
	return client
}
