package zvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

func TestNewNormalisesTheBaseURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://zvm.example.com":            "https://zvm.example.com",
		"https://ZVM.Example.com/":           "https://zvm.example.com",
		" https://zvm.example.com//\n":       "https://zvm.example.com",
		"https://zvm.example.com:9669":       "https://zvm.example.com:9669",
		"https://proxy.example.com/zvm/one/": "https://proxy.example.com/zvm/one",
		"https://[2001:db8::1]:8443":         "https://[2001:db8::1]:8443",
		"http://localhost:8080":              "http://localhost:8080",
		"http://127.0.0.1:8080":              "http://127.0.0.1:8080",
		"http://[::1]:8080":                  "http://[::1]:8080",
	} {
		c, err := New(given, Password(testUser, testPassword))
		if err != nil {
			t.Errorf("New(%q): %v", given, err)
			continue
		}
		if got := c.BaseURL(); got != want {
			t.Errorf("New(%q).BaseURL() = %q, want %q", given, got, want)
		}
	}
}

func TestNewRefusesBaseURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ url, hint string }{
		"empty":                        {"", "https://"},
		"no scheme":                    {"zvm.example.com", "https://"},
		"host and port without scheme": {"zvm.example.com:443", "https://"},
		"plain http to the network":    {"http://zvm.example.com", "network"},
		"plain http to a lookalike":    {"http://localhost.example.com", "network"},
		"another scheme":               {"ftp://zvm.example.com", "https://"},
		"no host":                      {"https://", "no host"},
		"port alone":                   {"https://:443", "no host"},
		"user and password":            {"https://admin:MARKER-pw@zvm.example.com", "credentials"},
		"password that breaks the URL": {"https://admin:MARKER-p/w@zvm.example.com", ""},
		"query":                        {"https://zvm.example.com?token=MARKER-t", "query"},
		"empty query":                  {"https://zvm.example.com?", "query"},
		"fragment":                     {"https://zvm.example.com#x", "fragment"},
		"empty fragment":               {"https://zvm.example.com#", "fragment"},
		"ends in the API":              {"https://zvm.example.com/v1/", "/v1"},
		"ends in Keycloak":             {"https://zvm.example.com/auth", "/auth"},
		"relative part":                {"https://zvm.example.com/a/../b", "relative"},
		"empty part":                   {"https://zvm.example.com/a//b", "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tc.url, Password(testUser, testPassword))
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tc.hint) {
				t.Errorf("error %q does not mention %q", err, tc.hint)
			}
			wantNoMarker(t, "the error", err.Error())
		})
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	pin := strings.Repeat("ab", 32)
	for name, opts := range map[string][]Option{
		"nil option":                  {nil},
		"nil pool":                    {WithRootCAs(nil)},
		"short fingerprint":           {WithCertSHA256("abcd")},
		"fingerprint of other digits": {WithCertSHA256(strings.Repeat("zz", 32))},
		"insecure and pinned":         {WithInsecureSkipVerify(), WithCertSHA256(pin)},
		"insecure and named":          {WithInsecureSkipVerify(), WithServerName("zvm")},
		"server name with port":       {WithServerName("zvm:443")},
		"transport with TLS options":  {WithTransport(&script{}), WithCertSHA256(pin)},
		"nil transport":               {WithTransport(nil)},
		"realm with separator":        {WithRealm("a/b")},
		"empty realm":                 {WithRealm("")},
		"empty client id":             {WithClientID("")},
		"relative token path":         {WithTokenPath("realms/x")},
		"token path that climbs":      {WithTokenPath("/auth/../x")},
		"token path with query":       {WithTokenPath("/token?x=1")},
		"nil cache":                   {WithTokenCache(nil)},
		"nil logger":                  {WithLogger(nil)},
		"agent of two lines":          {WithUserAgent("a\r\nX: y")},
		"negative attempts":           {WithRetry(RetryPolicy{Max: -1})},
		"waits the wrong way round":   {WithRetry(RetryPolicy{MinWait: time.Second, MaxWait: time.Millisecond})},
		"no header timeout":           {WithHeaderTimeout(0)},
		"negative idle timeout":       {WithIdleTimeout(-time.Second)},
		"empty lists":                 {WithMaxListBytes(0)},
	} {
		_, err := New("https://zvm.example.com", Password(testUser, testPassword), opts...)
		var refused *OptionError
		if named := errors.As(err, &refused) && strings.HasPrefix(refused.Option, "With"); named != (name != "nil option") || err == nil {
			t.Errorf("%s: got %v, want an *OptionError", name, err)
		}
	}
}

