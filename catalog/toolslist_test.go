package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func TestParseToolsList(t *testing.T) {
	t.Parallel()
	tool := `{"name":"look","title":"Look","description":"d","inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":1}}`
	want := []catalog.Definition{{
		Name: "look", Description: "d", InputSchema: json.RawMessage(`{"properties":{"a":{},"b":{}},"type":"object"}`),
		Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}}
	for _, tt := range []struct {
		behaviour, text string
		more            bool
	}{
		{"a list", "[" + tool + "]", false},
		{"a result", `{"tools":[` + tool + "]}", false},
		{"a page of a result", `{"tools":[` + tool + `],"nextCursor":"2"}`, true},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tool + "]}}", false},
		{"a byte order mark", "\xef\xbb\xbf[" + tool + "]\n", false},
	} {
		list, err := catalog.ParseToolsList([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.behaviour, err)
			continue
		}
		if diff := cmp.Diff(&catalog.ToolsList{Tools: want, More: tt.more}, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.behaviour, diff)
		}
		if diff := cmp.Diff([]string{"a", "b"}, list.Tools[0].Arguments()); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", tt.behaviour, diff)
		}
	}
}

func TestParseToolsListRefuses(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{
		"nothing":                      "",
		"half a list":                  `[{"name":"a"}`,
		"two lists":                    `[] []`,
		"bytes that are no UTF-8":      "[{\"name\":\"\xff\"}]",
		"an error":                     `{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}`,
		"tools that are no list":       `{"tools":{}}`,
		"a key twice, deep in it":      `[{"name":"a","inputSchema":{"properties":{"vm":{},"vm":{"type":"string"}}}}]`,
		"a name twice":                 `[{"name":"a","name":"b"}]`,
		"a tool twice":                 `[{"name":"a"},{"name":"a"}]`,
		"a tool without name":          `[{"description":"a"}]`,
		"a name in another case":       `[{"Name":"a"}]`,
		"a tool that is no object":     `["a"]`,
		"a name that is no text":       `[{"name":1}]`,
		"a schema that is no object":   `[{"name":"a","inputSchema":"x"}]`,
		"annotations that are no such": `[{"name":"a","annotations":[]}]`,
		"bottomless nesting":           strings.Repeat("[", 100_000),
	} {
		if list, err := catalog.ParseToolsList([]byte(text)); err == nil || list != nil {
			t.Errorf("%s: list %+v, error %v", behaviour, list, err)
		}
	}
}
