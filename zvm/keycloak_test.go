//go:build keycloak

package zvm_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestKeycloakFirstCallsShareOneLogin(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "burst", "admin"), k.appliance(t)
	c := u.dial(t, s)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if err := look(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// On a slow machine the calls outlive the token of three seconds; then they renew it, and still log in once.
	if got := logins(t, s); got[0] != "password OK" || slices.Contains(got[1:], "password OK") {
		t.Errorf("logins = %q", got)
	}
	want(t, "logins by Keycloak's events", 1, u.events(t)["LOGIN"])
	want(t, "sessions", 1, u.sessions(t))
}

func TestKeycloakTokensExpireDuringATaskWait(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "waiting", "admin"), k.appliance(t, zvmtest.WithInsertTime(10*time.Second))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	s.AddVM("web01", vpg)
	c := u.dial(t, s)
	id, err := c.InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "a tag")
	if err != nil {
		t.Fatal(err)
	}
	got, err := task.Wait(t.Context(), c, id)
	if err != nil || got.State != task.Completed {
		t.Fatalf("the task ended as %v, %v", got.State, err)
	}
	events := u.events(t)
	want(t, "logins", 1, events["LOGIN"])
	want(t, "refused refreshes", 0, events["REFRESH_TOKEN_ERROR invalid_token"])
	if events["REFRESH_TOKEN"] < 3 {
		t.Errorf("%d renewals of a token of three seconds in ten seconds", events["REFRESH_TOKEN"])
	}
	want(t, "inserts", 1, s.Count(http.MethodPost, "/v1/vpgs/*/checkpoints"))
	wantRenewedInTime(t, s)
}

func TestKeycloakEndedSessionCostsOneLogin(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "revoked", "admin"), k.appliance(t, zvmtest.WithInsertTime(8*time.Second))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	s.AddVM("web01", vpg)
	c := u.dial(t, s)
	id, err := c.InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "a tag")
	if err != nil {
		t.Fatal(err)
	}
	u.logOut(t)
	want(t, "sessions after the log-out", 0, u.sessions(t))
	if got, err := task.Wait(t.Context(), c, id); err != nil || got.State != task.Completed {
		t.Fatalf("the task ended as %v, %v", got.State, err)
	}
	got := logins(t, s)
	want(t, "the first logins", []string{"password OK", "refresh_token Bad Request", "password OK"}, got[:min(3, len(got))])
	want(t, "full logins", 2, u.events(t)["LOGIN"])
	want(t, "inserts", 1, s.Count(http.MethodPost, "/v1/vpgs/*/checkpoints"))
}

func TestKeycloakRefreshTokensAreUsedOnce(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "rotating", "admin"), k.appliance(t)
	cache := &sharedTokens{}
	c := u.dial(t, s, zvm.WithTokenCache(cache))
	until(t, time.Minute, func() bool {
		if err := look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return len(cache.refreshTokens()) >= 4
	})
	used := cache.refreshTokens()
	for i, token := range used {
		if token == "" || slices.Contains(used[:i], token) {
			t.Errorf("refresh token %d is empty or an old one", i)
		}
	}
	want(t, "full logins", 1, u.events(t)["LOGIN"])

	// Somebody uses an old one: Keycloak refuses it, and the client goes on.
	if status := refresh(t, s, used[0].Reveal()); status != http.StatusBadRequest {
		t.Fatalf("an old refresh token gets %d: the realm does not rotate them", status)
	}
	before := len(used)
	until(t, time.Minute, func() bool {
		if err := look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return len(cache.refreshTokens()) > before
	})
	if n := u.events(t)["LOGIN"]; n > 2 {
		t.Errorf("%d full logins after one reuse", n)
	}
}

func refresh(t *testing.T, s *zvmtest.Server, token string) int {
	t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {token}}
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
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestKeycloakRefusedLoginIsSentOnce(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	for name, tc := range map[string]struct {
		user     map[string]any
		password string
		event    string
		says     string
	}{
		"mistyped":   {nil, "MARKER-mistyped", "LOGIN_ERROR invalid_user_credentials", "Invalid user credentials"},
		"unfinished": {map[string]any{"requiredActions": []string{"UPDATE_PASSWORD"}}, "MARKER-password-of-unfinished", "", "browser"},
		"disabled":   {map[string]any{"enabled": false}, "MARKER-password-of-disabled", "LOGIN_ERROR user_disabled", "Account disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, s := k.newUserLike(t, name, tc.user, "admin"), k.appliance(t)
			c := dial(t, s, zvm.Password(u.name, tc.password))
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					err := look(t.Context(), c)
					if !errors.Is(err, zvm.ErrUnauthorized) || !strings.Contains(err.Error(), tc.says) {
						t.Errorf("error = %v", err)
						return
					}
					wantNoSecret(t, "the error", err.Error())
				})
			}
			wg.Wait()
			want(t, "logins", []string{"password " + http.StatusText(http.StatusBadRequest)}, logins(t, s))
			if tc.event != "" { // Keycloak stores none for an account that is not fully set up
				want(t, "Keycloak's events", map[string]int{tc.event: 1}, u.events(t))
			}
		})
	}
}

