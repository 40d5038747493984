package zvm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// opLogin is the operation that errors of the token endpoint name.
const opLogin = "Login"

// endpoint is the token endpoint of one realm.
type endpoint struct {
	sender   *sender
	path     string
	clientID string
	realm    string
	store    TokenCache
}

func newEndpoint(s *sender, cfg config) endpoint {
	path := cfg.tokenPath
	if path == "" {
		path = "/auth/realms/" + url.PathEscape(cfg.realm) + "/protocol/openid-connect/token"
	}
	return endpoint{sender: s, path: path, clientID: cfg.clientID, realm: cfg.realm, store: cfg.store}
}

// issued is an answer of the token endpoint.
type issued struct {
	grant
	refresh     Secret
	refreshLife time.Duration // 0 if unknown
}

// post asks for a token once. A connection that failed before the request left is tried again; a refusal never is, because refusals
// count towards a lock-out.
func (e endpoint) post(ctx context.Context, form url.Values, secrets ...string) (issued, error) {
	form.Set("scope", "openid") // without it newer servers issue a token and refuse it later (zvm-wire 1.3)
	x, err := e.sender.exchange(call{op: opLogin, method: http.MethodPost, path: e.path, safe: true})
	if err != nil {
		return issued{}, err
	}
	x.body = []byte(form.Encode())
	x.header.Set("Content-Type", "application/x-www-form-urlencoded")
	x.secrets = secrets
	started := time.Now()
	resp, err := x.attempts(ctx, "")
	if err != nil {
		return issued{}, x.failed(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		return issued{}, e.refused(x, resp)
	}
	defer closeBody(resp.Body)
	body, err := readAll(resp.Body, maxErrorBody)
	if err != nil {
		return issued{}, x.failed(ctx, err)
	}
	got, err := parseIssued(body)
	if err != nil {
		return issued{}, e.unusable(x, resp, body, err)
	}
	got.started = started
	return got, nil
}

// refused explains a refusal of the token endpoint and says where it came from: realm and path are settings that may be wrong.
func (e endpoint) refused(x *exchange, resp *http.Response) error {
	err := x.refused(resp)
	at := "at " + e.sender.base.String() + e.path
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		err.refused = true
		err.hint = at + "; not tried again, because repeated refusals can lock the account"
		if err.Code == "invalid_grant" {
			err.hint += busyHint
		}
		if strings.Contains(strings.ToLower(err.Message), "not fully set up") {
			err.hint = at + "; sign in once in a browser to finish the account, or ask the administrator"
		}
	case http.StatusNotFound:
		err.hint = at + "; a ZVM on Windows (9.7 and older) has no such login and is not supported, otherwise check the base URL, the realm and the path of the login"
	default:
		err.hint = at
	}
	return err
}

// busyHint: Keycloak says the same of a wrong password and of a right one that comes while another login of the same user is under way
// (measured with 26.7).
const busyHint = "; some servers refuse a right password as well while another login of the same user is under way"

// unusable is the error for a 2xx without a token. Its body is not kept: it may hold one under another name.
func (e endpoint) unusable(x *exchange, resp *http.Response, body []byte, cause error) error {
	err := x.newError()
	err.Status, err.ContentType = resp.StatusCode, x.scrub(resp.Header.Get("Content-Type"))
	err.cause = x.clean(cause)
	err.hint = "at " + e.sender.base.String() + e.path
	if markup(resp.Header, body) {
		err.Message = x.unusableText(err.ContentType, body)
		return err
	}
	if r := readReason(body, x.scrubber()); r.structured {
		err.Code, err.Message, err.refused = r.code, r.message, true
	}
	return err
}

var errNoAccessToken = errors.New("the answer holds no usable access_token")

