package zvm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeServer issues numbered tokens and hands everything else to api.
type fakeServer struct {
	*httptest.Server
	logins atomic.Int64
}

const (
	testUser     = "svc-rewind"
	testPassword = "MARKER-password"
	tokenSuffix  = "/protocol/openid-connect/token"
)

func newFakeServer(t *testing.T, api http.HandlerFunc) *fakeServer {
	t.Helper()
	f := &fakeServer{}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, tokenSuffix) {
			api(w, r)
			return
		}
		n := f.logins.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, tokenAnswer(n))
	}))
	t.Cleanup(f.Close)
	return f
}

func tokenAnswer(n int64) string {
	return `{"access_token":"` + tokenNumber(n) + `","expires_in":60,"token_type":"Bearer"}`
}

func tokenNumber(n int64) string { return "MARKER-token-" + string(rune('0'+n%10)) }

// client returns a client that trusts the server and does not wait long.
func (f *fakeServer) client(t *testing.T, opts ...Option) *Client {
	t.Helper()
	opts = append([]Option{
		WithRootCAs(f.pool()),
		WithRetry(RetryPolicy{Max: 3, MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond}),
	}, opts...)
	c, err := New(f.URL, Password(testUser, testPassword), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReadDecodesAnswer(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+tokenNumber(1) {
			t.Errorf("Authorization is %q", got)
		}
		_, _ = io.WriteString(w, "\xef\xbb\xbf"+`{"Name":"web01"}`)
	})
	c := f.client(t)
	var out struct{ Name string }
	if err := c.read(t.Context(), call{op: "Get", method: http.MethodGet, path: "/v1/vms"}, &out); err != nil {
		t.Fatal(err)
	}
	if out.Name != "web01" {
		t.Errorf("Name is %q", out.Name)
	}
}
