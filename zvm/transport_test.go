package zvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadsAreRepeatedAfterPassingFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status   int
		body     string
		attempts int
	}{
		"429":                {429, ``, 2},
		"502":                {502, `<html>Bad Gateway</html>`, 2},
		"503":                {503, ``, 2},
		"504":                {504, ``, 2},
		"500 with a reason":  {500, `{"Message":"no"}`, 1},
		"500 without reason": {500, ``, 1},
		"501":                {501, ``, 1},
		"400":                {400, ``, 1},
		"403":                {403, ``, 1},
		"404":                {404, ``, 1},
		"409":                {409, ``, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := []int{tc.status, 200}
			s := &script{}
			s.api = func(req *http.Request) (*http.Response, error) {
				status := answers[min(len(s.calls()), 2)-1]
				return reply(req, status, map[bool]string{true: `{}`, false: tc.body}[status == 200]), nil
			}
			err := s.client(t).read(t.Context(), getCall(), &struct{}{})
			if got := len(s.calls()); got != tc.attempts || (err == nil) != (tc.attempts == 2) {
				t.Errorf("%d attempts, %v", got, err)
			}
			if len(s.logins()) != 1 {
				t.Errorf("%d logins, want 1", len(s.logins()))
			}
		})
	}
}

func TestExhaustedRetriesKeepTheAnswer(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{"Message":"the service is starting"}`, 503)}
	err := s.client(t).read(t.Context(), getCall(), &struct{}{})
	e := asError(t, err)
	want := &Error{
		Op: "GetThing", Method: "GET", Path: "/v1/things", Status: 503, Message: "the service is starting", Attempts: 4,
		ContentType: "application/json", Body: []byte(`{"Message":"the service is starting"}`),
	}
	got := *e
	if got.Elapsed <= 0 {
		t.Error("no elapsed time")
	}
	got.Elapsed = 0
	if diff := cmp.Diff(want, &got, cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && strings.ToLower(f.Name()) == f.Name()
	}, cmp.Ignore())); diff != "" {
		t.Errorf("error mismatch (-want +got):\n%s", diff)
	}
	if !errors.Is(err, ErrUnavailable) || !e.Temporary() || !strings.Contains(err.Error(), "(4 attempts in ") {
		t.Errorf("error is %v", err)
	}
}

// onceBroken breaks the connection of the first call as breaker does, and answers the others.
func onceBroken(t *testing.T, breaker func(http.ResponseWriter)) (*fakeServer, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	f := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			breaker(w)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	return f, &calls
}

var breakers = map[string]func(http.ResponseWriter){
	"cut before the answer": func(w http.ResponseWriter) { cut(w, "") },
	"cut within the header": func(w http.ResponseWriter) { cut(w, "HTTP/1.1 200 OK\r\nContent-") },
	"cut within the body":   func(w http.ResponseWriter) { cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":1") },
	"cut within the chunks": func(w http.ResponseWriter) {
		cut(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
	},
	"not HTTP": func(w http.ResponseWriter) { cut(w, "garbage\r\n\r\n") },
}

func cut(w http.ResponseWriter, sent string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, sent)
	_ = conn.Close()
}

func TestReadsSurviveBrokenConnections(t *testing.T) {
	t.Parallel()
	for name, breaker := range breakers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, calls := onceBroken(t, breaker)
			if err := f.client(t).read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Error(err)
			}
			if calls.Load() != 2 {
				t.Errorf("%d calls, want 2", calls.Load())
			}
		})
	}
}

func TestBrokenConnectionsLeaveWritesUnknown(t *testing.T) {
	t.Parallel()
	for name, breaker := range breakers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, calls := onceBroken(t, breaker)
			c := f.client(t)
			err := c.write(t.Context(), postCall(), &struct{}{})
			e := asError(t, err)
			if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) || e.Temporary() {
				t.Errorf("error is %v", err)
			}
			if calls.Load() != 1 {
				t.Errorf("%d calls, want 1", calls.Load())
			}
		})
	}
}

func TestBrokenConnectionsOfSafeCallsAreOrdinary(t *testing.T) {
	t.Parallel()
	f, calls := onceBroken(t, breakers["cut before the answer"])
	cl := postCall()
	cl.safe = true
	err := f.client(t).write(t.Context(), cl, &struct{}{})
	if errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrUnavailable) || calls.Load() != 1 {
		t.Errorf("error is %v after %d calls", err, calls.Load())
	}
}

func TestAnswersThatLeaveWritesUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  int
		body    string
		unknown bool
	}{
		"502":                     {502, `<html>Bad Gateway</html>`, true},
		"503":                     {503, ``, true},
		"503 with a reason":       {503, `{"Message":"starting"}`, true},
		"504":                     {504, ``, true},
		"507":                     {507, ``, true},
		"500 of a proxy":          {500, `<html>Internal Server Error</html>`, true},
		"500 empty":               {500, ``, true},
		"500 with a reason":       {500, `{"Message":"the VPG is busy"}`, false},
		"501":                     {501, ``, false},
		"400":                     {400, ``, false},
		"401":                     {401, ``, false},
		"403":                     {403, ``, false},
		"404":                     {404, `<html>gone</html>`, false},
		"409":                     {409, `{"Message":"exists"}`, false},
		"413":                     {413, ``, false},
		"429":                     {429, ``, false},
		"moved before being done": {307, ``, false},
		"see other":               {303, ``, true},
		"200 empty":               {200, ``, true},
		"200 blank":               {200, " \r\n", true},
		"200 login page":          {200, `<!DOCTYPE html><html>Sign in</html>`, true},
		"200 XML":                 {200, `<string>id</string>`, true},
		"200 cut":                 {200, `{"Id":"x`, true},
		"200 with a tail":         {200, `{} {}`, true},
		"200 of another type":     {200, `["x"]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			s.api = func(req *http.Request) (*http.Response, error) {
				return reply(req, tc.status, tc.body, "Location", "/elsewhere"), nil
			}
			err := s.client(t).write(t.Context(), postCall(), &struct{ ID string }{})
			if err == nil {
				t.Fatal("no error")
			}
			if got := errors.Is(err, ErrOutcomeUnknown); got != tc.unknown {
				t.Errorf("outcome unknown is %v, want %v: %v", got, tc.unknown, err)
			}
			want := 1
			if tc.status == 401 {
				want = 2
			}
			if got := len(s.calls()); got != want {
				t.Errorf("sent %d times, want %d", got, want)
			}
		})
	}
}

// dialing reports failures as net/http does when it looked for a connection and got none.
type dialing struct{ next http.RoundTripper }

func (d dialing) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn(req.URL.Host)
	resp, err := d.next.RoundTrip(req)
	if err == nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	return resp, err
}

func TestRefusedConnectionOfAWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusedConn := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		var attempts int
		f := &script{}
		f.api = func(req *http.Request) (*http.Response, error) {
			if attempts++; attempts < 3 {
				return nil, refusedConn
			}
			return reply(req, 200, `{}`), nil
		}
		c := f.client(t, WithTransport(dialing{f}))
		if err := c.write(t.Context(), postCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		calls := f.calls()
		if len(calls) != 3 || calls[0] != calls[2] {
			t.Errorf("calls are %v", calls)
		}
	})
}

func TestWriteToAClosedPortIsKnownNotToHaveHappened(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	c := f.client(t)
	if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	closeIdle(c)
	err := c.write(t.Context(), postCall(), &struct{}{})
	e := asError(t, err)
	if errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrUnavailable) || e.Attempts != 4 {
		t.Errorf("error is %v, %d attempts", err, e.Attempts)
	}
}

func TestUnprovenFailureOfAWriteIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := &script{api: func(*http.Request) (*http.Response, error) { return nil, errors.New("something broke") }}
	err := s.client(t).write(t.Context(), postCall(), nil)
	if !errors.Is(err, ErrOutcomeUnknown) || len(s.calls()) != 1 {
		t.Errorf("error is %v after %d calls", err, len(s.calls()))
	}
}

func TestCancelledWrite(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	f := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	err := f.client(t).write(ctx, postCall(), nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("error is %v", err)
	}
	if asError(t, err).Temporary() {
		t.Error("a cancelled call looks temporary")
	}
}

func TestWriteCancelledBeforeItIsSentIsNotUnknown(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.client(t).write(ctx, postCall(), nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) || len(s.calls()) != 0 {
		t.Errorf("error is %v", err)
	}
}

func TestReplayAfter401(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				s.api = func(req *http.Request) (*http.Response, error) {
					if req.Header.Get("Authorization") == "Bearer "+tokenNumber(1) {
						return reply(req, 401, ``), nil
					}
					return reply(req, 200, `{}`), nil
				}
				cl := postCall()
				cl.method = method
				c := s.client(t)
				var err error
				if method == http.MethodGet {
					cl.body = nil
					err = c.read(t.Context(), cl, &struct{}{})
				} else {
					err = c.write(t.Context(), cl, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				calls := s.calls()
				if len(calls) != 2 || len(s.logins()) != 2 {
					t.Fatalf("%d calls, %d logins", len(calls), len(s.logins()))
				}
				first, second := calls[0], calls[1]
				if first.Auth == second.Auth {
					t.Error("the replay carried the old token")
				}
				first.Auth = second.Auth
				if diff := cmp.Diff(first, second); diff != "" {
					t.Errorf("replay mismatch (-first +second):\n%s", diff)
				}
				if method != http.MethodGet && second.Body != `{"name":"a <b> & c"}` {
					t.Errorf("body is %q", second.Body)
				}
			})
		})
	}
}

func TestSecond401IsTheCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.api = func(req *http.Request) (*http.Response, error) {
			_ = sleep(req.Context(), time.Second) // so that all callers meet the refusal with the first token
			return reply(req, 401, `{"Message":"no"}`, "Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat)), nil
		}
		c := s.client(t)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				err := c.write(t.Context(), postCall(), nil)
				if !errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("error is %v", err)
				}
				if !strings.Contains(err.Error(), "clock differs from this one by 10m") {
					t.Errorf("error %q does not mention the clocks", err)
				}
				if e := asError(t, err); e.Attempts != 2 {
					t.Errorf("%d attempts, want 2", e.Attempts)
				}
			})
		}
		wg.Wait()
		if len(s.calls()) != 200 || len(s.logins()) != 2 {
			t.Errorf("%d calls and %d logins, want 200 and 2", len(s.calls()), len(s.logins()))
		}
	})
}

func TestTokenThatIsNotYetValidGetsASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &script{}
		s.api = func(req *http.Request) (*http.Response, error) {
			if time.Since(start) < time.Second {
				return reply(req, 401, ``), nil
			}
			return reply(req, 200, `{}`), nil
		}
		if err := s.client(t).read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Error(err)
		}
	})
}

func Test403IsNoReasonToLogInAgain(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{"Message":"no permission"}`, 403)}
	err := s.client(t).read(t.Context(), getCall(), &struct{}{})
	if !errors.Is(err, ErrForbidden) || len(s.logins()) != 1 || len(s.calls()) != 1 {
		t.Errorf("error is %v, %d logins, %d calls", err, len(s.logins()), len(s.calls()))
	}
}

