package zvmtest

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Role is what an account may do (zvm-wire 1.10).
type Role int

const (
	// Admin may do everything.
	Admin Role = iota + 1
	// Viewer may read; every write is a 403.
	Viewer
	// FLROperator may read. On 10.9 its FLR calls are a 403 too (zvm-wire
	// 13), unless FLROperatorAllowed is on.
	FLROperator
)

func (r Role) valid() bool { return r >= Admin && r <= FLROperator }

type account struct {
	name   string
	secret string
	role   Role
	public bool // a client without a secret, for the password grant
}

// session is a Keycloak session: what refresh tokens belong to.
type session struct {
	id      string
	account account
	client  string
	openid  bool
	until   time.Time
	ended   bool
	spent   map[string]bool // refresh tokens that were used
}

type accessToken struct {
	account account
	openid  bool
	until   time.Time
	revoked bool
}

// tokenResult is the token endpoint's answer (zvm-wire 1.1).
type tokenResult struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int    `json:"expires_in"`
	RefreshExpiresIn int    `json:"refresh_expires_in"`
	RefreshToken     string `json:"refresh_token,omitempty"`
	IDToken          string `json:"id_token,omitempty"`
	TokenType        string `json:"token_type"`
	NotBeforePolicy  int    `json:"not-before-policy"`
	SessionState     string `json:"session_state,omitempty"`
	Scope            string `json:"scope"`
}

type tokenError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// tokenReply encodes by itself: Keycloak's keys know no switch.
func tokenReply(status int, value any) reply {
	body, err := json.Marshal(value)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return reply{status: status, raw: body, contentType: "application/json"}
}

func refuseToken(status int, code, description string) reply {
	return tokenReply(status, tokenError{code, description})
}