func TestKeycloakWrongPasswordDoesNotLockTheUserOut(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "corrected", "admin"), k.appliance(t)
	if err := look(t.Context(), dial(t, s, zvm.Password(u.name, "MARKER-wrong"))); !errors.Is(err, zvm.ErrUnauthorized) {
		t.Fatalf("the wrong password: %v", err)
	}
	// Keycloak may still be at the refused login for a moment. A lock-out would last a minute.
	c := u.dial(t, s)
	until(t, 20*time.Second, func() bool { return look(t.Context(), c) == nil })
	until(t, 20*time.Second, func() bool { return u.failures(t) == 0 })
}

// A user whom somebody else has locked out is refused in the same words as a
// wrong password. A client that was let in before tries once more, no oftener.
func TestKeycloakLockOutIsNotMetWithMoreLogins(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s, elsewhere := k.newUser(t, "locked", "admin"), k.appliance(t), k.appliance(t)
	c := u.dial(t, s)
	if err := look(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, func() bool {
		if err := look(t.Context(), dial(t, elsewhere, zvm.Password(u.name, "MARKER-guess"))); !errors.Is(err, zvm.ErrUnauthorized) {
			t.Fatalf("a guess: %v", err)
		}
		return u.lockedOut(t)
	})
	u.logOut(t)
	var err error
	until(t, 30*time.Second, func() bool {
		err = look(t.Context(), c)
		return err != nil
	})
	if !errors.Is(err, zvm.ErrUnauthorized) || !strings.Contains(err.Error(), "lock") {
		t.Errorf("error = %v", err)
	}
	wantNoSecret(t, "the error", err.Error())
	got := logins(t, s)
	if tried := len(got) - slices.Index(got, "refresh_token Bad Request"); tried > 3 {
		t.Errorf("logins = %q", got)
	}
}

func TestKeycloakServiceAccountRenewsWithoutRefreshToken(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	s := k.appliance(t)
	cache := &sharedTokens{}
	c := dial(t, s, zvm.ClientCredentials(serviceClient, serviceSecret), zvm.WithTokenCache(cache))
	until(t, time.Minute, func() bool {
		if err := look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return s.TokenRequests() >= 3
	})
	for i, login := range logins(t, s) {
		if login != "client_credentials OK" {
			t.Errorf("login %d is %s", i, login)
		}
	}
	if got := cache.refreshTokens(); slices.ContainsFunc(got, func(token zvm.Secret) bool { return token != "" }) {
		t.Error("Keycloak gave a service account a refresh token")
	}
	wantRenewedInTime(t, s)
}

func TestKeycloakServiceAccountWithWrongSecret(t *testing.T) {
	t.Parallel()
	s := keycloak(t).appliance(t)
	err := look(t.Context(), dial(t, s, zvm.ClientCredentials(serviceClient, "MARKER-wrong")))
	if !errors.Is(err, zvm.ErrUnauthorized) {
		t.Fatalf("error = %v", err)
	}
	wantNoSecret(t, "the error", err.Error())
	want(t, "logins", []string{"client_credentials Unauthorized"}, logins(t, s))
}

// Brute-force protection refuses logins of one user that overlap. Clients that
// share a token cache, as processes do, do not overlap.
func TestKeycloakClientsWithOneCacheLogInOnce(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "sharing", "admin"), k.appliance(t)
	cache := &sharedTokens{}
	var wg sync.WaitGroup
	for range 8 {
		c := u.dial(t, s, zvm.WithTokenCache(cache))
		wg.Go(func() {
			if err := look(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	events := u.events(t)
	want(t, "full logins", 1, events["LOGIN"])
	want(t, "refused logins", 0, events["LOGIN_ERROR user_temporarily_disabled"])
	want(t, "token requests at one time", 1, s.MaxInFlight(http.MethodPost, "/auth/realms/*/protocol/openid-connect/token"))
}

// Without a cache a client may be refused for another one's login, in the
// words of a wrong password. Nothing is held against the user, and the next
// call of the refused client succeeds.
func TestKeycloakClientsWithoutCacheRecoverFromOverlap(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	u, s := k.newUser(t, "overlapping", "admin"), k.appliance(t)
	clients := []*zvm.Client{u.dial(t, s), u.dial(t, s)}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			if err := look(t.Context(), c); err != nil && !errors.Is(err, zvm.ErrUnauthorized) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.TokenRequests(); n > 4 {
		t.Errorf("%d logins of two clients", n)
	}
	for _, c := range clients {
		until(t, 20*time.Second, func() bool { return look(t.Context(), c) == nil })
	}
	until(t, 20*time.Second, func() bool { return u.failures(t) == 0 })
}

func TestKeycloakRoles(t *testing.T) {
	t.Parallel()
	k := keycloak(t)
	for name, tc := range map[string]struct {
		roles       []string
		read, write error
	}{
		"reader": {[]string{"viewer"}, nil, zvm.ErrForbidden},
		"nobody": {nil, zvm.ErrUnauthorized, zvm.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, s := k.newUser(t, name, tc.roles...), k.appliance(t)
			vpg := s.AddVPG("web", zvmtest.VPGConfig{})
			c := u.dial(t, s)
			if err := look(t.Context(), c); !errors.Is(err, tc.read) {
				t.Errorf("read: %v, want %v", err, tc.read)
			}
			if _, err := c.InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "a tag"); !errors.Is(err, tc.write) {
				t.Errorf("write: %v, want %v", err, tc.write)
			}
			want(t, "inserts carried out", 0, vpg.MaxInFlight())
		})
	}
}
