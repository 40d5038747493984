package zvm

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	testUser     = "svc-rewind"
	testPassword = "MARKER-password"
	tokenSuffix  = "/protocol/openid-connect/token"
)

var quickRetry = WithRetry(RetryPolicy{Max: 3, MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond})

// fakeServer issues numbered tokens over TLS and hands everything else to api.
type fakeServer struct {
	*httptest.Server
	logins, conns atomic.Int64
}

func newFakeServer(t *testing.T, api http.HandlerFunc) *fakeServer {
	t.Helper()
	f := unstartedFakeServer(api)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

func unstartedFakeServer(api http.HandlerFunc) *fakeServer {
	f := &fakeServer{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, tokenSuffix) {
			api(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, tokenAnswer(f.logins.Add(1)))
	}))
	f.Config.ErrorLog = quietLog()
	f.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			f.conns.Add(1)
		}
	}
	return f
}

func tokenAnswer(n int64) string {
	return `{"access_token":"` + tokenNumber(n) + `","expires_in":60,"token_type":"Bearer"}`
}

func tokenNumber(n int64) string { return "MARKER-token-" + strconv.FormatInt(n, 10) }

func (f *fakeServer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(f.Certificate())
	return pool
}

// client returns a client that trusts the server and does not wait long.
func (f *fakeServer) client(t *testing.T, opts ...Option) *Client {
	t.Helper()
	return newTestClient(t, f.URL, append([]Option{WithRootCAs(f.pool()), quickRetry}, opts...)...)
}

func newTestClient(t *testing.T, baseURL string, opts ...Option) *Client {
	t.Helper()
	c, err := New(baseURL, Password(testUser, testPassword), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIdle(c) })
	return c
}

func closeIdle(c *Client) {
	if tr, ok := c.sender.transport.(*http.Transport); ok {
		tr.CloseIdleConnections()
	}
}

// responder answers one request.
type responder func(*http.Request) (*http.Response, error)

// script is a transport without a network, for tests about time and about exact bytes. It logs in by itself unless login is set.
type script struct {
	login responder
	api   responder

	mu       sync.Mutex
	requests []recorded
}

type recorded struct {
	Method, Path, Auth, Body string
	Length                   int64
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	isLogin := strings.HasSuffix(req.URL.Path, tokenSuffix)
	s.mu.Lock()
	s.requests = append(s.requests, recorded{req.Method, req.URL.Path, req.Header.Get("Authorization"), string(body), req.ContentLength})
	logins := int64(0)
	for _, r := range s.requests {
		if strings.HasSuffix(r.Path, tokenSuffix) {
			logins++
		}
	}
	s.mu.Unlock()
	switch {
	case !isLogin:
		return s.api(req)
	case s.login != nil:
		return s.login(req)
	}
	return reply(req, 200, tokenAnswer(logins)), nil
}

// logins returns the requests to the token endpoint, calls all others.
func (s *script) logins() []recorded { return s.filter(true) }

func (s *script) calls() []recorded { return s.filter(false) }

func (s *script) filter(login bool) []recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []recorded
	for _, r := range s.requests {
		if strings.HasSuffix(r.Path, tokenSuffix) == login {
			found = append(found, r)
		}
	}
	return found
}

func (s *script) client(t *testing.T, opts ...Option) *Client {
	t.Helper()
	return newTestClient(t, "https://zvm.example.com", append([]Option{WithTransport(s), quickRetry}, opts...)...)
}

func reply(req *http.Request, status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// replies answers with each status in turn and with the last one for ever.
func replies(body string, statuses ...int) responder {
	var n atomic.Int64
	return func(req *http.Request) (*http.Response, error) {
		i := min(int(n.Add(1)), len(statuses)) - 1
		return reply(req, statuses[i], body), nil
	}
}

func getCall() call { return call{op: "GetThing", method: http.MethodGet, path: "/v1/things"} }

func postCall() call {
	return call{op: "MakeThing", method: http.MethodPost, path: "/v1/things", body: map[string]string{"name": "a <b> & c"}}
}

func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T (%v), want *Error", err, err)
	}
	return e
}

// wantNoMarker fails if text holds a secret of any test.
func wantNoMarker(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, "MARKER") {
		t.Errorf("%s shows a secret: %s", what, text)
	}
}

// write sends a write once and decodes its JSON answer into out. A nil out accepts any answer that is not a page for humans.
func (c *Client) write(ctx context.Context, cl call, out any) error {
	a, err := c.writeRaw(ctx, cl)
	if err != nil || out == nil {
		return err
	}
	if err := decode(a.body, out); err != nil {
		return a.unusable(err)
	}
	return nil
}
