package mcpadapter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestArgumentsAreReadStrictly(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, arguments, says string }{
		{"an unknown name", `{"vm":"web01","site":"x"}`, `there is no argument "site"; the arguments are: vm`},
		{"a name in another case", `{"VM":"web01"}`, `there is no argument "VM"`},
		{"a name given twice", `{"vm":"web01","vm":"web02"}`, `"vm" is given twice`},
		{"a missing one", `{}`, `"vm" is missing; the arguments are: vm`},
		{"null in place of a required one", `{"vm":null}`, `"vm" is missing`},
		{"a number for text", `{"vm":1}`, `type`},
		{"empty text", `{"vm":""}`, `minLength`},
		{"a list in place of an object", `["web01"]`, `not a JSON object`},
		{"text in place of an object", `"web01"`, `not a JSON object`},
		{"nothing", ``, `"vm" is missing`},
	}
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era)
		for _, tt := range tests {
			params := &mcp.CallToolParams{Name: findTool}
			if tt.arguments != "" {
				params.Arguments = json.RawMessage(tt.arguments)
			}
			result, err := client.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			f := structured[struct{ Error failure }](t, result).Error
			if f.Code != "invalid_arguments" || !strings.Contains(f.Detail, tt.says) {
				t.Errorf("refusal = %+v, want %s", f, tt.says)
			}
		}
		if n := len(w.zvm.Requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestNullMeansNotGiven(t *testing.T) {
	t.Parallel()
	call[struct{}](t, newWorld(t).connect(t, eras[0]), guardTool, args{"vm": "web01", "vms": nil, "action": "x", "changeId": nil})
}
