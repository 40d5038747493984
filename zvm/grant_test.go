package zvm

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const invalidGrant = `{"error":"invalid_grant","error_description":"Invalid user credentials"}`

// loginAs answers by grant type and counts nothing: the script does.
func loginAs(byGrant map[string]responder) responder {
	return func(req *http.Request) (*http.Response, error) {
		if err := req.ParseForm(); err != nil {
			return nil, err
		}
		return byGrant[req.PostForm.Get("grant_type")](req)
	}
}

func forms(t *testing.T, logins []recorded) []url.Values {
	t.Helper()
	var all []url.Values
	for _, r := range logins {
		form, err := url.ParseQuery(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, form)
	}
	return all
}

func TestLoginFormCarriesEveryCharacter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ user, password string }{
		{`DOMAIN\svc`, "MARKER-p%w&d+=é \"'\\`"},
		{"svc@example.test", "MARKER-#a!?:+%zz"},
		{"svc", " MARKER blanks "},
	} {
		s := &script{api: replies(`{}`, 200)}
		for _, cred := range []Credentials{Password(tc.user, tc.password), ClientCredentials(tc.user, tc.password)} {
			c, err := New("https://zvm.example.com", cred, WithTransport(s))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
		}
		want := []url.Values{
			{"grant_type": {"password"}, "client_id": {"zerto-client"}, "username": {tc.user}, "password": {tc.password}, "scope": {"openid"}},
			{"grant_type": {"client_credentials"}, "client_id": {tc.user}, "client_secret": {tc.password}, "scope": {"openid"}},
		}
		if diff := cmp.Diff(want, forms(t, s.logins())); diff != "" {
			t.Errorf("forms mismatch (-want +got):\n%s", diff)
		}
	}
}

func TestLoginRefusalsAreFinalAndExplained(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status       int
		body         string
		unauthorized bool
		mentions     []string
	}{
		"wrong password":       {401, invalidGrant, true, []string{"invalid_grant", "Invalid user credentials", "lock", "another login of the same user is under way", "https://zvm.example.com/auth/realms/zerto/"}},
		"or a busy user":       {400, invalidGrant, true, []string{"another login of the same user is under way"}},
		"account not set up":   {400, `{"error":"invalid_grant","error_description":"Account is not fully set up"}`, true, []string{"not fully set up", "browser"}},
		"unknown client":       {401, `{"error":"invalid_client","error_description":"Invalid client or Invalid client credentials"}`, true, []string{"invalid_client"}},
		"client may not":       {400, `{"error":"unauthorized_client","error_description":"Client not enabled"}`, true, []string{"unauthorized_client"}},
		"400 without JSON":     {400, `<html><title>x</title><body>Bad <b>Request</b></body></html>`, true, []string{"Bad Request"}},
		"no such endpoint":     {404, `<html>not found</html>`, false, []string{"Windows", "the realm", "https://zvm.example.com/auth/realms/zerto/"}},
		"server error":         {500, ``, false, []string{"500"}},
		"not ready":            {503, ``, false, []string{"503"}},
		"licence":              {401, `{"Message":"Valid License is not provided "}`, true, []string{"Valid License is not provided"}},
		"200 with error":       {200, `{"error":"invalid_grant","error_description":"no"}`, true, []string{"no"}},
		"200 login page":       {200, `<html>Sign in</html>`, false, []string{"page for humans"}},
		"200 empty":            {200, ``, false, []string{"empty"}},
		"200 without token":    {200, `{"expires_in":60}`, false, []string{"access_token"}},
		"200 with empty token": {200, `{"access_token":"","expires_in":60}`, false, []string{"access_token"}},
		"200 token of lines":   {200, `{"access_token":"MARKER-a\r\nX: y"}`, false, []string{"access_token"}},
		"redirect":             {307, ``, false, []string{"307", "redirect"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{login: func(req *http.Request) (*http.Response, error) {
				return reply(req, tc.status, tc.body, "Location", "https://evil.example.com/?code=MARKER-code"), nil
			}}
			c := s.client(t)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					err := c.read(t.Context(), getCall(), &struct{}{})
					e := asError(t, err)
					if got := errors.Is(err, ErrUnauthorized); got != tc.unauthorized {
						t.Errorf("unauthorized is %v: %v", got, err)
					}
					if got := errors.Is(err, ErrNoLogin); got != (tc.status == http.StatusNotFound) {
						t.Errorf("ErrNoLogin is %v", got)
					}
					if e.NotFound() {
						t.Error("a failed login looks like a missing object")
					}
					if got, want := e.Temporary(), tc.status == 503; got != want {
						t.Errorf("temporary is %v", got)
					}
					for _, text := range tc.mentions {
						if !strings.Contains(err.Error(), text) {
							t.Errorf("error %q does not mention %q", err, text)
						}
					}
					wantNoMarker(t, "the error", err.Error()+string(e.Body))
				})
			}
			wg.Wait()
			if n := len(s.logins()); tc.unauthorized && n != 1 {
				t.Errorf("%d logins, want 1", n)
			}
			if n := len(s.calls()); n != 0 {
				t.Errorf("%d calls without a token", n)
			}
		})
	}
}

func TestEchoedSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	echo := "seen: " + testPassword + " " + url.QueryEscape(testPassword) + " " + base64.StdEncoding.EncodeToString([]byte(testPassword))
	s := &script{login: func(req *http.Request) (*http.Response, error) {
		return reply(req, 401, `{"error":"invalid_grant","error_description":"`+echo+`"}`), nil
	}}
	e := asError(t, s.client(t).read(t.Context(), getCall(), &struct{}{}))
	all := e.Error() + e.Message + string(e.Body)
	wantNoMarker(t, "the error", all)
	if strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(testPassword))) {
		t.Error("the error shows a secret in base64")
	}
}

func TestTokenLifeIsReadWithTolerance(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]time.Duration{
		`{"access_token":"MARKER-t","expires_in":60}`:                                       time.Minute,
		`{"access_token":"MARKER-t","expires_in":"60"}`:                                     time.Minute,
		`{"access_token":"MARKER-t","expires_in":60.0}`:                                     time.Minute,
		`{"access_token":"MARKER-t","expires_in":1.5}`:                                      1500 * time.Millisecond,
		`{"access_token":"MARKER-t","expires_in":null}`:                                     unknownLife,
		`{"access_token":"MARKER-t"}`:                                                       unknownLife,
		`{"access_token":"MARKER-t","expires_in":0}`:                                        unknownLife,
		`{"access_token":"MARKER-t","expires_in":-1}`:                                       unknownLife,
		`{"access_token":"MARKER-t","expires_in":"soon"}`:                                   unknownLife,
		`{"access_token":"MARKER-t","expires_in":"NaN"}`:                                    unknownLife,
		`{"access_token":"MARKER-t","expires_in":{}}`:                                       unknownLife,
		`{"access_token":"MARKER-t","expires_in":1e9}`:                                      longestLife,
		`{"access_token":"MARKER-t","expires_in":1e300}`:                                    longestLife,
		"\xef\xbb\xbf" + `{"access_token":"MARKER-t","expires_in":5,"token_type":"bearer"}`: 5 * time.Second,
	} {
		got, err := parseIssued([]byte(body))
		if err != nil || got.life != want || got.value.Reveal() != "MARKER-t" {
			t.Errorf("%s: life %s, %v, want %s", body, got.life, err, want)
		}
	}
}

func TestWallClockOfTokenIsNotJudged(t *testing.T) {
	t.Parallel()
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iat":4102444800,"nbf":4102444800,"exp":1}`))
	s := &script{
		login: func(req *http.Request) (*http.Response, error) {
			return reply(req, 200, `{"access_token":"MARKER.`+claims+`.x","expires_in":300}`), nil
		},
		api: replies(`{}`, 200),
	}
	c := s.client(t)
	for range 3 {
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.logins()); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// refreshing issues tokens of 60 s with refresh tokens; a refresh is answered by onRefresh.
func refreshing(onRefresh, onPassword responder) *script {
	if onPassword == nil {
		onPassword = replies(`{"access_token":"MARKER-full","expires_in":60,"refresh_token":"MARKER-refresh","refresh_expires_in":0}`, 200)
	}
	return &script{
		login: loginAs(map[string]responder{"password": onPassword, "refresh_token": onRefresh}),
		api:   replies(`{}`, 200),
	}
}

func grantTypes(t *testing.T, s *script) []string {
	t.Helper()
	var types []string
	for _, f := range forms(t, s.logins()) {
		types = append(types, f.Get("grant_type"))
	}
	return types
}

func TestRefreshTokenIsUsedWhileItWorks(t *testing.T) {
	t.Parallel()
	renewed := `{"access_token":"MARKER-new","expires_in":60,"refresh_token":"MARKER-refresh-2"}`
	for name, tc := range map[string]struct {
		refresh responder
		want    []string
	}{
		"works":                  {replies(renewed, 200), []string{"password", "refresh_token", "refresh_token"}},
		"works without rotation": {replies(`{"access_token":"MARKER-new","expires_in":60}`, 200), []string{"password", "refresh_token", "refresh_token"}},
		"session ended":          {replies(`{"error":"invalid_grant","error_description":"Session not active"}`, 400), []string{"password", "refresh_token", "password", "refresh_token", "password"}},
		"refused by a page":      {replies(`<html>Bad Request</html>`, 400), []string{"password", "refresh_token", "password", "refresh_token", "password"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := refreshing(tc.refresh, nil)
				c := s.client(t)
				for range 3 {
					if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
						t.Fatal(err)
					}
					_ = sleep(t.Context(), time.Minute)
				}
				if diff := cmp.Diff(tc.want, grantTypes(t, s)); diff != "" {
					t.Errorf("grants mismatch (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRefreshTokenRotates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refreshing(replies(`{"access_token":"MARKER-new","expires_in":60,"refresh_token":"MARKER-refresh-2"}`, 200), nil)
		c := s.client(t)
		for range 3 {
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			_ = sleep(t.Context(), time.Minute)
		}
		var used []string
		for _, f := range forms(t, s.logins())[1:] {
			used = append(used, f.Get("refresh_token"))
		}
		if diff := cmp.Diff([]string{"MARKER-refresh", "MARKER-refresh-2"}, used); diff != "" {
			t.Errorf("refresh tokens mismatch (-want +got):\n%s", diff)
		}
	})
}

func TestRefusedRefreshAndRefusedPasswordGiveBothReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := refreshing(replies(`{"error":"invalid_grant","error_description":"Session not active"}`, 400),
			func(req *http.Request) (*http.Response, error) {
				if first {
					first = false
					return reply(req, 200, `{"access_token":"MARKER-full","expires_in":60,"refresh_token":"MARKER-refresh"}`), nil
				}
				return reply(req, 400, `{"error":"invalid_grant","error_description":"Password expired"}`), nil
			})
		c := s.client(t)
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		_ = sleep(t.Context(), time.Minute)
		err := c.read(t.Context(), getCall(), &struct{}{})
		for _, text := range []string{"Session not active", "Password expired"} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("error %v does not mention %q", err, text)
			}
		}
		if diff := cmp.Diff([]string{"password", "refresh_token", "password"}, grantTypes(t, s)); diff != "" {
			t.Errorf("grants mismatch (-want +got):\n%s", diff)
		}
	})
}

