package gate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	got, err := gate.Arguments([]byte(`{"vm":"web01","n":9007199254740993,"deep":{"VM":1,"vm":[1.10]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"vm": "web01", "n": json.Number("9007199254740993"),
		"deep": map[string]any{"VM": json.Number("1"), "vm": []any{json.Number("1.10")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestArgumentsThatCanBeReadInTwoWaysAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `null`, `[]`, `"{}"`, `{`, `{}{}`, `{} x`,
		`{"vm":"a","vm":"b"}`,
		`{"vm":"a","VM":"b"}`,
		`{"vm":"a","\u0076m":"b"}`,
		`{"ho` + "ſ" + `t":"a","host":"b"}`,
		`{"vm\u0000x":"a","vm":"b"}`,
		`{"vm\u0000":"a"}`,
		`{"a":{"b":1,"b":2}}`,
		`{"a":[{"b":1,"b":2}]}`,
		`{"a":"\ud800"}`,
		"{\"a\":\"\xff\"}",
	} {
		if got, err := gate.Arguments([]byte(text)); err == nil {
			t.Errorf("%s was read as %v", text, got)
		}
	}
}