// parseIssued reads what servers and proxies make of a token answer (zvm-wire 1.1).
func parseIssued(body []byte) (issued, error) {
	var w struct {
		AccessToken      Secret          `json:"access_token"`
		RefreshToken     Secret          `json:"refresh_token"`
		ExpiresIn        json.RawMessage `json:"expires_in"`
		RefreshExpiresIn json.RawMessage `json:"refresh_expires_in"`
	}
	if err := decode(body, &w); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, errMarkup) || errors.Is(err, errEmpty) {
			return issued{}, err
		}
		return issued{}, errNoAccessToken
	}
	if checkBearer(w.AccessToken) != nil {
		return issued{}, errNoAccessToken
	}
	life, known := seconds(w.ExpiresIn)
	if !known {
		life = unknownLife
	}
	refreshLife, _ := seconds(w.RefreshExpiresIn)
	return issued{grant: grant{value: w.AccessToken, life: life}, refresh: w.RefreshToken, refreshLife: refreshLife}, nil
}

// seconds accepts a number, a numeric text and a fraction. What is absent, null, negative or no nanosecond is unknown: a server that issues a
// token means it to be used.
func seconds(raw json.RawMessage) (time.Duration, bool) {
	n, err := json.Number(scalar(raw)).Float64()
	if err != nil || !(n > 0) {
		return 0, false
	}
	life := time.Duration(min(n, longestLife.Seconds()) * float64(time.Second))
	return life, life > 0
}

// clientGrant is the client-credentials grant. It has no refresh token: asking again is as good (zvm-wire 1.4).
type clientGrant struct {
	endpoint endpoint
	id       *identity
}

func newClientGrant(e endpoint, id *identity) (tokenSource, error) {
	if id.name == "" || id.reveal() == "" {
		return nil, errors.New("zvm: client credentials need an id and a secret")
	}
	return e.shared(&clientGrant{endpoint: e, id: id}, id), nil
}

func (g *clientGrant) login(ctx context.Context, _ Secret) (issued, error) {
	secret := g.id.reveal()
	return g.endpoint.post(ctx, url.Values{
		"grant_type": {"client_credentials"}, "client_id": {g.id.name}, "client_secret": {secret},
	}, secret)
}

// passwordGrant is the password grant, renewed by its refresh token while that works.
type passwordGrant struct {
	endpoint endpoint
	id       *identity
	proven   bool // the password was accepted before
}

func newPasswordGrant(e endpoint, id *identity) (tokenSource, error) {
	if id.name == "" || id.reveal() == "" {
		return nil, errors.New("zvm: password credentials need a user and a password")
	}
	return e.shared(&passwordGrant{endpoint: e, id: id}, id), nil
}

// login renews by refresh if there is one, and otherwise or if that is refused asks with the password.
func (g *passwordGrant) login(ctx context.Context, refresh Secret) (issued, error) {
	if refresh == "" {
		return g.full(ctx)
	}
	got, err := g.endpoint.post(ctx, url.Values{
		"grant_type": {"refresh_token"}, "client_id": {g.endpoint.clientID}, "refresh_token": {refresh.Reveal()},
	}, refresh.Reveal())
	if err == nil {
		if got.refresh == "" {
			got.refresh = refresh
		}
		return got, nil
	}
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Status/100 != 4 || refusal.Status == http.StatusTooManyRequests {
		return issued{}, err
	}
	got, err = g.full(ctx)
	var second *Error
	if errors.As(err, &second) {
		second.hint += "; before that the refresh token was refused: " + strings.TrimSpace(refusal.Code+" "+refusal.Message)
	}
	return got, err
}

// full asks with the password. Some servers refuse concurrent logins of one user: such a refusal gets one more try after a pause, and
// only where it is plausible that the password is right.
func (g *passwordGrant) full(ctx context.Context) (issued, error) {
	got, err := g.ask(ctx)
	if g.maybeBusy(err) {
		if sleep(ctx, busyPause+rand.N(busyPause)) == nil {
			got, err = g.ask(ctx)
		}
	}
	g.proven = g.proven || err == nil
	return got, err
}

func (g *passwordGrant) ask(ctx context.Context) (issued, error) {
	secret := g.id.reveal()
	return g.endpoint.post(ctx, url.Values{
		"grant_type": {"password"}, "client_id": {g.endpoint.clientID}, "username": {g.id.name}, "password": {secret},
	}, secret)
}

// busyPause is the least that a refused login waits before its one more try. A second failure within a second of the first is what
// Keycloak takes for an attack, and locks the account for (measured with 26.7).
const busyPause = 1200 * time.Millisecond

