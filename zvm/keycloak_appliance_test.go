//go:build keycloak

package zvm_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	serviceClient = "rewind-service"
	serviceSecret = "MARKER-secret-of-rewind-service"
)

// appliance is a simulator in front of the Keycloak: one base URL, as a client
// sees it.
func (k *keycloakServer) appliance(t *testing.T, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	return zvmtest.Start(t, append(opts, zvmtest.WithKeycloak(k.base, "zerto", serviceClient))...)
}

// dial returns a client whose log holds no secret when the test ends.
func dial(t *testing.T, s *zvmtest.Server, cred zvm.Credentials, opts ...zvm.Option) *zvm.Client {
	t.Helper()
	var log lockedBuffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := zvm.New(s.URL(), cred, append(opts, zvm.WithRootCAs(s.CertPool()), zvm.WithLogger(logger))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wantNoSecret(t, "the log", log.String()) })
	return c
}

func (u keycloakUser) dial(t *testing.T, s *zvmtest.Server, opts ...zvm.Option) *zvm.Client {
	t.Helper()
	return dial(t, s, zvm.Password(u.name, u.secret), opts...)
}

// wantNoSecret looks for passwords and for the beginning of every JWT.
func wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{"MARKER", "eyJ"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows a secret: %s", what, text)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func look(ctx context.Context, c *zvm.Client) error {
	_, err := c.ListVMs(ctx, zvm.VMFilter{})
	return err
}

// logins lists the grant types that were asked for, in order, and how each
// was answered: "password 200".
func logins(t *testing.T, s *zvmtest.Server) []string {
	t.Helper()
	var all []string
	for _, r := range s.Requests() {
		if !strings.HasSuffix(r.Path, "/token") {
			continue
		}
		form, err := url.ParseQuery(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, form.Get("grant_type")+" "+http.StatusText(r.Status))
	}
	return all
}

// wantRenewedInTime fails if every renewal was the answer to a 401. On a slow
// machine a token may expire on its way, so that some may be.
func wantRenewedInTime(t *testing.T, s *zvmtest.Server) {
	t.Helper()
	late := 0
	for _, r := range s.Requests() {
		if strings.HasPrefix(r.Path, "/v1/") && r.Status == http.StatusUnauthorized {
			late++
		}
	}
	if renewals := s.TokenRequests() - 1; late >= renewals {
		t.Errorf("%d of %d renewals came after a refusal", late, renewals)
	}
}

func want[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// until calls done every 100 ms until it reports true.
func until(t *testing.T, limit time.Duration, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("it did not happen within %s", limit)
		}
	}
}

// sharedTokens is a token cache in memory, which remembers every refresh token
// that was stored.
type sharedTokens struct {
	entry chan struct{} // made by the first Lock
	once  sync.Once

	mu     sync.Mutex
	saved  zvm.SavedToken
	stored []zvm.Secret
}

func (c *sharedTokens) Lock(ctx context.Context, _ string) (zvm.TokenEntry, error) {
	c.once.Do(func() { c.entry = make(chan struct{}, 1) })
	select {
	case c.entry <- struct{}{}:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *sharedTokens) Load() (zvm.SavedToken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved, nil
}

func (c *sharedTokens) Store(t zvm.SavedToken) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = t
	c.stored = append(c.stored, t.Refresh)
	return nil
}

func (c *sharedTokens) Unlock() error { <-c.entry; return nil }

func (c *sharedTokens) refreshTokens() []zvm.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.stored)
}
