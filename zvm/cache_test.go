package zvm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memoryCache is a TokenCache in memory.
type memoryCache struct {
	mu      sync.Mutex
	entries map[string]SavedToken
	lockErr error
}

type memoryEntry struct {
	cache *memoryCache
	key   string
}

func (m *memoryCache) Lock(_ context.Context, key string) (TokenEntry, error) {
	if m.lockErr != nil {
		return nil, m.lockErr
	}
	m.mu.Lock()
	if m.entries == nil {
		m.entries = map[string]SavedToken{}
	}
	return memoryEntry{m, key}, nil
}

func (e memoryEntry) Load() (SavedToken, error) { return e.cache.entries[e.key], nil }

func (e memoryEntry) Store(t SavedToken) error { e.cache.entries[e.key] = t; return nil }

func (e memoryEntry) Unlock() error { e.cache.mu.Unlock(); return nil }

func TestTokenCacheServesManyClientsWithOneLogin(t *testing.T) {
	t.Parallel()
	cache := &memoryCache{}
	s := &script{api: replies(`{}`, 200)}
	var wg sync.WaitGroup
	for range 20 {
		c := s.client(t, WithTokenCache(cache))
		wg.Go(func() {
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(s.logins()); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	for key := range cache.entries {
		if len(key) != 64 || strings.Contains(key, testUser) {
			t.Errorf("the key is %q", key)
		}
	}
}

func TestRejectedTokenIsNotTakenFromTheCacheAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &memoryCache{}
		s := &script{api: func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") == "Bearer "+tokenNumber(1) {
				return reply(req, 401, ``), nil
			}
			return reply(req, 200, `{}`), nil
		}}
		for range 3 {
			if err := s.client(t, WithTokenCache(cache)).read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.logins()); n != 2 {
			t.Errorf("%d logins, want 2", n)
		}
	})
}

func TestRefreshTokenIsSharedThroughTheCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &memoryCache{}
		s := refreshing(replies(`{"access_token":"MARKER-new","expires_in":60,"refresh_token":"MARKER-r2"}`, 200), nil)
		for range 3 {
			if err := s.client(t, WithTokenCache(cache)).read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			_ = sleep(t.Context(), time.Minute)
		}
		if diff := cmp.Diff([]string{"password", "refresh_token", "refresh_token"}, grantTypes(t, s)); diff != "" {
			t.Errorf("grants mismatch (-want +got):\n%s", diff)
		}
	})
}

func TestBrokenCacheDoesNotPreventTheLogin(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	c := s.client(t, WithTokenCache(&memoryCache{lockErr: errors.New("read-only file system")}))
	if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
		t.Fatal(err)
	}
}

// stuckCache is a cache whose entry another process never releases.
type stuckCache struct{}

func (stuckCache) Lock(ctx context.Context, _ string) (TokenEntry, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestStuckCacheLeavesTimeForTheLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{api: replies(`{}`, 200)}
		if err := s.client(t, WithTokenCache(stuckCache{})).read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Error(err)
		}
	})
}

func TestCacheKeysDiffer(t *testing.T) {
	t.Parallel()
	cache := &memoryCache{}
	s := &script{api: replies(`{}`, 200)}
	for _, tc := range []struct {
		base string
		cred Credentials
		opt  Option
	}{
		{"https://a.example.com", Password("u", testPassword), WithRealm("zerto")},
		{"https://b.example.com", Password("u", testPassword), WithRealm("zerto")},
		{"https://a.example.com", Password("v", testPassword), WithRealm("zerto")},
		{"https://a.example.com", Password("u", testPassword), WithRealm("other")},
		{"https://a.example.com", Password("u", testPassword), WithClientID("other")},
		{"https://a.example.com", ClientCredentials("u", testPassword), WithRealm("zerto")},
	} {
		c, err := New(tc.base, tc.cred, WithTransport(s), WithTokenCache(cache), tc.opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(cache.entries) != 6 {
		t.Errorf("%d entries, want 6", len(cache.entries))
	}
}
