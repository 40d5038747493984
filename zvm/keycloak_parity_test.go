//go:build keycloak

package zvm_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// tokenAnswer is what a client can tell apart in an answer of the token
// endpoint.
type tokenAnswer struct {
	Status             int
	Error, Description string
	Keys               []string // of the JSON document
}

// The simulator's token endpoint answers as a real one. It keeps to
// the status 401 of older versions for a wrong password; the version that
// .ci/keycloak fetches answers 400.
func TestKeycloakAndSimulatorAnswerAlike(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u := k.newUser(t, "alike", "admin")
	real := k.appliance(t)
	simulated := zvmtest.Start(t, zvmtest.WithUser(u.name, u.secret, zvmtest.Admin),
		zvmtest.WithServiceClient(serviceClient, serviceSecret, zvmtest.Admin), zvmtest.WithSwitch(zvmtest.RefreshTokenSingleUse))
	password := url.Values{"grant_type": {"password"}, "client_id": {"zerto-client"}, "username": {u.name}, "password": {u.secret}, "scope": {"openid"}}
	service := url.Values{"grant_type": {"client_credentials"}, "client_id": {serviceClient}, "client_secret": {serviceSecret}, "scope": {"openid"}}
	with := func(form url.Values, name, value string) url.Values {
		form = maps.Clone(form)
		form.Set(name, value)
		return form
	}
	without := func(form url.Values, name string) url.Values {
		form = maps.Clone(form)
		form.Del(name)
		return form
	}
	refreshing := func(token string) url.Values {
		return url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {token}}
	}
	reused := func(t *testing.T, s *zvmtest.Server) url.Values {
		_, token := askForToken(t, s, password)
		askForToken(t, s, refreshing(token))
		return refreshing(token)
	}
	fixed := func(form url.Values) func(*testing.T, *zvmtest.Server) url.Values {
		return func(*testing.T, *zvmtest.Server) url.Values { return form }
	}
	for _, tc := range []struct { //nolint:paralleltest // logins of one user must not overlap
		name string
		form func(*testing.T, *zvmtest.Server) url.Values
	}{
		{"password", fixed(password)},
		{"password, without scope", fixed(without(password, "scope"))},
		{"wrong password", fixed(with(password, "password", "MARKER-wrong"))},
		{"unknown user", fixed(with(password, "username", "unknown"))},
		{"unknown client", fixed(with(password, "client_id", "unknown"))},
		{"service account", fixed(service)},
		{"wrong client secret", fixed(with(service, "client_secret", "MARKER-wrong"))},
		{"public client's service account", fixed(with(service, "client_id", "zerto-client"))},
		{"no grant", fixed(url.Values{"client_id": {"zerto-client"}})},
		{"unknown grant", fixed(with(password, "grant_type", "unknown"))},
		{"refresh token that is none", fixed(refreshing("MARKER-none"))},
		{"refresh token used twice", reused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expected, _ := askForToken(t, real, tc.form(t, real))
			got, _ := askForToken(t, simulated, tc.form(t, simulated))
			if got.Error == "invalid_grant" && got.Status == http.StatusUnauthorized {
				got.Status = http.StatusBadRequest
			}
			want(t, "the simulator's answer", expected, got)
		})
	}
}

func askForToken(t *testing.T, s *zvmtest.Server, form url.Values) (answer tokenAnswer, refreshToken string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.URL()+"/auth/realms/zerto/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	text := func(key string) string { s, _ := body[key].(string); return s }
	return tokenAnswer{
		Status: resp.StatusCode, Error: text("error"), Description: text("error_description"),
		Keys: slices.Sorted(maps.Keys(body)),
	}, text("refresh_token")
}
