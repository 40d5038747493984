package mcpadapter_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const httpToken = "MARKER-http-token-0123456789abcdef"

// bearing adds the token to every request.
type bearing struct{ token string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func (w *world) serveHTTP(t *testing.T, opts ...mcpadapter.Option) string {
	t.Helper()
	handler, err := mcpadapter.Handler(w.server(t, opts...), httpToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestBothErasSpeakOverHTTPOnOneURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithCloneTime(0)) // a clone is refused while another is being made
	url := w.serveHTTP(t)
	inBothEras(t, func(t *testing.T, era string) {
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		if err != nil {
			t.Fatal(err)
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, asking("accept", map[string]any{"vm": "web01"}, nil)).
			Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearing{httpToken}}},
				&mcp.ClientSessionOptions{ProtocolVersion: era})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if r := call[struct{ Protected bool }](t, client, findTool, args{"vm": "web01"}); !r.Protected {
			t.Errorf("%+v", r)
		}
		if r := call[struct{ TaskID string }](t, client, "zerto_clone", args{"changeId": g.Record().ChangeID}); r.TaskID == "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestHTTPRefusesStrangers(t *testing.T) {
	t.Parallel()
	url := newWorld(t).serveHTTP(t)
	for _, tt := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"no token", http.Header{}, http.StatusUnauthorized},
		{"another token", http.Header{"Authorization": {"Bearer MARKER-other"}}, http.StatusUnauthorized},
		{"another scheme", http.Header{"Authorization": {"Basic " + httpToken}}, http.StatusUnauthorized},
		{"two tokens", http.Header{"Authorization": {"Bearer " + httpToken, "Bearer x"}}, http.StatusUnauthorized},
		{"another page", http.Header{"Authorization": {"Bearer " + httpToken}, "Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"a local file", http.Header{"Authorization": {"Bearer " + httpToken}, "Origin": {"null"}}, http.StatusForbidden},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = tt.header.Clone()
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != tt.status {
				t.Errorf("%s, %s: %d", tt.name, method, response.StatusCode)
			}
		}
	}
}

func TestAHandlerNeedsATokenThatIsOne(t *testing.T) {
	t.Parallel()
	server := newWorld(t).server(t)
	for _, token := range []string{"", "short", httpToken + " "} {
		if _, err := mcpadapter.Handler(server, token, nil); err == nil {
			t.Errorf("%q was taken", token)
		}
	}
}

func TestTheFlowAndTheCatalogueCanBeRead(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era, mcpadapter.WithPrefix("hpe_"))
		prompt, err := client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "zerto-rewind-flow"})
		if err != nil {
			t.Fatal(err)
		}
		text := prompt.Messages[0].Content.(*mcp.TextContent).Text
		if !strings.HasPrefix(text, "# The rewind loop") || !strings.Contains(text, "`hpe_zerto_guard_before_mutate`") || strings.Contains(text, "`zerto_") {
			t.Errorf("%.300s", text)
		}
		for _, name := range names(t, client) {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the flow does not speak of %s", name)
			}
		}
		read := func(uri string) string {
			t.Helper()
			r, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Fatal(err)
			}
			return r.Contents[0].Text
		}
		if c := read("zerto-rewind://catalogue"); !strings.Contains(c, `"powerOff"`) {
			t.Errorf("%.300s", c)
		}
		if g := read("zerto-rewind://guards"); g != `{"guards":[]}` {
			t.Error(g)
		}
		made := call[struct{ ChangeID string }](t, client, "hpe_"+guardTool, args{"vm": "web01", "action": "x"})
		if g := read("zerto-rewind://guards"); !strings.Contains(g, made.ChangeID) {
			t.Error(g)
		}
	})
}

// TestSixtyFourCallsAtOnceGuardOneVPG has one session guard one VPG for many callers.
func TestSixtyFourCallsAtOnceGuardOneVPG(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTokenTTL(time.Hour))
	client := w.connect(t, eras[1])
	const calls = 64
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			r, err := client.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{
				Name: guardTool, Arguments: map[string]any{"vm": "web01", "action": "at once"},
			})
			if err != nil || r.IsError {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
	wg.Wait()
	if n, tags := w.zvm.TokenRequests(), len(w.vpg.TaggedCheckpoints()); n != 1 || tags != calls || w.vpg.MaxInFlight() != 1 {
		t.Errorf("%d token requests, %d tags, %d inserts at once", n, tags, w.vpg.MaxInFlight())
	}
}
