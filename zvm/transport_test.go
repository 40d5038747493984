package zvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderTimeoutIsPerAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.api = func(req *http.Request) (*http.Response, error) {
			if len(s.calls()) < 3 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return reply(req, 200, `{}`), nil
		}
		start := time.Now()
		if err := s.client(t, WithHeaderTimeout(5*time.Second)).read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start).Truncate(time.Second); took != 10*time.Second {
			t.Errorf("took %s, want two timeouts of 5 s", took)
		}
	})
}

func TestHeaderTimeoutIsNotTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}}
		c := s.client(t, WithHeaderTimeout(time.Second), WithRetry(RetryPolicy{}))
		err := c.read(t.Context(), getCall(), &struct{}{})
		if endedByContext(err) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "header timeout") {
			t.Errorf("error is %v", err)
		}
		err = c.write(t.Context(), postCall(), nil)
		if endedByContext(err) || !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("error of the write is %v", err)
		}
	})
}

// slowBody delivers one byte after every wait, until its context ends.
type slowBody struct {
	ctx    context.Context
	left   string
	waits  []time.Duration
	closed *atomic.Int64
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == "" {
		return 0, io.EOF
	}
	wait := b.waits[0]
	if len(b.waits) > 1 {
		b.waits = b.waits[1:]
	}
	if err := sleep(b.ctx, wait); err != nil {
		return 0, b.ctx.Err()
	}
	p[0] = b.left[0]
	b.left = b.left[1:]
	return 1, nil
}

func (b *slowBody) Close() error {
	if b.closed != nil {
		b.closed.Add(1)
	}
	return nil
}

func TestSlowBodyArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int64
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			resp := reply(req, 200, "")
			resp.Body = &slowBody{req.Context(), `{"Name":"x"}`, []time.Duration{9 * time.Second}, &closed}
			return resp, nil
		}}
		var out struct{ Name string }
		err := s.client(t, WithHeaderTimeout(time.Second), WithIdleTimeout(10*time.Second)).read(t.Context(), getCall(), &out)
		if err != nil || out.Name != "x" || closed.Load() != 1 {
			t.Errorf("got %q, %v, closed %d times", out.Name, err, closed.Load())
		}
	})
}

func TestStalledBodyFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int64
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			resp := reply(req, 200, "")
			resp.Body = &slowBody{req.Context(), `{"Name":"x"}`, []time.Duration{time.Second, time.Hour}, &closed}
			return resp, nil
		}}
		c := s.client(t, WithIdleTimeout(10*time.Second), WithRetry(RetryPolicy{Max: 1, MinWait: time.Millisecond, MaxWait: time.Millisecond}))
		start := time.Now()
		err := c.read(t.Context(), getCall(), &struct{}{})
		if !strings.Contains(fmt.Sprint(err), "idle timeout") || endedByContext(err) {
			t.Errorf("error is %v", err)
		}
		if took := time.Since(start).Truncate(time.Second); took != 22*time.Second || closed.Load() != 2 {
			t.Errorf("took %s for two attempts, %d bodies closed", took, closed.Load())
		}
	})
}

func TestSlowReaderIsNotAStalledBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			resp := reply(req, 200, "")
			resp.Body = &slowBody{req.Context(), `xyz`, []time.Duration{time.Millisecond}, nil}
			return resp, nil
		}}
		resp, err := s.client(t, WithIdleTimeout(time.Second)).open(t.Context(), call{op: "Download"}, "/v1/downloads/x")
		if err != nil {
			t.Fatal(err)
		}
		defer closeBody(resp.Body)
		p := make([]byte, 1)
		for range 3 {
			_ = sleep(t.Context(), time.Hour)
			if _, err := resp.Body.Read(p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBodiesOfRefusalsAreClosedAndBounded(t *testing.T) {
	t.Parallel()
	var opened, closed atomic.Int64
	s := &script{api: func(req *http.Request) (*http.Response, error) {
		opened.Add(1)
		resp := reply(req, 503, "")
		resp.Body = &endlessBody{closed: &closed}
		resp.ContentLength = -1
		return resp, nil
	}}
	e := asError(t, s.client(t).read(t.Context(), getCall(), &struct{}{}))
	if opened.Load() != 4 || closed.Load() != 4 {
		t.Errorf("%d bodies opened, %d closed", opened.Load(), closed.Load())
	}
	if len(e.Body) != maxErrorBody {
		t.Errorf("%d bytes of body kept, want %d", len(e.Body), maxErrorBody)
	}
	if len(e.Error()) > 3000 {
		t.Errorf("the error text has %d bytes", len(e.Error()))
	}
}

type endlessBody struct{ closed *atomic.Int64 }

func (*endlessBody) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (b *endlessBody) Close() error { b.closed.Add(1); return nil }

func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%3 != 0 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	c := f.client(t)
	for range 5 {
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.conns.Load(); n != 1 {
		t.Errorf("%d connections for calls in sequence", n)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var foreign atomic.Int64
	other := newFakeServer(t, func(http.ResponseWriter, *http.Request) { foreign.Add(1) })
	var arrived atomic.Int64
	var target string
	f := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/there" {
			arrived.Add(1)
			if r.Header.Get("Authorization") == "" {
				t.Error("the bearer got lost within the origin")
			}
			_, _ = io.WriteString(w, `{}`)
			return
		}
		status := http.StatusTemporaryRedirect
		http.Redirect(w, r, map[string]string{
			"/v1/near": "/v1/there", "/v1/far": other.URL + "/v1/there?t=MARKER-t", "/v1/plain": target, "/v1/loop": "/v1/loop",
		}[r.URL.Path], status)
	})
	target = strings.Replace(f.URL, "https:", "http:", 1) + "/v1/there"
	c := f.client(t)
	if err := c.read(t.Context(), call{op: "Get", method: "GET", path: "/v1/near"}, &struct{}{}); err != nil || arrived.Load() != 1 {
		t.Errorf("a redirect within the origin: %v", err)
	}
	for _, path := range []string{"/v1/far", "/v1/plain"} {
		err := c.read(t.Context(), call{op: "Get", method: "GET", path: path}, &struct{}{})
		if !errors.Is(err, ErrForeignOrigin) || asError(t, err).Status != 307 {
			t.Errorf("%s: error is %v", path, err)
		}
		wantNoMarker(t, "the error", err.Error())
	}
	if err := c.read(t.Context(), call{op: "Get", method: "GET", path: "/v1/loop"}, &struct{}{}); err == nil {
		t.Error("an endless redirect ended well")
	}
	for _, path := range []string{"/v1/near", "/v1/far"} {
		err := c.write(t.Context(), call{op: "Post", method: "POST", path: path}, nil)
		if err == nil || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("a write redirected at %s: %v", path, err)
		}
	}
	if foreign.Load() != 0 || arrived.Load() != 1 {
		t.Errorf("%d requests reached the other origin, %d the target", foreign.Load(), arrived.Load())
	}
}

// Links and redirects are checked before; this is the last line behind them.
func TestWireCarriesNothingToAnotherOrigin(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	w := &wire{next: s, origin: "https://zvm.example.com:443", headerTimeout: time.Second, idleTimeout: time.Second}
	client := http.Client{Transport: w}
	for _, target := range []string{"http://zvm.example.com/", "https://zvm.example.com:8443/", "https://evil.example.com/", "ftp://zvm.example.com:443/"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, ErrForeignOrigin) || len(s.requests) != 0 {
			t.Errorf("%s: %v, %d requests", target, err, len(s.requests))
		}
	}
}

func TestDebugLinesShowAttemptsAndNoSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := &script{}
	s.api = func(req *http.Request) (*http.Response, error) {
		switch len(s.calls()) {
		case 1:
			return nil, errors.New("broken pipe at https://zvm.example.com/?t=" + req.Header.Get("Authorization"))
		case 2:
			return reply(req, 503, ``), nil
		}
		return reply(req, 200, `{}`), nil
	}
	cl := getCall()
	cl.query = map[string][]string{"q": {"MARKER-query"}}
	if err := s.client(t, WithLogger(logger)).read(t.Context(), cl, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	wantNoMarker(t, "the log", out.String())
	type line struct {
		Op, Method, Path string
		Attempt, Status  int
	}
	var got []line
	for text := range strings.Lines(out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	want := []line{
		{"Login", "POST", "/auth/realms/zerto/protocol/openid-connect/token", 1, 200},
		{"GetThing", "GET", "/v1/things", 1, 0},
		{"GetThing", "GET", "/v1/things", 2, 503},
		{"GetThing", "GET", "/v1/things", 3, 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log mismatch (-want +got):\n%s", diff)
	}
}
