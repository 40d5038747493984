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
	service := url.Values{"grant_type": {"client_credentials"}, "client_id": {serviceClient}, "client_secret": {serviceSecret}, "scope": {"openid"}}
	refreshing := func(token string) url.Values {
		return url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {token}}
	}
	for name, form := range map[string]func(t *testing.T, s *zvmtest.Server, password url.Values) url.Values{
		"password":               func(_ *testing.T, _ *zvmtest.Server, password url.Values) url.Values { return password },
		"password without scope": changed("scope", ""),
		"wrong password":         changed("password", "MARKER-wrong"),
		"unknown user":           changed("username", "unknown"),
		"unknown client":         changed("client_id", "unknown"),
		"no grant":               changed("grant_type", ""),
		"unknown grant":          changed("grant_type", "unknown"),
		"service account":        func(*testing.T, *zvmtest.Server, url.Values) url.Values { return service },
		"wrong client secret": func(t *testing.T, s *zvmtest.Server, _ url.Values) url.Values {
			return changed("client_secret", "MARKER-wrong")(t, s, service)
		},
		"service account of a public client": func(t *testing.T, s *zvmtest.Server, _ url.Values) url.Values {
			return changed("client_id", "zerto-client")(t, s, service)
		},
		"refresh token that is none": func(*testing.T, *zvmtest.Server, url.Values) url.Values { return refreshing("MARKER-none") },
		"refresh token used twice": func(t *testing.T, s *zvmtest.Server, password url.Values) url.Values {
			_, token := askForToken(t, s, password)
			askForToken(t, s, refreshing(token))
			return refreshing(token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, real := k.newUser(t, "alike", "admin"), k.appliance(t) // a user for each case: logins of one must not overlap
			simulated := zvmtest.Start(t, zvmtest.WithUser(u.name, u.secret, zvmtest.Admin),
				zvmtest.WithServiceClient(serviceClient, serviceSecret, zvmtest.Admin), zvmtest.WithSwitch(zvmtest.RefreshTokenSingleUse))
			password := url.Values{"grant_type": {"password"}, "client_id": {"zerto-client"}, "username": {u.name}, "password": {u.secret}, "scope": {"openid"}}
			expected, _ := askForToken(t, real, form(t, real, password))
			got, _ := askForToken(t, simulated, form(t, simulated, password))
			if got.Error == "invalid_grant" && got.Status == http.StatusUnauthorized {
				got.Status = http.StatusBadRequest
			}
			want(t, "the simulator's answer", expected, got)
		})
	}
}

// changed returns the form with one field replaced, or left out if value is
// empty.
func changed(name, value string) func(*testing.T, *zvmtest.Server, url.Values) url.Values {
	return func(_ *testing.T, _ *zvmtest.Server, form url.Values) url.Values {
		form = maps.Clone(form)
		form.Del(name)
		if value != "" {
			form.Set(name, value)
		}
		return form
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
