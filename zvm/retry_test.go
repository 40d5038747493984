package zvm

import (
	"context"
	"errors"
	"net/http"
	"strings"
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
