package proxyadapter_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
)

func intercept(t *testing.T, config proxyadapter.Config, request string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := proxyadapter.Intercept(t.Context(), strings.NewReader(request), &out, config)
	return out.String(), err
}

func TestTheInterceptorIsSilentForWhatMayRun(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	if _, err := world.protect(t.Context(), []string{"web01"}, ""); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{
		`{"method":"tools/call","params":{"name":"listVMs","arguments":{}}}`,
		`{"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"},"_meta":{"progressToken":"p"}}}`,
	} {
		if out, err := intercept(t, world.config(), request); out != "" || err != nil {
			t.Errorf("%s: %q, %v", request, out, err)
		}
	}
}

func TestLaw6_TheInterceptorReplacesWhatMayNotRun(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	for _, request := range []string{
		`{"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"method":"tools/call","params":{"name":"defragment","arguments":{}}}`,
	} {
		out, err := intercept(t, config, request)
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			IsError bool             `json:"isError"`
			Content []map[string]any `json:"content"`
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || !result.IsError || len(result.Content) != 1 {
			t.Errorf("%s: %s (%v)", request, out, err)
		}
	}
}

func TestLaw6_TheInterceptorFailsOnWhatItCannotRead(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	for _, request := range []string{
		``, `{}`, `null`, `{"method":"tools/list"}`, `{"method":"tools/call","params":{}}`,
		`{"method":"tools/call","Params":{"name":"powerOff"},"params":{"name":"listVMs"}}`,
	} {
		if out, err := intercept(t, config, request); err == nil {
			t.Errorf("%s: %q", request, out)
		}
	}
}
