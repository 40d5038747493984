package mcpadapter_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	readmePath  = "README.md"
	tableBegins = "<!-- tools -->\n"
	tableEnds   = "<!-- /tools -->\n"
)

// TestReadmeTabulatesTheTools makes the table of the README from the golden schemas.
func TestReadmeTabulatesTheTools(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	got, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", readmePath, tableBegins, tableEnds)
	}
	want := toolTable(t)
	if *update && got != want {
		if err := os.WriteFile(readmePath, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", readmePath, diff)
	}
}

func toolTable(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "zerto_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	var b strings.Builder
	b.WriteString("| tool | does | arguments | hint |\n|---|---|---|---|\n")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tool struct {
			mcp.Tool
			InputSchema struct {
				Properties map[string]any
				Required   []string
			} `json:"inputSchema"`
		}
		if err := json.Unmarshal(data, &tool); err != nil {
			t.Fatal(err)
		}
		hint := "writes"
		switch a := tool.Annotations; {
		case a.ReadOnlyHint:
			hint = "read-only"
		case *a.DestructiveHint:
			hint = "destructive"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", tool.Name, tool.Annotations.Title,
			arguments(tool.InputSchema.Properties, tool.InputSchema.Required), hint)
	}
	return b.String()
}

// arguments lists them, those that have to be given first, and the others in brackets.
func arguments(properties map[string]any, required []string) string {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	rank := func(name string) int { return map[bool]int{true: 0, false: 1}[slices.Contains(required, name)] }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = "`" + name + "`"
		if rank(name) > 0 {
			names[i] = "[" + names[i] + "]"
		}
	}
	return strings.Join(names, " ")
}
