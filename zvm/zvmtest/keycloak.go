package zvmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// WithKeycloak has a real Keycloak issue the tokens, as on an appliance: one
// base URL serves /auth and /v1. base is the address above /realms, for
// example "http://127.0.0.1:8080/auth".
//
// Requests to the token endpoint and to discovery are passed on, with
// X-Forwarded headers that name this server. A call of /v1 needs a bearer
// token that the realm signed (RS256 or ES256) for zerto-client or one of the
// further clients, with scope openid (see OpenIDScopeOptional) and a realm
// role: "admin" is Admin and "viewer" is Viewer, whichever is more. Times are
// compared with this server's clock, without tolerance.
//
// WithUser, WithServiceClient, the options about the life of tokens and
// RevokeSessions have no effect then. RevokeTokens refuses the tokens that
// were used so far.
func WithKeycloak(base, realm string, clients ...string) Option {
	return func(c *config) error {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("WithKeycloak: the base is no http or https address")
		}
		if err := WithRealm(realm)(c); err != nil {
			return err
		}
		k := &keycloak{
			realmURL: u.JoinPath("realms", realm).String(),
			clients:  map[string]bool{publicClient: true},
			// A connection of its own for each request leaves nothing to close.
			http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second},
		}
		for _, id := range clients {
			k.clients[id] = true
		}
		c.keycloak = k
		return nil
	}
}

// keycloak is the realm behind a server.
type keycloak struct {
	realmURL string
	clients  map[string]bool // whose tokens are taken, by the claim azp
	http     *http.Client
	keys     keySet
}

// keycloakRoles maps realm roles (zvm-wire 1.10), the most powerful first.
var keycloakRoles = []struct {
	name string
	role Role
}{{"admin", Admin}, {"viewer", Viewer}}

// routes is the support table. With a Keycloak, its part is passed on to it,
// and every other operation first sees to the bearer.
func (c *config) routes() []route {
	all := routes()
	if c.keycloak == nil {
		return all
	}
	for i, rt := range all {
		if suffix, found := strings.CutPrefix(rt.pattern, "/auth/realms/{realm}"); found {
			all[i].handle = passOn(suffix)
		} else if rt.access != public {
			all[i].prepare = func(s *Server, c *call) {
				s.admit(c)
				if rt.prepare != nil {
					rt.prepare(s, c)
				}
			}
		}
	}
	return all
}

// passOn hands a request to the realm, without the mutex.
func passOn(suffix string) handler {
	return func(s *Server, c *call) reply {
		if c.params["realm"] != s.cfg.realm {
			return refuseToken(http.StatusNotFound, "Realm does not exist", "")
		}
		return reply{later: func() reply {
			rep, err := s.askRealm(c.request.Context(), c.request.Method, suffix, c.request.Header, c.body)
			if err != nil {
				return fail(http.StatusBadGateway, "Keycloak does not answer")
			}
			return rep
		}}
	}
}

// askRealm sends one request below the realm's address.
func (s *Server) askRealm(ctx context.Context, method, suffix string, header http.Header, body []byte) (reply, error) {
	k := s.cfg.keycloak
	req, err := http.NewRequestWithContext(ctx, method, k.realmURL+suffix, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for _, name := range []string{"Accept", "Authorization", "Content-Type"} {
		if values := header.Values(name); len(values) > 0 {
			req.Header[name] = values
		}
	}
	req.Header.Set("X-Forwarded-Proto", "https")
	req.Header.Set("X-Forwarded-Host", s.listener.Addr().String())
	resp, err := k.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return reply{}, err
	}
	return reply{status: resp.StatusCode, raw: answer, contentType: resp.Header.Get("Content-Type")}, nil
}

// admit takes a bearer token that the realm issued into the server's own, so
// that it is checked once and then treated like any other.
func (s *Server) admit(c *call) {
	scheme, secret, _ := strings.Cut(c.request.Header.Get("Authorization"), " ")
	if s.cfg.keycloak == nil || !strings.EqualFold(scheme, "Bearer") || s.knowsToken(secret) {
		return
	}
	ctx := c.request.Context()
	token, err := s.verify(ctx, secret, c.now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		var unreachable *unreachableError
		if errors.As(err, &unreachable) && ctx.Err() == nil {
			s.problem(err.Error())
		}
		return
	}
	if s.tokens[secret] == nil {
		s.tokens[secret] = token
	}
}

func (s *Server) knowsToken(secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[secret] != nil
}

// verify checks everything about a token but its scope, which bearer does.
func (s *Server) verify(ctx context.Context, secret string, now time.Time) (*accessToken, error) {
	t, err := parseJWT(secret)
	if err != nil {
		return nil, err
	}
	issuer, key, err := s.cfg.keycloak.keys.find(t.header.KeyID, func(suffix string) ([]byte, error) {
		rep, err := s.askRealm(ctx, http.MethodGet, suffix, nil, nil)
		if err == nil && rep.status != http.StatusOK {
			err = fmt.Errorf("status %d", rep.status)
		}
		return rep.raw, err
	})
	if err != nil {
		return nil, err
	}
	if err := t.checkSignature(key); err != nil {
		return nil, err
	}
	switch {
	case t.claims.Issuer != issuer:
		return nil, errors.New("the token is another realm's")
	case t.claims.Type != "Bearer":
		return nil, errors.New("the token is no access token")
	case !s.cfg.keycloak.clients[t.claims.Client]:
		return nil, errors.New("the token is another client's")
	case now.Before(unixSeconds(t.claims.NotBefore)) || !now.Before(unixSeconds(t.claims.Expiry)):
		return nil, errors.New("the token is not valid now")
	}
	return t.claims.accessToken()
}