// handleToken is the token endpoint (zvm-wire 1.1 to 1.5).
func handleToken(s *Server, c *call) reply {
	if c.params["realm"] != s.cfg.realm {
		return refuseToken(http.StatusNotFound, "Realm does not exist", "")
	}
	mediaType, _, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	form, formErr := url.ParseQuery(string(c.body))
	if err != nil || formErr != nil || mediaType != "application/x-www-form-urlencoded" {
		return refuseToken(http.StatusBadRequest, "invalid_request", "Missing form parameter: grant_type")
	}
	client, known := s.cfg.clients[form.Get("client_id")]
	if !known {
		return refuseToken(http.StatusUnauthorized, "invalid_client", "Invalid client or Invalid client credentials")
	}
	if !client.public && form.Get("client_secret") != client.secret {
		return refuseToken(http.StatusUnauthorized, "unauthorized_client", "Invalid client or Invalid client credentials")
	}
	openid := slices.Contains(strings.Fields(form.Get("scope")), "openid")
	switch form.Get("grant_type") {
	case "password":
		return s.passwordGrant(c, form, openid)
	case "client_credentials":
		if client.public {
			return refuseToken(http.StatusUnauthorized, "unauthorized_client", "Public client not allowed to retrieve service account")
		}
		ses := s.newSession(c, client, form, openid)
		return tokenReply(http.StatusOK, s.issue(c, ses, s.cfg.has(ServiceClientRefreshToken)))
	case "refresh_token":
		return s.refreshGrant(c, form)
	case "":
		return refuseToken(http.StatusBadRequest, "invalid_request", "Missing form parameter: grant_type")
	}
	return refuseToken(http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant_type")
}

// passwordGrant logs a user in. Where overlapping logins are refused, a login
// occupies its user for a while of real time, without the mutex.
func (s *Server) passwordGrant(c *call, form url.Values, openid bool) reply {
	name := form.Get("username")
	user, known := s.cfg.users[name]
	invalid := refuseToken(http.StatusUnauthorized, "invalid_grant", "Invalid user credentials")
	locked := s.cfg.lockout > 0 && s.wrongPasswords[name] >= s.cfg.lockout
	if !known || locked || form.Get("password") != user.secret {
		s.wrongPasswords[name]++
		return invalid
	}
	s.wrongPasswords[name] = 0
	if s.cfg.sessionLimit > 0 && s.liveSessions(name, c.now) >= s.cfg.sessionLimit {
		return invalid
	}
	if !s.cfg.has(ConcurrentLoginRefused) {
		return tokenReply(http.StatusOK, s.issue(c, s.newSession(c, user, form, openid), true))
	}
	if s.logins[name] > 0 {
		return invalid
	}
	s.logins[name]++
	return reply{later: func() reply {
		s.pause(c.request.Context(), s.cfg.loginTime)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logins[name]--
		return tokenReply(http.StatusOK, s.issue(c, s.newSession(c, user, form, openid), true))
	}}
}

// liveSessions counts the Keycloak sessions of a user.
func (s *Server) liveSessions(user string, now time.Time) int {
	live := map[*session]bool{}
	for _, ses := range s.refreshTokens {
		if ses.account.name == user && !ses.ended && now.Before(ses.until) {
			live[ses] = true
		}
	}
	return len(live)
}

func (s *Server) refreshGrant(c *call, form url.Values) reply {
	token := form.Get("refresh_token")
	ses, known := s.refreshTokens[token]
	switch {
	case !known:
		return refuseToken(http.StatusBadRequest, "invalid_grant", "Invalid refresh token")
	case ses.client != form.Get("client_id"):
		return refuseToken(http.StatusBadRequest, "invalid_grant", "Invalid refresh token. Token client and authorized client don't match")
	case ses.ended:
		return refuseToken(http.StatusBadRequest, "invalid_grant", "Session not active")
	case !c.now.Before(ses.until):
		return refuseToken(http.StatusBadRequest, "invalid_grant", "Token is not active")
	case s.cfg.has(RefreshTokenSingleUse) && ses.spent[token]:
		ses.ended = true
		return refuseToken(http.StatusBadRequest, "invalid_grant", "Maximum allowed refresh token reuse exceeded")
	}
	ses.spent[token] = true
	return tokenReply(http.StatusOK, s.issue(c, ses, true))
}

func (s *Server) newSession(c *call, owner account, form url.Values, openid bool) *session {
	return &session{
		id:      s.nextGUID("keycloak session"),
		account: owner,
		client:  form.Get("client_id"),
		openid:  openid,
		until:   c.now.Add(s.cfg.refreshTTL),
		spent:   map[string]bool{},
	}
}

// issue makes an access token and, on wish, the refresh token beside it.
func (s *Server) issue(c *call, ses *session, withRefresh bool) tokenResult {
	result := tokenResult{
		AccessToken: newSecret("access"),
		ExpiresIn:   int(s.cfg.tokenTTL / time.Second),
		TokenType:   "Bearer",
		Scope:       "profile email",
	}
	if ses.openid {
		result.Scope = "openid profile email"
		result.IDToken = newSecret("id") // nobody needs it, and nobody may show it
	}
	s.tokens[result.AccessToken] = &accessToken{account: ses.account, openid: ses.openid, until: s.Now().Add(s.cfg.tokenTTL)}
	if withRefresh {
		ses.until = c.now.Add(s.cfg.refreshTTL)
		result.RefreshToken = newSecret("refresh")
		result.RefreshExpiresIn = int(s.cfg.refreshTTL / time.Second)
		result.SessionState = ses.id
		s.refreshTokens[result.RefreshToken] = ses
	}
	return result
}

// handleDiscovery is the well-known document that tells an appliance from a
// Windows ZVM (zvm-wire 1.1).
func handleDiscovery(s *Server, c *call) reply {
	if c.params["realm"] != s.cfg.realm {
		return refuseToken(http.StatusNotFound, "Realm does not exist", "")
	}
	realm := s.url + "/auth/realms/" + s.cfg.realm
	return tokenReply(http.StatusOK, map[string]any{
		"issuer":                 realm,
		"token_endpoint":         realm + "/protocol/openid-connect/token",
		"authorization_endpoint": realm + "/protocol/openid-connect/auth",
		"grant_types_supported":  []string{"password", "client_credentials", "refresh_token"},
	})
}

// authorize checks bearer and role. The caller holds the mutex.
func (s *Server) authorize(rt *route, c *call) (reply, bool) {
	if rt.access == public || rt.access == linkOnly {
		return reply{}, false
	}
	token := s.valid(c)
	switch {
	case token == nil:
		return s.unauthorized(), true
	case s.hasScope(token):
	case s.cfg.has(MissingScopeAs403):
		return s.forbid(), true
	default:
		return s.unauthorized(), true
	}
	c.account = token.account
	role := token.account.role
	switch {
	case role == Admin, rt.access == read, role == Viewer && rt.method == http.MethodGet && rt.access == flr:
		return reply{}, false
	case role == FLROperator && rt.access == flr && s.cfg.has(FLROperatorAllowed):
		return reply{}, false
	case rt.access == flr && s.cfg.has(FLRForbiddenAs401):
		return s.unauthorized(), true
	}
	return s.forbid(), true
}

func (s *Server) forbid() reply {
	if s.cfg.has(ForbiddenEmpty) {
		return reply{status: http.StatusForbidden}
	}
	return fail(http.StatusForbidden, "the user is not permitted to do this")
}

func (s *Server) hasScope(token *accessToken) bool {
	return token.openid || s.cfg.has(OpenIDScopeOptional)
}

// bearer returns the valid token of a call with the scope that it needs, or
// nil.
func (s *Server) bearer(c *call) *accessToken {
	if token := s.valid(c); token != nil && s.hasScope(token) {
		return token
	}
	return nil
}

// valid returns the token of a call whatever its scope, or nil.
func (s *Server) valid(c *call) *accessToken {
	scheme, secret, _ := strings.Cut(c.request.Header.Get("Authorization"), " ")
	token, known := s.tokens[secret]
	if !known || !strings.EqualFold(scheme, "Bearer") || token.revoked || !c.now.Before(token.until) {
		return nil
	}
	return token
}

func (s *Server) unauthorized() reply {
	rep := reply{status: http.StatusUnauthorized}
	switch {
	case s.cfg.has(UnauthorizedMessage):
		rep = fail(http.StatusUnauthorized, "Authorization has been denied for this request.")
	case s.cfg.has(UnauthorizedHTML):
		rep.raw, rep.contentType = []byte("<html><head><title>401 Authorization Required</title></head></html>"), "text/html"
	}
	if !s.cfg.has(UnauthorizedNoChallenge) {
		rep.header = http.Header{"Www-Authenticate": {`Bearer error="invalid_token"`}}
	}
	return rep
}

// RevokeTokens makes every access token issued so far a 401. Refresh tokens
// work on.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range s.tokens {
		token.revoked = true
	}
}

// RevokeSessions ends every Keycloak session: access and refresh tokens
// issued so far are refused.
func (s *Server) RevokeSessions() {
	s.RevokeTokens()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.refreshTokens {
		ses.ended = true
	}
}
