package mcpadapter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// hostServer is a server of somebody else, with one tool of each name.
func hostServer(tools ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	for _, name := range tools {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the host's"}}}, nil
			})
	}
	return s
}

func names(t *testing.T, c *mcp.ClientSession) []string {
	t.Helper()
	var all []string
	for _, tool := range list(t, c) {
		all = append(all, tool.Name)
	}
	return all
}

func TestRegisterAddsToWhatAServerHas(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		server := hostServer("list_vms")
		if err := mcpadapter.Register(server, newWorld(t).session, mcpadapter.WithPrefix("hpe_")); err != nil {
			t.Fatal(err)
		}
		client := connect(t, server, era, nil)
		want := []string{"list_vms"}
		for _, own := range names(t, newWorld(t).connect(t, era)) {
			want = append(want, "hpe_"+own)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, names(t, client)); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		for _, tool := range list(t, client) {
			if strings.Contains(strings.ReplaceAll(tool.Description, "hpe_zerto_", ""), "zerto_") {
				t.Errorf("%s points to a tool without its prefix: %s", tool.Name, tool.Description)
			}
		}
		p := call[protection](t, client, "hpe_"+findTool, args{"vm": "web01"})
		if !strings.Contains(p.NextStep, "hpe_"+guardTool) {
			t.Errorf("next step = %s", p.NextStep)
		}
	})
}

func TestRegisterReplacesNoToolOfTheServer(t *testing.T) {
	t.Parallel()
	server := hostServer(guardTool, findTool)
	err := mcpadapter.Register(server, newWorld(t).session)
	if err == nil || !strings.Contains(err.Error(), guardTool) || !strings.Contains(err.Error(), findTool) {
		t.Errorf("error = %v", err)
	}
	client := connect(t, server, eras[0], nil)
	if got := names(t, client); !slices.Equal(got, []string{findTool, guardTool}) {
		t.Errorf("tools = %v, want those of the host alone", got)
	}
	if result := callAny(t, client, guardTool, nil); text(result) != "the host's\n" {
		t.Errorf("the host's tool answers %s", text(result))
	}
}

func TestRegisterAddsNothingWhenTheServerDoesNotTellItsTools(t *testing.T) {
	t.Parallel()
	server := hostServer(guardTool)
	strict := true
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if strict && method == "tools/list" {
				return nil, errors.New("strangers are refused")
			}
			return next(ctx, method, r)
		}
	})
	if err := mcpadapter.Register(server, newWorld(t).session); err == nil {
		t.Error("no error")
	}
	strict = false
	if got := names(t, connect(t, server, eras[0], nil)); !slices.Equal(got, []string{guardTool}) {
		t.Errorf("tools = %v", got)
	}
}

func TestRegisterTwiceNeedsAPrefix(t *testing.T) {
	t.Parallel()
	server, w := hostServer(), newWorld(t)
	for _, tt := range []struct {
		prefix string
		fails  bool
	}{{"", false}, {"", true}, {"dr_", false}} {
		if err := mcpadapter.Register(server, w.session, mcpadapter.WithPrefix(tt.prefix)); (err != nil) != tt.fails {
			t.Errorf("prefix %q: error = %v", tt.prefix, err)
		}
	}
}

func TestRegisterRefusesWhatItCannotWorkWith(t *testing.T) {
	t.Parallel()
	session := newWorld(t).session
	tests := []struct {
		name    string
		server  *mcp.Server
		session *rewind.Session
		option  mcpadapter.Option
	}{
		{"no server", nil, session, nil},
		{"no session", hostServer(), nil, nil},
		{"a prefix with a dot", hostServer(), session, mcpadapter.WithPrefix("a.")},
		{"a prefix beyond ASCII", hostServer(), session, mcpadapter.WithPrefix("ü")},
		{"a prefix that is too long", hostServer(), session, mcpadapter.WithPrefix(strings.Repeat("a", 21))},
		{"an empty recovery folder", hostServer(), session, mcpadapter.WithRecoverDir("")},
		{"a recovery folder that is missing", hostServer(), session, mcpadapter.WithRecoverDir("testdata/none")},
		{"a recovery folder that is a file", hostServer(), session, mcpadapter.WithRecoverDir("doc.go")},
		{"a heartbeat without pause", hostServer(), session, mcpadapter.WithHeartbeat(0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var opts []mcpadapter.Option
			if tt.option != nil {
				opts = append(opts, tt.option)
			}
			if err := mcpadapter.Register(tt.server, tt.session, opts...); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestAPanicIsOneFailedCall(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		var log bytes.Buffer
		server := hostServer("list_vms")
		registered := false
		broken := new(rewind.Session) // no constructor made it, so that using it panics
		err := mcpadapter.Register(server, broken, mcpadapter.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			mcpadapter.WithCatalogSource(func() (*catalog.Catalog, error) {
				if !registered {
					return catalog.Default()
				}
				panic("no catalogue")
			}),
			mcpadapter.WithGuardLister(func(context.Context) ([]rewind.GuardRecord, error) { panic("no ledger") }),
			mcpadapter.WithAddMutating(func(ctx context.Context, name catalog.Name, agent string) (changed bool, err error) { panic("no file") }))
		if err != nil {
			t.Fatal(err)
		}
		registered = true
		client := connect(t, server, era, asking("accept", map[string]any{"vm": "web01"}, nil))
		enough := args{
			"vm": "web01", "action": "x", "changeId": "c1", "path": "/etc/hosts", "server": "s", "tool": "x", "taskId": "t", "to": "c2", "apply": true,
		}
		for _, tool := range list(t, client) {
			if tool.Name == "list_vms" {
				continue
			}
			given := args{}
			properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
			for name := range properties {
				if value, ok := enough[name]; ok {
					given[name] = value
				}
			}
			for range 2 {
				f := refusedCall(t, client, tool.Name, given)
				if f.Code != "internal" || strings.Contains(f.Detail, "nil pointer") {
					t.Errorf("%s: %+v", tool.Name, f)
				}
			}
		}
		for _, uri := range []string{"zerto-rewind://catalogue", "zerto-rewind://guards"} {
			if _, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || strings.Contains(err.Error(), "no catalogue") {
				t.Errorf("%s: %v", uri, err)
			}
		}
		if result := callAny(t, client, "list_vms", nil); result.IsError {
			t.Errorf("the host's own tool suffers: %s", text(result))
		}
		if !strings.Contains(log.String(), "nil pointer") {
			t.Errorf("the log does not say what happened: %s", &log)
		}
	})
}

func TestAServerTellsItsVersionAndHowToUseIt(t *testing.T) {
	t.Parallel()
	server := newWorld(t).server(t, mcpadapter.WithVersion("1.2.3"), mcpadapter.WithPrefix("dr_"))
	told := connect(t, server, eras[0], nil).InitializeResult()
	if told.ServerInfo.Name != "zerto-rewind" || told.ServerInfo.Version != "1.2.3" {
		t.Errorf("server = %+v", told.ServerInfo)
	}
	for _, tool := range []string{checkTool, guardTool, recoverTool} {
		if !strings.Contains(told.Instructions, "dr_"+tool) {
			t.Errorf("instructions do not name %s:\n%s", tool, told.Instructions)
		}
	}
	if diff := cmp.Diff("{\n  \"prompts\": {},\n  \"resources\": {},\n  \"tools\": {}\n}\n", string(indented(t, told.Capabilities))); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
}