func TestUnreachableTokenEndpointKeepsTheRefreshToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refreshing(replies(`{"access_token":"MARKER-new","expires_in":60,"refresh_token":"MARKER-r"}`, 503, 200), nil)
		c := s.client(t)
		for i := range 3 {
			err := c.read(t.Context(), getCall(), &struct{}{})
			if (err != nil) != (i == 1) {
				t.Errorf("call %d: %v", i, err)
			}
			if i != 1 {
				_ = sleep(t.Context(), time.Minute)
			}
		}
		if diff := cmp.Diff([]string{"password", "refresh_token", "refresh_token"}, grantTypes(t, s)); diff != "" {
			t.Errorf("grants mismatch (-want +got):\n%s", diff)
		}
	})
}

func TestTokenFromRefreshThatIsRefusedLeadsToTheFullGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refreshing(replies(`{"access_token":"MARKER-bad","expires_in":60,"refresh_token":"MARKER-r"}`, 200), nil)
		s.api = func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") == "Bearer MARKER-bad" {
				return reply(req, 401, ``), nil
			}
			return reply(req, 200, `{}`), nil
		}
		c := s.client(t)
		for range 2 {
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			_ = sleep(t.Context(), time.Minute)
		}
		if diff := cmp.Diff([]string{"password", "refresh_token", "password"}, grantTypes(t, s)); diff != "" {
			t.Errorf("grants mismatch (-want +got):\n%s", diff)
		}
	})
}

func TestRefusedConcurrentLoginIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	busy := `{"error":"invalid_grant","error_description":"Account temporarily disabled"}`
	ok := func(req *http.Request) (*http.Response, error) { return reply(req, 200, tokenAnswer(1)), nil }
	for name, tc := range map[string]struct {
		second responder
		fails  bool
	}{
		"then accepted": {ok, false},
		"then refused":  {replies(busy, 401), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := &script{api: replies(`{}`, 200)}
				s.login = func(req *http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return reply(req, 401, busy), nil
					}
					return tc.second(req)
				}
				start := time.Now()
				err := s.client(t).read(t.Context(), getCall(), &struct{}{})
				if (err != nil) != tc.fails {
					t.Errorf("got %v", err)
				}
				if len(s.logins()) != 2 || time.Since(start) < busyPause {
					t.Errorf("%d logins in %s", len(s.logins()), time.Since(start))
				}
			})
		})
	}
}

func TestPasswordThatWorkedBeforeIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: replies(`{}`, 200)}
		s.login = func(req *http.Request) (*http.Response, error) {
			if len(s.logins()) == 2 {
				return reply(req, 401, invalidGrant), nil // as a server does that refuses overlapping logins
			}
			return reply(req, 200, tokenAnswer(1)), nil
		}
		c := s.client(t)
		for range 2 {
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Error(err)
			}
			_ = sleep(t.Context(), time.Minute)
		}
		if n := len(s.logins()); n != 3 {
			t.Errorf("%d logins, want 3", n)
		}
	})
}
