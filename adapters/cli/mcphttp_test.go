package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

const mcpToken = "MARKER-mcp-token-0123456789abcdef"

type bearing struct{}

func (bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+mcpToken)
	return http.DefaultTransport.RoundTrip(r)
}

func TestMCPServesHTTPUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t).with("ZERTO_REWIND_MCP_TOKEN", mcpToken)
	ctx, interrupt := context.WithCancel(t.Context())
	out, write := io.Pipe()
	var stderr strings.Builder
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, cli.IO{Out: write, Err: &stderr, Env: w.lookup}, []string{"mcp", "--http", "127.0.0.1:0", "--recover-dir", t.TempDir()})
		_ = write.Close()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v; exit code %d, %s", err, <-done, stderr.String())
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: strings.TrimSpace(url), HTTPClient: &http.Client{Transport: bearing{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "zerto_find_protection", Arguments: map[string]any{"vm": "web01"}})
	if err != nil || r.IsError {
		t.Errorf("%v, %+v", err, r)
	}
	_ = client.Close()
	interrupt()
	if code := <-done; code != 130 || strings.Contains(stderr.String(), "MARKER") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}

func TestMCPServesHTTPToNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("mcp", "--http", "127.0.0.1:0").want(t, 64, "ZERTO_REWIND_MCP_TOKEN")
	w.with("ZERTO_REWIND_MCP_TOKEN", "short").run("mcp", "--http", "127.0.0.1:0").want(t, 64, "32")
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:80", ":80", "example.com:80", "127.0.0.1"} {
		w.with("ZERTO_REWIND_MCP_TOKEN", mcpToken).run("mcp", "--http", address).want(t, 64, "--http")
	}
}
