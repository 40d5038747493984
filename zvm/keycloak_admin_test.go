//go:build keycloak

package zvm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// keycloakUser is a user of the realm, made for one test: lock-outs and
// events count by user.
type keycloakUser struct {
	k            *keycloakServer
	id           string
	name, secret string
}

// newUser makes a user with the given realm roles, for whom logging in works.
// The name is numbered, so that tests can run again.
func (k *keycloakServer) newUser(t *testing.T, name string, roles ...string) keycloakUser {
	t.Helper()
	return k.newUserLike(t, name, nil, roles...)
}

func (k *keycloakServer) newUserLike(t *testing.T, name string, more map[string]any, roles ...string) keycloakUser {
	t.Helper()
	u := keycloakUser{k: k, name: fmt.Sprintf("%s-%d", name, k.users.Add(1)), secret: "MARKER-password-of-" + name}
	representation := map[string]any{
		"username": u.name, "enabled": true, "emailVerified": true,
		"firstName": "A", "lastName": "User", "email": u.name + "@example.test", // without them an account is "not fully set up"
		"credentials": []any{map[string]any{"type": "password", "value": u.secret}},
	}
	for key, value := range more {
		representation[key] = value
	}
	k.admin(t, http.MethodPost, "/users", representation, nil)
	u.id = k.userID(t, u.name)
	for _, role := range roles {
		var found map[string]any
		k.admin(t, http.MethodGet, "/roles/"+role, nil, &found)
		k.admin(t, http.MethodPost, "/users/"+u.id+"/role-mappings/realm", []any{found}, nil)
	}
	return u
}

func (k *keycloakServer) userID(t *testing.T, name string) string {
	t.Helper()
	var found []struct{ ID string }
	k.admin(t, http.MethodGet, "/users?exact=true&username="+url.QueryEscape(name), nil, &found)
	if len(found) != 1 {
		t.Fatalf("%d users are named %s", len(found), name)
	}
	return found[0].ID
}

// logOut ends every session of the user.
func (u keycloakUser) logOut(t *testing.T) {
	t.Helper()
	u.k.admin(t, http.MethodPost, "/users/"+u.id+"/logout", nil, nil)
}

// events counts the user's events by type, as Keycloak stored them. An error
// event is followed by its reason: "LOGIN_ERROR invalid_user_credentials".
func (u keycloakUser) events(t *testing.T) map[string]int {
	t.Helper()
	var stored []struct{ Type, Error string }
	u.k.admin(t, http.MethodGet, "/events?max=1000&user="+u.id, nil, &stored)
	count := map[string]int{}
	for _, e := range stored {
		count[strings.TrimSpace(e.Type+" "+e.Error)]++
	}
	return count
}

// bruteForce is what the brute-force protection holds against the user.
type bruteForce struct {
	NumFailures int
	Disabled    bool
}

func (u keycloakUser) bruteForce(t *testing.T) (status bruteForce) {
	t.Helper()
	u.k.admin(t, http.MethodGet, "/attack-detection/brute-force/users/"+u.id, nil, &status)
	return status
}

func (u keycloakUser) failures(t *testing.T) int {
	t.Helper()
	return u.bruteForce(t).NumFailures
}

func (u keycloakUser) lockedOut(t *testing.T) bool {
	t.Helper()
	return u.bruteForce(t).Disabled
}

// sessions is how many sessions the user has open.
func (u keycloakUser) sessions(t *testing.T) int {
	t.Helper()
	var open []struct{ ID string }
	u.k.admin(t, http.MethodGet, "/users/"+u.id+"/sessions", nil, &open)
	return len(open)
}

// admin sends one request of the admin API of the realm "zerto".
func (k *keycloakServer) admin(t *testing.T, method, path string, body, into any) {
	t.Helper()
	var token struct {
		Value string `json:"access_token"`
	}
	form := url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {keycloakAdmin}, "password": {keycloakAdminPassword},
	}
	k.do(t, http.MethodPost, "/realms/master/protocol/openid-connect/token", "application/x-www-form-urlencoded", "", []byte(form.Encode()), &token)
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	k.do(t, method, "/admin/realms/zerto"+path, "application/json", token.Value, encoded, into)
}

func (k *keycloakServer) do(t *testing.T, method, path, contentType, bearer string, body []byte, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, k.base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := k.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}
