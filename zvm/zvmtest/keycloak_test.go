package zvmtest_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// realm is a Keycloak as far as a simulator can tell: it publishes keys and
// signs whatever a test claims.
type realm struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	keys     map[string]any
	fetches  int
	lastForm *http.Request
	lastBody string
}

var testKeys = sync.OnceValue(func() (keys struct {
	rsa, otherRSA *rsa.PrivateKey
	ec            *ecdsa.PrivateKey
},
) {
	var errs [3]error
	keys.rsa, errs[0] = rsa.GenerateKey(rand.Reader, 2048)
	keys.otherRSA, errs[1] = rsa.GenerateKey(rand.Reader, 2048)
	keys.ec, errs[2] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
	return keys
})

func newRealm(t *testing.T) *realm {
	t.Helper()
	r := &realm{t: t, keys: map[string]any{"rsa": testKeys().rsa, "ec": testKeys().ec}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/realms/zerto/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"issuer":"https://issuer.example.com"}`)
	})
	mux.HandleFunc("GET /auth/realms/zerto/protocol/openid-connect/certs", r.serveKeys)
	mux.HandleFunc("POST /auth/realms/zerto/protocol/openid-connect/token", func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.lastForm, r.lastBody = req, string(body)
		r.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
	})
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

func (r *realm) serveKeys(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetches++
	encode := base64.RawURLEncoding.EncodeToString
	published := []map[string]string{
		{"kid": "broken", "kty": "RSA", "alg": "RS256", "use": "sig", "n": "!", "e": ""},
		{"kid": "off curve", "kty": "EC", "alg": "ES256", "use": "sig", "crv": "P-256", "x": "AQ", "y": "AQ"},
	}
	for id, key := range r.keys {
		switch key := key.(type) {
		case *rsa.PrivateKey:
			n, e := encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
			published = append(published,
				map[string]string{"kid": id, "kty": "RSA", "alg": "RS256", "use": "sig", "n": n, "e": e},
				map[string]string{"kid": id + " for encryption", "kty": "RSA", "alg": "RSA-OAEP", "use": "enc", "n": n, "e": e})
		case *ecdsa.PrivateKey:
			point, err := key.PublicKey.Bytes()
			if err != nil {
				r.t.Error(err)
			}
			published = append(published, map[string]string{
				"kid": id, "kty": "EC", "alg": "ES256", "use": "sig", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:]),
			})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": published})
}

func (r *realm) replaceKey(old, id string, key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, old)
	r.keys[id] = key
}

func (r *realm) keyFetches() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetches
}

func (r *realm) start(t *testing.T, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	return start(t, append(opts, zvmtest.WithKeycloak(r.URL+"/auth", "zerto", "rewind-service"))...)
}

// claims are those of a good token, with some replaced.
func claims(replaced map[string]any) map[string]any {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC).Unix() // the clock of start
	c := map[string]any{
		"iss": "https://issuer.example.com", "typ": "Bearer", "azp": "zerto-client", "scope": "openid profile",
		"preferred_username": "somebody", "iat": now, "exp": now + 60, "realm_access": map[string]any{"roles": []string{"admin", "offline_access"}},
	}
	maps.Copy(c, replaced)
	return c
}

func sign(t *testing.T, algorithm, keyID string, key any, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(map[string]string{"alg": algorithm, "kid": keyID}) + "." + part(claims)
	hash := sha256.Sum256([]byte(signed))
	var signature []byte
	var err error
	switch key := key.(type) {
	case *rsa.PrivateKey:
		signature, err = rsa.SignPKCS1v15(nil, key, crypto.SHA256, hash[:])
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		r, s, err = ecdsa.Sign(rand.Reader, key, hash[:])
		if err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	case []byte:
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(signed))
		signature = mac.Sum(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestKeycloakTokens(t *testing.T) {
	t.Parallel()
	keys := testKeys()
	good := func(replaced map[string]any) string { return sign(t, "RS256", "rsa", keys.rsa, claims(replaced)) }
	roles := func(names ...string) map[string]any {
		return map[string]any{"realm_access": map[string]any{"roles": names}}
	}
	past, future := claims(nil)["iat"].(int64)-1, claims(nil)["iat"].(int64)+1
	payload := strings.Split(good(nil), ".")
	for name, tc := range map[string]struct {
		token       string
		read, write int
	}{
		"admin, RS256":                      {good(nil), 200, 404},
		"admin, ES256":                      {sign(t, "ES256", "ec", keys.ec, claims(nil)), 200, 404},
		"admin and viewer":                  {good(roles("viewer", "admin")), 200, 404},
		"viewer":                            {good(roles("viewer")), 200, 403},
		"further client":                    {good(map[string]any{"azp": "rewind-service"}), 200, 404},
		"nbf now":                           {good(map[string]any{"nbf": past + 1}), 200, 404},
		"exp with a fraction":               {good(map[string]any{"exp": float64(past) + 1.5}), 200, 404},
		"no role":                           {good(roles("offline_access")), 401, 401},
		"no scope openid":                   {good(map[string]any{"scope": "profile openid2"}), 401, 401},
		"other issuer":                      {good(map[string]any{"iss": "https://issuer.example.com/"}), 401, 401},
		"other client":                      {good(map[string]any{"azp": "account"}), 401, 401},
		"no client":                         {good(map[string]any{"azp": nil}), 401, 401},
		"ID token":                          {good(map[string]any{"typ": "ID"}), 401, 401},
		"expired":                           {good(map[string]any{"exp": past}), 401, 401},
		"expires now":                       {good(map[string]any{"exp": past + 1}), 401, 401},
		"without expiry":                    {good(map[string]any{"exp": nil}), 401, 401},
		"absurd expiry":                     {good(map[string]any{"exp": 1e300}), 401, 401},
		"not yet valid":                     {good(map[string]any{"nbf": future}), 401, 401},
		"signed by another key":             {sign(t, "RS256", "rsa", keys.otherRSA, claims(nil)), 401, 401},
		"unknown key":                       {sign(t, "RS256", "?", keys.rsa, claims(nil)), 401, 401},
		"encryption key":                    {sign(t, "RS256", "rsa for encryption", keys.rsa, claims(nil)), 401, 401},
		"broken key":                        {sign(t, "RS256", "broken", keys.rsa, claims(nil)), 401, 401},
		"key off its curve":                 {sign(t, "ES256", "off curve", keys.ec, claims(nil)), 401, 401},
		"algorithm of another key":          {sign(t, "ES256", "rsa", keys.rsa, claims(nil)), 401, 401},
		"algorithm none":                    {sign(t, "none", "rsa", nil, claims(nil)), 401, 401},
		"public key as the secret of HS256": {sign(t, "HS256", "rsa", keys.rsa.N.Bytes(), claims(nil)), 401, 401},
		"unsigned":                          {payload[0] + "." + payload[1] + ".", 401, 401},
		"payload of another token":          {payload[0] + "." + strings.Split(good(roles("admin", "x")), ".")[1] + "." + payload[2], 401, 401},
		"four parts":                        {good(nil) + ".x", 401, 401},
		"no JWT":                            {"MARKER-x", 401, 401},
		"empty":                             {"", 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, newRealm(t).start(t))
			c.token = tc.token
			got := []int{c.get("/v1/vpgs").status, c.post("/v1/vpgs/x/checkpoints", `{"checkpointName":"x"}`).status}
			if diff := cmp.Diff([]int{tc.read, tc.write}, got); diff != "" {
				t.Errorf("statuses of a read and a write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeycloakTokenExpiresAndIsRevoked(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	s := r.start(t)
	c := newClient(t, s)
	var got []int
	look := func() { got = append(got, c.get("/v1/vms").status) }

	c.token = sign(t, "RS256", "rsa", testKeys().rsa, claims(nil))
	look()
	s.Advance(time.Minute)
	look()
	c.token = sign(t, "RS256", "rsa", testKeys().rsa, claims(map[string]any{"exp": claims(nil)["iat"].(int64) + 600}))
	look()
	s.RevokeTokens()
	look()
	look()
	if want := []int{200, 401, 200, 401, 401}; !slices.Equal(got, want) {
		t.Errorf("statuses = %v, want %v", got, want)
	}
	if n := r.keyFetches(); n != 1 {
		t.Errorf("%d requests for the keys, want 1", n)
	}
}

func TestKeycloakRotatesItsKeys(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	c := newClient(t, r.start(t))
	c.token = sign(t, "RS256", "rsa", testKeys().rsa, claims(nil))
	if a := c.get("/v1/vms"); a.status != http.StatusOK {
		t.Fatalf("first key: %d", a.status)
	}
	r.replaceKey("rsa", "next", testKeys().otherRSA)
	c.token = sign(t, "RS256", "next", testKeys().otherRSA, claims(nil))
	if a := c.get("/v1/vms"); a.status != http.StatusOK {
		t.Errorf("next key: %d", a.status)
	}
	c.token = sign(t, "RS256", "rsa", testKeys().rsa, claims(map[string]any{"jti": "another"}))
	if a := c.get("/v1/vms"); a.status != http.StatusUnauthorized {
		t.Errorf("withdrawn key: %d", a.status)
	}
}

func TestKeycloakAnswersTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	s := r.start(t)
	c := newClient(t, s)
	form := passwordForm("somebody", "MARKER-x", "openid")
	a := c.grant(form)
	if a.status != http.StatusBadRequest || a.body != `{"error":"invalid_grant"}` || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("answer = %d %s %q", a.status, a.header.Get("Content-Type"), a.body)
	}
	got, err := url.ParseQuery(r.lastBody)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(form, got); diff != "" {
		t.Errorf("form (-want +got):\n%s", diff)
	}
	forwarded := r.lastForm.Header.Get("X-Forwarded-Proto") + "://" + r.lastForm.Header.Get("X-Forwarded-Host")
	if forwarded != s.URL() {
		t.Errorf("forwarded for %s, want %s", forwarded, s.URL())
	}
	if a := c.get("/auth/realms/zerto/.well-known/openid-configuration"); !strings.Contains(a.body, "issuer.example.com") {
		t.Errorf("discovery = %d %s", a.status, a.body)
	}
	if a := c.get("/auth/realms/master/.well-known/openid-configuration"); a.status != http.StatusNotFound {
		t.Errorf("discovery of another realm = %d", a.status)
	}
	if s.TokenRequests() != 1 || strings.Contains(s.Requests()[0].Body, "MARKER") {
		t.Errorf("log = %+v", s.Requests())
	}
}

func TestKeycloakOutOfReachIsAProblem(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	s, err := zvmtest.New(zvmtest.WithKeycloak(r.URL, "zerto")) // without /auth: there are no such documents
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := newClient(t, s)
	c.token = sign(t, "RS256", "rsa", testKeys().rsa, claims(nil))
	if a := c.get("/v1/vms"); a.status != http.StatusUnauthorized {
		t.Errorf("call = %d", a.status)
	}
	if p := s.Problems(); len(p) != 1 || !strings.Contains(p[0], "404") {
		t.Errorf("problems = %q", p)
	}
	r.Close()
	if a := c.grant(passwordForm("somebody", "MARKER-x", "openid")); a.status != http.StatusBadGateway {
		t.Errorf("login = %d", a.status)
	}
}

func TestKeycloakOptionIsChecked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ base, realm string }{
		{"", "zerto"},
		{"127.0.0.1:8080", "zerto"},
		{"ftp://127.0.0.1", "zerto"},
		{"http://user:MARKER-x@127.0.0.1", "zerto"},
		{"http://127.0.0.1/auth?x=1", "zerto"},
		{"http://127.0.0.1/auth", ""},
		{"http://127.0.0.1/auth", "a/b"},
	} {
		if s, err := zvmtest.New(zvmtest.WithKeycloak(tc.base, tc.realm)); err == nil || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%q, %q: %v", tc.base, tc.realm, err)
			if err == nil {
				s.Close()
			}
		}
	}
}
