package zvm

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

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
	own := errors.New("the user gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(own) }()
	err := f.client(t).write(ctx, postCall(), nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, own) || !errors.Is(err, ErrOutcomeUnknown) {
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