func TestStaticTokenIsNotReplayed(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(``, 401)}
	c, err := New("https://zvm.example.com", Tokens(&staticSource{"MARKER-static"}), WithTransport(s))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.read(t.Context(), getCall(), &struct{}{}); !errors.Is(err, ErrUnauthorized) || len(s.calls()) != 1 {
		t.Errorf("error is %v after %d calls", err, len(s.calls()))
	}
}

// A thousand callers over a real socket: one login, and when the server drops its tokens one more, with one replay each at most.
func TestThousandCallers(t *testing.T) {
	t.Parallel()
	var valid atomic.Pointer[string]
	first := "Bearer " + tokenNumber(1)
	valid.Store(&first)
	var inFlight sync.Map
	f := unstartedFakeServer(func(w http.ResponseWriter, r *http.Request) {
		n, _ := inFlight.LoadOrStore(r.URL.Query().Get("caller"), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if r.Header.Get("Authorization") != *valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{}`)
	})
	f.Start() // without TLS: a thousand handshakes would test the processor
	t.Cleanup(f.Close)
	c := newTestClient(t, f.URL, quickRetry)
	run := func() {
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				<-gate
				cl := getCall()
				cl.query = map[string][]string{"caller": {fmt.Sprint(i)}}
				if err := c.read(t.Context(), cl, &struct{}{}); err != nil {
					t.Error(err)
				}
			})
		}
		close(gate)
		wg.Wait()
	}
	run()
	second := "Bearer " + tokenNumber(2)
	valid.Store(&second)
	run()
	if n := f.logins.Load(); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
	inFlight.Range(func(caller, n any) bool {
		if got := n.(*atomic.Int64).Load(); got > 3 {
			t.Errorf("caller %s sent %d requests, want at most 3", caller, got)
		}
		return true
	})
}

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

func TestContextEndsBackoffAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: replies(`{"Message":"starting"}`, 503)}
		c := s.client(t, WithRetry(RetryPolicy{Max: 9, MinWait: time.Minute, MaxWait: time.Minute}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		start := time.Now()
		err := c.read(ctx, getCall(), &struct{}{})
		e := asError(t, err)
		if !errors.Is(err, context.Canceled) || time.Since(start) != 10*time.Second {
			t.Errorf("error is %v after %s", err, time.Since(start))
		}
		if e.Status != 503 || e.Message != "starting" || e.Attempts != 1 || e.Temporary() {
			t.Errorf("the last answer is lost: %+v", e)
		}
	})
}

func TestRetryAfterBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			return reply(req, 503, ``, "Retry-After", "120"), nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := s.client(t, WithRetry(RetryPolicy{Max: 5})).read(ctx, getCall(), &struct{}{})
		e := asError(t, err)
		if time.Since(start) != 0 || len(s.calls()) != 1 {
			t.Errorf("%d calls in %s", len(s.calls()), time.Since(start))
		}
		if e.RetryAfter != 2*time.Minute || !strings.Contains(err.Error(), "wait 2m0s") || !errors.Is(err, ErrUnavailable) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestRetryAfterIsHonouredWithinBounds(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"3": 3 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "-5": 0, "99999999999": 10 * time.Second, "soon": 0, "": 0,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				s.api = func(req *http.Request) (*http.Response, error) {
					if len(s.calls()) == 1 {
						return reply(req, 429, ``, "Retry-After", header), nil
					}
					return reply(req, 200, `{}`), nil
				}
				c := s.client(t, WithRetry(RetryPolicy{Max: 1, MinWait: time.Millisecond, MaxWait: 10 * time.Second}))
				start := time.Now()
				if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < want || took > want+2*time.Millisecond {
					t.Errorf("waited %s, want %s", took, want)
				}
			})
		})
	}
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
		{"GetThing", "GET", "/v1/things", 1, 0}, {"GetThing", "GET", "/v1/things", 2, 503}, {"GetThing", "GET", "/v1/things", 3, 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log mismatch (-want +got):\n%s", diff)
	}
}
