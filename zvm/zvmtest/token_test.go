package zvmtest_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func passwordForm(user, password, scope string) url.Values {
	form := url.Values{
		"grant_type": {"password"}, "client_id": {"zerto-client"}, "username": {user}, "password": {password},
	}
	if scope != "" {
		form.Set("scope", scope)
	}
	return form
}

type tokenAnswer struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int    `json:"expires_in"`
	RefreshExpiresIn int    `json:"refresh_expires_in"`
	RefreshToken     string `json:"refresh_token"`
	TokenType        string `json:"token_type"`
	Scope            string `json:"scope"`
	Error            string `json:"error"`
}

func (c *client) tokens(form url.Values) (int, tokenAnswer) {
	c.t.Helper()
	a := c.grant(form)
	var got tokenAnswer
	a.into(c.t, &got)
	return a.status, got
}

func TestTokenEndpointRefusesAsKeycloakDoes(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithServiceClient("agent", "MARKER-client", zvmtest.Admin))
	for _, tc := range []struct {
		name   string
		form   url.Values
		status int
		code   string
	}{
		{"wrong password", passwordForm(s.Username(), "MARKER-wrong", "openid"), 401, "invalid_grant"},
		{"unknown user", passwordForm("nobody", s.Password(), "openid"), 401, "invalid_grant"},
		{"unknown client", url.Values{"grant_type": {"password"}, "client_id": {"x"}}, 401, "invalid_client"},
		{"wrong client secret", url.Values{"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"MARKER-x"}}, 401, "unauthorized_client"},
		{"service account of the public client", url.Values{"grant_type": {"client_credentials"}, "client_id": {"zerto-client"}}, 401, "unauthorized_client"},
		{"unknown grant", url.Values{"grant_type": {"magic"}, "client_id": {"zerto-client"}}, 400, "unsupported_grant_type"},
		{"no grant", url.Values{"client_id": {"zerto-client"}}, 400, "invalid_request"},
		{"unknown refresh token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {"MARKER-x"}}, 400, "invalid_grant"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			status, got := newClient(t, s).tokens(tc.form)
			if status != tc.status || got.Error != tc.code {
				t.Errorf("answer = %d %q, want %d %q", status, got.Error, tc.status, tc.code)
			}
		})
	}
}

func TestTokenOfEachGrant(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithServiceClient("agent", "MARKER-client", zvmtest.Admin), zvmtest.WithTokenTTL(2*time.Second))
	c := newClient(t, s)
	_, user := c.tokens(passwordForm(s.Username(), s.Password(), "openid"))
	if user.ExpiresIn != 2 || user.RefreshExpiresIn != 1800 || user.RefreshToken == "" || user.TokenType != "Bearer" || !strings.Contains(user.Scope, "openid") {
		t.Errorf("password grant = %+v", user)
	}
	_, service := c.tokens(url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"MARKER-client"}, "scope": {"openid"},
	})
	if service.AccessToken == "" || service.RefreshToken != "" || service.RefreshExpiresIn != 0 {
		t.Errorf("client-credentials grant = %+v, want no refresh token", service)
	}
	for _, secret := range []string{user.AccessToken, user.RefreshToken, service.AccessToken} {
		if !strings.HasPrefix(secret, "MARKER-") {
			t.Errorf("secret %q has no marker", secret)
		}
	}
	if n := s.TokenRequests(); n != 2 {
		t.Errorf("token requests = %d, want 2", n)
	}
}

func TestServiceClientRefreshTokenSwitch(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithServiceClient("agent", "MARKER-client", zvmtest.Admin), zvmtest.WithSwitch(zvmtest.ServiceClientRefreshToken))
	_, got := newClient(t, s).tokens(url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"MARKER-client"},
	})
	if got.RefreshToken == "" {
		t.Error("no refresh token")
	}
}

func TestTokenExpiresByTheServersClock(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	s.Advance(59 * time.Second)
	if a := c.get("/v1/localsite"); a.status != http.StatusOK {
		t.Errorf("after 59 s: %d", a.status)
	}
	s.Advance(time.Second)
	a := c.get("/v1/localsite")
	if a.status != http.StatusUnauthorized || a.body != "" || !strings.Contains(a.header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("after 60 s: %d %q, want a 401 with an empty body", a.status, a.body)
	}
}

func TestUnauthorizedBodySwitches(t *testing.T) {
	t.Parallel()
	for sw, want := range map[zvmtest.Switch]string{
		zvmtest.UnauthorizedMessage: `{"Message":`,
		zvmtest.UnauthorizedHTML:    "<html>",
	} {
		t.Run(sw.String(), func(t *testing.T) {
			t.Parallel()
			a := newClient(t, start(t, zvmtest.WithSwitch(sw))).get("/v1/vms")
			if a.status != http.StatusUnauthorized || !strings.HasPrefix(a.body, want) {
				t.Errorf("answer = %d %q", a.status, a.body)
			}
		})
	}
}

