package mcpadapter_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// eras are the protocol versions of the two ways in which clients speak to servers.
var eras = []string{"2025-11-25", "2026-07-28"}

// inBothEras runs a test for each way in which a client may speak.
func inBothEras(t *testing.T, test func(t *testing.T, era string)) {
	t.Helper()
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			test(t, era)
		})
	}
}

// world is a simulated ZVM with one VM, and a session on it.
type world struct {
	t       *testing.T
	client  *zvm.Client
	zvm     *zvmtest.Server
	vpg     *zvmtest.VPG
	vm      *zvmtest.VM
	session *rewind.Session
}

func newWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	s := zvmtest.Start(t, append([]zvmtest.Option{zvmtest.WithProfile(zvmtest.Quick), withinReach(t)}, opts...)...)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	w := &world{zvm: s, vpg: vpg, vm: s.AddVM("web01", vpg)}
	client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), zvm.WithRootCAs(s.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	w.client, w.t = client, t
	w.session = w.newSession()
	return w
}

// newSession returns a session that looks often, as everything in the simulator is quick.
func (w *world) newSession(opts ...rewind.Option) *rewind.Session {
	w.t.Helper()
	quick := rewind.WithSchedule(task.Schedule{Min: time.Millisecond, Max: 20 * time.Millisecond})
	session, err := rewind.NewSession(w.client, append([]rewind.Option{quick}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

func (w *world) server(t *testing.T, opts ...mcpadapter.Option) *mcp.Server {
	t.Helper()
	server, err := mcpadapter.NewServer(w.session, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// connect returns a client of the server that speaks as the era does.
func connect(t *testing.T, server *mcp.Server, era string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "patch-bot", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func (w *world) connect(t *testing.T, era string, opts ...mcpadapter.Option) *mcp.ClientSession {
	t.Helper()
	return connect(t, w.server(t, opts...), era, nil)
}

type args map[string]any

// call calls a tool and decodes the structured content of its answer, which has to be a good one.
func call[T any](t *testing.T, c *mcp.ClientSession, tool string, a args) T {
	t.Helper()
	result := callAny(t, c, tool, a)
	if result.IsError {
		t.Fatalf("%s was refused: %s", tool, text(result))
	}
	return structured[T](t, result)
}

// failure is what a refusal says, as far as tests look at it.
type failure struct {
	Code, Message, NotDone, NextStep, Detail, ChangeID string

	Candidates []rewind.Protection
	VPGs       []rewind.VPGProtection
	Tagged     []rewind.TaggedCheckpoint
	Failed     []struct{ VPGName, Tag, TaskID, Reason string }
	Paths      []string
	LeftOpen   *struct{ What, ID, Command string }
}

// refusedCall calls a tool that has to refuse, and checks what every refusal owes: words that say what was not done.
func refusedCall(t *testing.T, c *mcp.ClientSession, tool string, a args) failure {
	t.Helper()
	result := callAny(t, c, tool, a)
	if !result.IsError {
		t.Fatalf("%s was not refused: %s", tool, text(result))
	}
	f := structured[struct{ Error failure }](t, result).Error
	first := result.Content[0].(*mcp.TextContent).Text
	if f.Code == "" || f.NotDone == "" || f.NextStep == "" || !strings.Contains(first, f.NotDone) {
		t.Errorf("refusal says too little: %s", text(result))
	}
	return f
}

func callAny(t *testing.T, c *mcp.ClientSession, tool string, a args) *mcp.CallToolResult {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any(a)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	requireSchema(t, c, tool, result)
	return result
}

// requireSchema fails the test when an answer, a refusal too, is not as its tool's output schema says.
func requireSchema(t *testing.T, c *mcp.ClientSession, name string, result *mcp.CallToolResult) {
	t.Helper()
	for _, tool := range list(t, c) {
		if tool.Name != name || tool.OutputSchema == nil {
			continue
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(indented(t, tool.OutputSchema), &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(result.StructuredContent); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func structured[T any](t *testing.T, result *mcp.CallToolResult) T {
	t.Helper()
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("structured content %s: %v", data, err)
	}
	return out
}

func text(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}
