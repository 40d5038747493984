package zvm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A caller whose time ends while another attempt is waited for learns why one was needed, also where the attempts are
// those of a login that all callers share. The first answer makes it history.
func TestADeadlineCarriesTheLastTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up, slow atomic.Bool
		login := func(req *http.Request) (*http.Response, error) {
			if up.Load() {
				return reply(req, 200, tokenAnswer(1)), nil
			}
			httptrace.ContextClientTrace(req.Context()).GetConn("")
			return nil, errors.New("connection refused")
		}
		api := func(req *http.Request) (*http.Response, error) {
			if slow.Load() {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return reply(req, 200, "{}"), nil
		}
		s := &script{login: login, api: api}
		c := s.client(t, WithRetry(RetryPolicy{Max: 9, MinWait: 3 * time.Second}))
		read := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			return c.read(ctx, getCall(), &struct{}{})
		}
		if err := read(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer yet, last: connection refused") {
			t.Errorf("error is %v", err)
		}
		if got := c.Trouble(); got != "connection refused" {
			t.Errorf("Trouble is %q", got)
		}
		<-time.After(time.Minute) // on the bubble's clock: until the login has given up
		up.Store(true)
		if err := read(); err != nil {
			t.Error(err)
		}
		if got := c.Trouble(); got != "" {
			t.Errorf("Trouble after an answer is %q", got)
		}
		slow.Store(true)
		if err := read(); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "refused") {
			t.Errorf("error is %v", err)
		}
	})
}