func TestTokenWithoutOpenIDScope(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want int
	}{
		{"is refused", nil, http.StatusUnauthorized},
		{"is taken by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.OpenIDScopeOptional)}, http.StatusOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			c := newClient(t, s)
			status, got := c.tokens(passwordForm(s.Username(), s.Password(), ""))
			c.token = got.AccessToken
			if a := c.get("/v1/vms"); status != http.StatusOK || a.status != tc.want {
				t.Errorf("token %d, call %d, want 200 and %d", status, a.status, tc.want)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	refresh := func(token string) url.Values {
		return url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {token}}
	}
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		act  func(s *zvmtest.Server, c *client, token string)
		want int
	}{
		{"gives a new token", nil, func(*zvmtest.Server, *client, string) {}, 200},
		{"works twice", nil, func(_ *zvmtest.Server, c *client, token string) { c.grant(refresh(token)) }, 200},
		{
			"works once by switch",
			[]zvmtest.Option{zvmtest.WithSwitch(zvmtest.RefreshTokenSingleUse)},
			func(_ *zvmtest.Server, c *client, token string) { c.grant(refresh(token)) },
			400,
		},
		{"outlives revoked access tokens", nil, func(s *zvmtest.Server, _ *client, _ string) { s.RevokeTokens() }, 200},
		{"dies with the session", nil, func(s *zvmtest.Server, _ *client, _ string) { s.RevokeSessions() }, 400},
		{"dies of age", nil, func(s *zvmtest.Server, _ *client, _ string) { s.Advance(30 * time.Minute) }, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			c := newClient(t, s)
			_, first := c.tokens(passwordForm(s.Username(), s.Password(), "openid"))
			tc.act(s, c, first.RefreshToken)
			status, second := c.tokens(refresh(first.RefreshToken))
			if status != tc.want {
				t.Fatalf("status = %d, want %d", status, tc.want)
			}
			c.token = second.AccessToken
			if a := c.get("/v1/vms"); status == 200 && a.status != 200 {
				t.Errorf("the new token gets %d", a.status)
			}
		})
	}
}

func TestRevokedTokensAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	s.RevokeTokens()
	if a := c.get("/v1/vms"); a.status != http.StatusUnauthorized {
		t.Errorf("revoked token gets %d", a.status)
	}
	if a := login(t, s).get("/v1/vms"); a.status != http.StatusOK {
		t.Errorf("token issued afterwards gets %d", a.status)
	}
}

func TestOverlappingLoginsOfOneUser(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		opts     []zvmtest.Option
		refusals int
	}{
		{"are fine by default", nil, 0},
		{
			"are refused by switch",
			[]zvmtest.Option{zvmtest.WithSwitch(zvmtest.ConcurrentLoginRefused), zvmtest.WithLoginTime(time.Second)},
			1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			c := newClient(t, s)
			statuses := make(chan int, 2)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { statuses <- c.grant(passwordForm(s.Username(), s.Password(), "openid")).status })
			}
			wg.Wait()
			close(statuses)
			refusals := 0
			for status := range statuses {
				if status == http.StatusUnauthorized {
					refusals++
				}
			}
			if refusals != tc.refusals {
				t.Errorf("refused logins = %d, want %d", refusals, tc.refusals)
			}
			login(t, s)
		})
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	const secret = "MARKER-role"
	for _, tc := range []struct {
		name                string
		role                zvmtest.Role
		opts                []zvmtest.Option
		read, insert, mount int
	}{
		{"admin", zvmtest.Admin, nil, 200, 404, 404},
		{"viewer", zvmtest.Viewer, nil, 200, 403, 403},
		{"FLR operator", zvmtest.FLROperator, nil, 200, 403, 403},
		{"FLR operator by switch", zvmtest.FLROperator, []zvmtest.Option{zvmtest.WithSwitch(zvmtest.FLROperatorAllowed)}, 200, 403, 404},
		{"FLR operator, refused as 401", zvmtest.FLROperator, []zvmtest.Option{zvmtest.WithSwitch(zvmtest.FLRForbiddenAs401)}, 200, 403, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, append(tc.opts, zvmtest.WithUser("u", secret, tc.role))...)
			c := loginAs(t, s, "u", secret)
			got := []int{
				c.get("/v1/vpgs").status,
				c.post("/v1/vpgs/x/checkpoints", `{"checkpointName":"x"}`).status,
				c.post("/v1/flrs", `{"jflr":{"vpgIdentifier":"x"}}`).status,
			}
			for i, want := range []int{tc.read, tc.insert, tc.mount} {
				if got[i] != want {
					t.Errorf("read, insert, mount = %v, want %v", got, []int{tc.read, tc.insert, tc.mount})
					break
				}
			}
		})
	}
}

func TestRealmIsChecked(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithRealm("other"))
	c := newClient(t, s)
	if a := c.grant(passwordForm(s.Username(), s.Password(), "openid")); a.status != http.StatusNotFound {
		t.Errorf("realm zerto = %d, want 404", a.status)
	}
	a := c.get("/auth/realms/other/.well-known/openid-configuration")
	if !strings.Contains(a.body, s.URL()+"/auth/realms/other/protocol/openid-connect/token") {
		t.Errorf("discovery = %s", a.body)
	}
	if a := c.post("/v1/session/add", "{}"); a.status != http.StatusNotFound {
		t.Errorf("legacy session = %d, want the appliance's 404", a.status)
	}
}
