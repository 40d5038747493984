package zvmtest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestOnRequestHearsOfEveryEnd(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []string
	var s *zvmtest.Server
	s = start(t, zvmtest.WithOnRequest(func(r zvmtest.Request) {
		mu.Lock()
		defer mu.Unlock()
		// Whoever listens may ask the server.
		heard = append(heard, fmt.Sprint(r.Method, " ", r.Path, " ", r.Status, " of ", len(s.Requests())))
		if strings.Contains(r.Body+r.Header.Get("Authorization"), "MARKER-") {
			t.Errorf("a secret in %+v", r)
		}
	}))
	c := login(t, s)
	s.On("POST", "/v1/flrs").CutAfter()
	c.get("/v1/localsite")
	if _, err := c.try(http.MethodPost, "/v1/flrs", "application/json", strings.NewReader("{}")); err == nil {
		t.Error("the connection was not cut")
	}
	s.Close()
	want := []string{
		"POST /auth/realms/zerto/protocol/openid-connect/token 200 of 1",
		"GET /v1/localsite 200 of 2",
		"POST /v1/flrs 0 of 3",
	}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestRequestLogIsBounded(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{0, 1, 5} {
		s := start(t, zvmtest.WithRequestLog(keep))
		c := login(t, s)
		for i := range 40 {
			c.get(fmt.Sprint("/v1/vpgs?name=", i))
			if n := len(s.Requests()); n > 2*keep+1 {
				t.Fatalf("%d requests are kept, want %d to %d", n, keep, 2*keep)
			}
		}
		s.Close()
		log := s.Requests()
		if len(log) < keep || keep > 0 && log[len(log)-1].Query != "name=39" {
			t.Errorf("%d to keep: the log ends with %+v", keep, log)
		}
	}
}

func TestSecretsSentToAWrongAddressAreRedacted(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(&recorder{})
	defer s.Close()
	c := newClient(t, s)
	form := passwordForm(s.Username(), s.Password(), "openid")
	c.do(http.MethodPost, "/zvm/auth/token", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	c.do(http.MethodPost, "/token", "", strings.NewReader(form.Encode()))
	for _, r := range s.Requests() {
		if strings.Contains(r.Body, "MARKER-") || !strings.Contains(r.Body, "password=%5Bredacted%5D") {
			t.Errorf("body of %s = %q", r.Path, r.Body)
		}
	}
}
