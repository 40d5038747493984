package mcpadapter

import (
	"context"
	_ "embed" // the skill's text
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// Skill is the loop in words, as a skill that an agent can load: a SKILL.md with its front matter.
//
//go:embed skill/SKILL.md
var Skill string

// What [NewServer] offers besides tools.
const (
	promptFlow        = "zerto-rewind-flow"
	resourceGuards    = "zerto-rewind://guards"
	resourceCatalogue = "zerto-rewind://catalogue"
)

// GuardLister tells the guards that were made lately, newest first.
type GuardLister func(ctx context.Context) ([]rewind.GuardRecord, error)

// WithGuardLister sets what the resource zerto-rewind://guards shows. The default is what this server has made itself:
// journals are read for one VM at a time.
func WithGuardLister(list GuardLister) Option {
	return func(t *toolset) error { t.guardLister = list; return nil }
}

// WithGuarded has note told of every guard that is made, so that it can be remembered. A guard that could not be is one all
// the same.
func WithGuarded(note func(context.Context, rewind.GuardRecord)) Option {
	return func(t *toolset) error { t.noteGuard = note; return nil }
}

// offerTexts adds the prompt and the resources.
func (t *toolset) offerTexts(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{
		Name: promptFlow, Title: "The rewind loop",
		Description: "How to guard a change of a virtual machine, and how to take it back",
	}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{
			Description: "The rewind loop",
			Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: t.prefixed(body(Skill))}}},
		}, nil
	})
	server.AddResource(&mcp.Resource{
		URI: resourceCatalogue, Name: "catalogue", Title: "What tools are", MIMEType: "application/json",
		Description: "every tool that is known, with its class; a tool that is not here is unknown, and unknown is not safe",
	}, t.surviving(func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		known, err := t.known()
		if err != nil {
			return nil, fmt.Errorf("the catalogue cannot be read: %w", err)
		}
		entries := []catalog.Entry{}
		for e := range known.Entries() {
			entries = append(entries, *e)
		}
		return asJSON(resourceCatalogue, struct {
			Entries []catalog.Entry `json:"entries"`
		}{entries})
	}))
	server.AddResource(&mcp.Resource{
		URI: resourceGuards, Name: "guards", Title: "Guards made lately", MIMEType: "application/json",
		Description: "records of the guards that were made lately, newest first; each is a claim until zerto_verify_guard has looked",
	}, t.surviving(func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		records, err := t.guardLister(ctx)
		if err != nil {
			return nil, fmt.Errorf("the guards cannot be listed: %w", err)
		}
		return asJSON(resourceGuards, struct {
			Guards []rewind.GuardRecord `json:"guards"`
		}{orEmpty(records)})
	}))
}

// surviving makes a panic of whoever gives what a resource shows one failed request.
func (t *toolset) surviving(read mcp.ResourceHandler) mcp.ResourceHandler {
	return func(ctx context.Context, request *mcp.ReadResourceRequest) (result *mcp.ReadResourceResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				t.logger.ErrorContext(ctx, "a resource panicked", "panic", p, "stack", string(debug.Stack()))
				err = errPanicked
			}
		}()
		return read(ctx, request)
	}
}

// maxMade is how many guards a server remembers.
const maxMade = 100

// made are the guards that a server has made, the newest first.
type made struct {
	mu      sync.Mutex
	records []rewind.GuardRecord
}

func (m *made) add(r rewind.GuardRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.Insert(m.records, 0, r)
	m.records = m.records[:min(len(m.records), maxMade)]
}

func (m *made) list(context.Context) ([]rewind.GuardRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records), nil
}

func asJSON(uri string, v any) (*mcp.ReadResourceResult, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
}

// body is a skill without its front matter.
func body(skill string) string {
	if _, rest, ok := strings.Cut(strings.TrimPrefix(skill, "---\n"), "\n---\n"); ok {
		return strings.TrimLeft(rest, "\n")
	}
	return skill
}

// prefixed names the tools as this server does.
func (t *toolset) prefixed(text string) string {
	return strings.ReplaceAll(text, "`zerto_", "`"+t.prefix+"zerto_")
}