var (
	busyWords      = regexp.MustCompile(`(?i)temporar|concurrent|in progress|too many|try again`)
	permanentWords = regexp.MustCompile(`(?i)not fully set up|expired|required action`)
)

func (g *passwordGrant) maybeBusy(err error) bool {
	var e *Error
	if !errors.As(err, &e) || !e.refused || e.Code != "invalid_grant" {
		return false
	}
	return busyWords.MatchString(e.Message) || g.proven && !permanentWords.MatchString(e.Message)
}

// loginer is a grant that may start from a refresh token.
type loginer interface {
	login(ctx context.Context, refresh Secret) (issued, error)
}

// session remembers the refresh token between logins, and shares the tokens with other processes if there is a store for them.
type session struct {
	login  loginer
	store  TokenCache
	key    string
	logger *slog.Logger

	refresh      Secret
	refreshUntil time.Time
	renewed      Secret // the last token that came of a refresh token
}

func (e endpoint) shared(l loginer, id *identity) *session {
	parts := strings.Join([]string{e.sender.base.String(), e.path, e.clientID, id.kind, id.name}, "\x00")
	sum := sha256.Sum256([]byte(parts))
	return &session{login: l, store: e.store, key: hex.EncodeToString(sum[:]), logger: e.sender.logger}
}

// shortestSaved is the life that a stored token needs to be worth taking.
const shortestSaved = time.Second

// acquire holds the store's entry over reading, logging in and writing: of two processes the second finds the token of the first.
func (s *session) acquire(ctx context.Context, rejected Secret) (grant, error) {
	if s.store == nil {
		return s.renew(ctx, rejected)
	}
	entry, err := s.lock(ctx)
	if err != nil {
		s.report(ctx, err)
		return s.renew(ctx, rejected)
	}
	defer func() { s.report(ctx, entry.Unlock()) }()
	saved, err := entry.Load()
	s.report(ctx, err)
	if left := time.Until(saved.Expiry); err == nil && saved.Access != rejected && checkBearer(saved.Access) == nil && left > shortestSaved {
		s.refresh, s.refreshUntil = saved.Refresh, time.Time{}
		return grant{value: saved.Access, started: time.Now(), life: left}, nil
	}
	if err == nil && saved.Refresh != "" {
		s.refresh, s.refreshUntil = saved.Refresh, time.Time{}
	}
	got, err := s.renew(ctx, rejected)
	if err != nil {
		if saved != (SavedToken{}) && s.refresh == "" {
			s.report(ctx, entry.Store(SavedToken{}))
		}
		return grant{}, err
	}
	s.report(ctx, entry.Store(SavedToken{Access: got.value, Expiry: got.started.Add(got.life), Refresh: s.refresh}))
	return got, nil
}

// lock leaves time for a login without the store when another process keeps the entry.
func (s *session) lock(ctx context.Context) (TokenEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireLimit/2)
	defer cancel()
	return s.store.Lock(ctx, s.key)
}

// renew logs in. A refresh token whose own token was refused is not used again: it would bring the same refusal.
func (s *session) renew(ctx context.Context, rejected Secret) (grant, error) {
	usable := s.refresh != "" && (s.refreshUntil.IsZero() || time.Now().Before(s.refreshUntil))
	if !usable || rejected != "" && rejected == s.renewed {
		s.refresh = ""
	}
	used := s.refresh
	got, err := s.login.login(ctx, used)
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.refused {
			s.refresh = ""
		}
		return grant{}, err
	}
	s.refresh, s.refreshUntil, s.renewed = got.refresh, time.Time{}, ""
	if got.refreshLife > 0 {
		s.refreshUntil = got.started.Add(got.refreshLife)
	}
	if used != "" {
		s.renewed = got.value
	}
	return got.grant, nil
}

// report notes that the store failed. A login does not fail for that.
func (s *session) report(ctx context.Context, err error) {
	if err != nil {
		s.logger.LogAttrs(ctx, slog.LevelWarn, "the token cache failed", slog.String("error", printable(err.Error(), 500)))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
