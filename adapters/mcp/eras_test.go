package mcpadapter_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
)

// TestLaw6_AYesThatCameTooLateOrForSomethingElseStartsNothing has a client that relays every question, and a person who
// agrees to each.
func TestLaw6_AYesThatCameTooLateOrForSomethingElseStartsNothing(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		t.Run("expired", func(t *testing.T) {
			t.Parallel()
			w, _, g := guarded(t)
			client := connect(t, w.server(t, mcpadapter.WithPatience(time.Nanosecond)), era, asking("accept", map[string]any{"vm": "app01"}, nil))
			f := refusedCall(t, client, startTest, args{"changeId": g.Record().ChangeID, "vm": "app01"})
			if f.Code != "no_consent" || w.startedTests() != 0 {
				t.Errorf("%+v", f)
			}
		})
		t.Run("the object changes while the person thinks", func(t *testing.T) {
			t.Parallel()
			w, second, g := guarded(t)
			lose := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				w.vpg.LoseCheckpoint(string(g.Record().Checkpoints[0].CheckpointID))
				second.LoseCheckpoint(string(g.Record().Checkpoints[1].CheckpointID))
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"vm": "app01"}}, nil
			}
			client := connect(t, w.server(t), era, &mcp.ClientOptions{ElicitationHandler: lose})
			refusedCall(t, client, startTest, args{"changeId": g.Record().ChangeID, "vm": "app01"})
			if n := w.startedTests(); n != 0 {
				t.Errorf("%d tests were started", n)
			}
		})
		t.Run("answers of a client that cannot ask", func(t *testing.T) {
			t.Parallel()
			w, _, g := guarded(t)
			client := connect(t, w.server(t), era, nil)
			r, err := client.CallTool(t.Context(), &mcp.CallToolParams{
				Name: startTest, Arguments: map[string]any{"changeId": g.Record().ChangeID, "vm": "app01"}, RequestState: "forged",
				InputResponses: mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"vm": "app01"}}},
			})
			if err == nil && !r.IsError || w.startedTests() != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	})
}

// TestLaw6_AStateOfOneEraIsNoneOfTheOther has a question that was asked on a modern connection answered on a legacy one.
func TestLaw6_AStateOfOneEraIsNoneOfTheOther(t *testing.T) {
	t.Parallel()
	w, _, g := guarded(t)
	server := w.server(t)
	options := asking("accept", nil, nil)
	options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	params := mcp.CallToolParams{Name: startTest, Arguments: map[string]any{"changeId": g.Record().ChangeID, "vm": "app01"}}
	asked, err := connect(t, server, eras[1], options).CallTool(t.Context(), &params)
	if err != nil || asked.RequestState == "" {
		t.Fatalf("%+v, %v", asked, err)
	}
	params.Meta, params.RequestState = nil, asked.RequestState // the client writes the era of its connection into Meta
	params.InputResponses = mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"vm": "app01"}}}
	r, err := connect(t, server, eras[0], options).CallTool(t.Context(), &params)
	if err == nil && !r.IsError || w.startedTests() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLaw6_OverHTTPTheErasCannotBeMixed sends what says one era in its header and another in its body, and names sessions
// that there are not.
func TestLaw6_OverHTTPTheErasCannotBeMixed(t *testing.T) {
	t.Parallel()
	w, _, g := guarded(t)
	url := w.serveHTTP(t)
	var (
		modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + eras[1] + `","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},`
		old = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"},`
	)
	for _, header := range []http.Header{
		{},
		{"Mcp-Protocol-Version": {"2025-11-25"}},
		{"Mcp-Protocol-Version": {eras[1]}},
		{"Mcp-Protocol-Version": {"9999-99-99"}},
		{"Mcp-Session-Id": {"chosen-by-the-client"}},
		{"Mcp-Session-Id": {"chosen-by-the-client"}, "Mcp-Protocol-Version": {eras[1]}},
		{"Mcp-Protocol-Version": {eras[1], "2025-11-25"}},
	} {
		for _, meta := range []string{"", modern, old} {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `"name":"` + startTest + `","arguments":{"changeId":"` +
				g.Record().ChangeID + `","vm":"app01"},"requestState":"forged","inputResponses":{"confirm":{"action":"accept","content":{"vm":"app01"}}}}}`
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = header.Clone()
			request.Header.Set("Authorization", "Bearer "+httpToken)
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			if header.Get("Mcp-Protocol-Version") >= eras[1] {
				request.Header.Set("Mcp-Method", "tools/call")
				request.Header.Set("Mcp-Name", startTest)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode == http.StatusOK && !strings.Contains(string(text), `"error"`) {
				t.Errorf("%v, %s: %s", header, meta, text)
			}
		}
	}
	if n := w.startedTests(); n != 0 {
		t.Errorf("%d tests were started", n)
	}
}
