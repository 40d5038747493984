package mcpadapter_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// TestToolsAreAsPublished holds what clients see of each tool. A change here is a change of the API.
func TestToolsAreAsPublished(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		listed := list(t, newWorld(t).connect(t, era))
		files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
		if err != nil || len(files) != len(listed) && !*update {
			t.Errorf("%d golden files, %d tools, error %v", len(files), len(listed), err)
		}
		for _, tool := range listed {
			golden := filepath.Join("testdata", tool.Name+".json")
			got := indented(t, tool)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		}
	})
}

func TestSchemasHoldNothingThatClientsStumbleOver(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`"null"|"\$ref"|: ?null\b|: ?true,? *"jsonschema`)
	for _, tool := range list(t, newWorld(t).connect(t, eras[0])) {
		for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
			if found := forbidden.Find(indented(t, schema)); found != nil {
				t.Errorf("%s: a schema holds %s", tool.Name, found)
			}
			root, _ := schema.(map[string]any)
			if root["type"] != "object" || root["additionalProperties"] == nil {
				t.Errorf("%s: a schema is not that of a closed object: %v", tool.Name, root["type"])
			}
		}
	}
}

// TestArgumentsHaveOneNameForOneThing: an agent that knows one tool can call the next.
func TestArgumentsHaveOneNameForOneThing(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, tool := range list(t, newWorld(t).connect(t, eras[0])) {
		properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		for name := range properties {
			names[name] = true
		}
	}
	want := []string{
		"action", "apply", "args", "changeId", "dest", "force", "path", "server", "since", "taskId", "to", "tool", "vm", "vms",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(names))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryToolSetsAllAnnotations(t *testing.T) {
	t.Parallel()
	for _, tool := range list(t, newWorld(t).connect(t, eras[0])) {
		a := tool.Annotations
		if a == nil || a.Title == "" || a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Errorf("%s: annotations = %+v", tool.Name, a)
		} else if a.ReadOnlyHint && *a.DestructiveHint {
			t.Errorf("%s is said to be both read-only and destructive", tool.Name)
		}
	}
}

func TestToolNamesFitHosts(t *testing.T) {
	t.Parallel()
	fits := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,46}$`)
	for _, tool := range list(t, newWorld(t).connect(t, eras[0], mcpadapter.WithPrefix("a-prefix-of-twenty-c"))) {
		if !fits.MatchString(tool.Name) {
			t.Errorf("hosts may refuse the name %s", tool.Name)
		}
	}
}

func list(t *testing.T, c *mcp.ClientSession) []*mcp.Tool {
	t.Helper()
	result, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result.Tools
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
