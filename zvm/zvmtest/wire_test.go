package zvmtest

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzLowerKeysChangesKeysAlone(f *testing.F) {
	for _, seed := range []string{
		`{"VmName":"Web: \"A\"","IOPs":2}`, `[{"Link":{"href":"X"}},"Text",null]`, `{"\"Q":1,"":2}`, `"A":`, `{"A\\":"B"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			b := []byte(text)
			lowerKeys(b) // need not make sense, must not fail
			return
		}
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		before := string(body)
		lowerKeys(body)
		if !strings.EqualFold(before, string(body)) || !json.Valid(body) {
			t.Errorf("%s became %s", before, body)
		}
		var after any
		if err := json.Unmarshal(body, &after); err != nil {
			t.Fatal(err)
		}
		if text, isText := value.(string); isText && after != text {
			t.Errorf("a value changed: %q became %q", text, after)
		}
	})
}
