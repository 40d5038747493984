package zvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

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

func TestRevokedTokenCostsNoPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			if revoked.Load() && req.Header.Get("Authorization") == "Bearer "+tokenNumber(1) {
				return reply(req, 401, ``), nil
			}
			return reply(req, 200, `{}`), nil
		}}
		c := s.client(t)
		start := time.Now()
		for range 2 {
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			revoked.Store(true)
		}
		if took := time.Since(start); took != 0 || len(s.logins()) != 2 {
			t.Errorf("took %s and %d logins", took, len(s.logins()))
		}
	})
}

func TestRefusedRenewalAfterA401(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(``, 401)}
	s.login = func(req *http.Request) (*http.Response, error) {
		if len(s.logins()) > 1 {
			return reply(req, 401, invalidGrant), nil
		}
		return reply(req, 200, tokenAnswer(1)), nil
	}
	err := s.client(t).write(t.Context(), postCall(), nil)
	e := asError(t, err)
	if !errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrOutcomeUnknown) || e.Op != opLogin || len(s.calls()) != 1 {
		t.Errorf("error is %v after %d calls", err, len(s.calls()))
	}
}

func TestContextThatEndsDuringTheRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{api: replies(`{"Message":"expired"}`, 401)}
		s.login = func(req *http.Request) (*http.Response, error) {
			if len(s.logins()) > 1 {
				cancel()
				_ = sleep(req.Context(), time.Second)
			}
			return reply(req, 200, tokenAnswer(int64(len(s.logins())))), nil
		}
		err := s.client(t).write(ctx, postCall(), nil)
		e := asError(t, err)
		if !errors.Is(err, context.Canceled) || e.Status != 401 || e.Message != "expired" || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("error is %v", err)
		}
		_ = sleep(t.Context(), acquireLimit) // the login goes on without its caller
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
