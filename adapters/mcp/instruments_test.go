//go:build instruments

package mcpadapter_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
)

var overHTTP = flag.Bool("http", false, "serve the instruments over HTTP and print the URL, instead of over stdin and stdout")

// TestServeInstruments serves our server, with what the conformance suite looks for beside our tools, until stdin ends.
func TestServeInstruments(t *testing.T) {
	t.Parallel()
	server := newWorld(t).server(t)
	addFixtures(server)
	if !*overHTTP {
		if err := server.Run(t.Context(), &mcp.StdioTransport{}); err != nil {
			t.Error(err)
		}
		return
	}
	handler, err := mcpadapter.Handler(server, httpToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The suite has no way to bear a token.
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+httpToken)
		handler.ServeHTTP(w, r)
	}))
	defer web.CloseClientConnections()
	fmt.Println(web.URL)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
}
