package zvm_test

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jarcoal/httpmock"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// reach is the checked-in table of everything that this module can ask of a ZVM. It is short on purpose: live failover,
// move, commit, rollback, VM restore, and the editing and deleting of VPGs are not in it. The suites of the loop and of
// the adapters hold every simulated ZVM to the same table.
func reach(t *testing.T) []string {
	t.Helper()
	table, err := os.ReadFile("testdata/reach.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(table)), "\n")
}

// TestLaw4_TheClientCanSendNothingElse calls every method that a client has, found by reflection, so that a new one
// cannot be forgotten here.
func TestLaw4_TheClientCanSendNothingElse(t *testing.T) {
	t.Parallel()
	sent := &recorder{}
	transport := httpmock.NewMockTransport()
	transport.RegisterNoResponder(sent.answer)
	client, err := zvm.New("https://zvm.example.test", zvm.Password("u", "MARKER-p"), zvm.WithTransport(transport),
		zvm.WithRetry(zvm.RetryPolicy{Max: 0, MinWait: time.Millisecond, MaxWait: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(client)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if slices.Contains([]string{"With", "BaseURL", "Format", "String", "GoString", "LogValue", "MarshalJSON"}, name) {
			continue // describe or derive, and send nothing
		}
		call(t, v.Method(i))
	}
	if diff := cmp.Diff(reach(t), sent.pairs()); diff != "" {
		t.Errorf("what the client sends (-listed +sent):\n%s", diff)
	}
}

// call calls a method with arguments that are all valid and non-zero, and runs the sequence it may return.
func call(t *testing.T, method reflect.Value) {
	t.Helper()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			args = append(args, filled(t, method.Type().In(i).Elem()))
			continue
		}
		args = append(args, filled(t, method.Type().In(i)))
	}
	for _, result := range method.Call(args) {
		if result.Kind() == reflect.Func && result.Type().CanSeq2() {
			for range result.Seq2() {
				continue
			}
		}
	}
}

func filled(t *testing.T, typ reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch {
	case typ == reflect.TypeFor[context.Context]():
		v.Set(reflect.ValueOf(t.Context()))
	case typ == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1764410400, 0)))
	case typ.Kind() == reflect.String:
		v.SetString("id")
	case typ.Kind() == reflect.Int:
		v.SetInt(1)
	case typ.Kind() == reflect.Bool:
		v.SetBool(true)
	case typ.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, filled(t, typ.Elem())))
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(t, typ.Field(i).Type))
		}
	default:
		t.Fatalf("no argument for %v: teach this test", typ)
	}
	return v
}

// recorder answers every request with a token and remembers what was asked.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) answer(req *http.Request) (*http.Response, error) {
	path := strings.ReplaceAll(strings.ReplaceAll(req.URL.Path, "/id/", "/{id}/"), "/downloads/link", "/downloads/{link}")
	path = strings.Replace(path, "/realms/zerto/", "/realms/{realm}/", 1)
	if rest, ended := strings.CutSuffix(path, "/id"); ended {
		path = rest + "/{id}"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, req.Method+" "+path)
	if strings.HasSuffix(path, "/download") {
		return httpmock.NewJsonResponse(http.StatusOK, "/v1/downloads/link")
	}
	return httpmock.NewJsonResponse(http.StatusOK, map[string]any{"access_token": "MARKER-t", "expires_in": 300})
}

func (r *recorder) pairs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.seen)
	return slices.Compact(r.seen)
}