func TestNewRefusesCredentials(t *testing.T) {
	t.Parallel()
	for name, cred := range map[string]Credentials{
		"nil":              nil,
		"no user":          Password("", testPassword),
		"no password":      Password(testUser, ""),
		"no client":        ClientCredentials("", "MARKER-s"),
		"no client secret": ClientCredentials("id", ""),
		"no source":        Tokens(nil),
	} {
		if _, err := New("https://zvm.example.com", cred); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWithSharesTheTokenUnlessIdentityChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt    Option
		logins int
	}{
		"another user agent": {WithUserAgent("agent"), 1},
		"another retry":      {WithRetry(RetryPolicy{}), 1},
		"another realm":      {WithRealm("master"), 2},
		"another client id":  {WithClientID("admin-cli"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{api: replies(`{}`, 200)}
			first := s.client(t)
			second, err := first.With(tc.opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []*Client{first, second, first, second} {
				if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(s.logins()); got != tc.logins {
				t.Errorf("%d logins, want %d", got, tc.logins)
			}
		})
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	var agents []string
	s := &script{api: func(req *http.Request) (*http.Response, error) {
		agents = append(agents, req.Header.Get("User-Agent"))
		return reply(req, 200, `{}`), nil
	}}
	first := s.client(t)
	second, err := first.With(WithUserAgent("derived"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Client{second, first} {
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"derived", "zerto-rewind"}, agents); diff != "" {
		t.Errorf("user agents mismatch (-want +got):\n%s", diff)
	}
}

func TestTwoClientsShareNothing(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	for _, c := range []*Client{s.client(t), s.client(t)} {
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.logins()); got != 2 {
		t.Errorf("%d logins, want 2", got)
	}
}

// holder keeps values where package fmt cannot call their methods.
type holder struct {
	cred   Credentials
	client *Client
	Secret Secret
}

func TestNoPrintShowsASecret(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	c := s.client(t)
	if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"client": c, "secret": Secret("MARKER-secret"),
		"password": Password(testUser, testPassword), "client credentials": ClientCredentials("id", "MARKER-client"),
		"source": Tokens(&staticSource{"MARKER-static"}),
		"token":  Token{Value: "MARKER-token"}, "saved": SavedToken{Access: "MARKER-a", Refresh: "MARKER-r"},
		"unexported fields": holder{Password(testUser, testPassword), c, "MARKER-h"},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			wantNoMarker(t, name+" as "+verb, fmt.Sprintf(verb, v))
		}
		for _, hidden := range []string{"4d41524b4552", "4D41524B4552"} {
			if strings.Contains(fmt.Sprintf("%x %X", v, v), hidden) {
				t.Errorf("%s shows a secret in hexadecimal", name)
			}
		}
		if text, err := json.Marshal(v); err == nil {
			wantNoMarker(t, name+" as JSON", string(text))
		}
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		wantNoMarker(t, name+" in a log", out.String())
	}
	if got := Secret("MARKER-secret").Reveal(); got != "MARKER-secret" {
		t.Errorf("Reveal returns %q", got)
	}
}

type staticSource struct{ value string }

func (s *staticSource) Token(context.Context) (Token, error) {
	return Token{Value: Secret(s.value)}, nil
}

func TestInsecureIsLoud(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	if _, err := New("https://zvm.example.com", Password(testUser, testPassword), WithLogger(logger), WithInsecureSkipVerify()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "WARN") || !strings.Contains(out.String(), "not checked") {
		t.Errorf("no warning in %q", out.String())
	}
}

func TestTokenPathJoinsTheBaseURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base string
		opts []Option
		want string
	}{
		"default":        {"https://zvm.example.com/", nil, "/auth/realms/zerto/protocol/openid-connect/token"},
		"path prefix":    {"https://proxy.example.com/zvm/", nil, "/zvm/auth/realms/zerto/protocol/openid-connect/token"},
		"realm":          {"https://zvm.example.com", []Option{WithRealm("my realm")}, "/auth/realms/my realm/protocol/openid-connect/token"},
		"without prefix": {"https://zvm.example.com", []Option{WithTokenPath("/realms/zerto/protocol/openid-connect/token")}, "/realms/zerto/protocol/openid-connect/token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{api: replies(`{}`, 200)}
			c := newTestClient(t, tc.base, append(tc.opts, WithTransport(s))...)
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			if got := s.logins()[0].Path; got != tc.want {
				t.Errorf("token path is %q, want %q", got, tc.want)
			}
		})
	}
}
