package proxyadapter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzNoReaderFindsACallInWhatPassesUnjudged holds a message against how servers may read it: the last or the first of
// equal names, with and without regard to case, and to what stands behind a NUL.
func FuzzNoReaderFindsACallInWhatPassesUnjudged(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"id":1,"method":"ping","method":"tools/call"}`,
		`{"id":1,"Method":"tools/call","method":"ping"}`,
		`{"id":1,"method":"tools\/call","params":{"name":"x"}}`,
		`{"id":1,"m\u0065thod":"tools/call"}`,
		`{"id":1,"method\u0000x":"tools/call","method":"ping"}`,
		`{"id":1,"method":"tools/call\u0000"}`,
		`{"id":1,"result":{"method":"tools/call"}}`,
		`[{"method":"tools/call"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseMessage(line)
		if err != nil || m.isCall {
			return
		}
		var last struct{ Method string }
		if json.Unmarshal(line, &last) == nil && last.Method == methodCall {
			t.Errorf("%q passes", line)
		}
		decoder := json.NewDecoder(bytes.NewReader(line))
		if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
			return
		}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return
			}
			var value any
			if decoder.Decode(&value) != nil {
				return
			}
			if name, ok := name.(string); ok && equalFold(name, "method") && equalFold(text(value), methodCall) {
				t.Errorf("%q passes", line)
			}
		}
	})
}

func equalFold(a, b string) bool {
	a, _, _ = strings.Cut(a, "\x00")
	return strings.EqualFold(a, b)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
