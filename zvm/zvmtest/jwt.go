package zvmtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"
)

// jwt is a token of a real Keycloak: a signed JSON document.
type jwt struct {
	header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	claims    jwtClaims
	signed    string
	signature []byte
}

// jwtClaims has the claims that decide. An ID token differs from an access
// token in Type alone.
type jwtClaims struct {
	Issuer      string  `json:"iss"`
	Type        string  `json:"typ"`
	Client      string  `json:"azp"`
	Scope       string  `json:"scope"`
	User        string  `json:"preferred_username"`
	Expiry      float64 `json:"exp"`
	NotBefore   float64 `json:"nbf"`
	RealmAccess struct {
		Roles []string `json:"roles"`
	} `json:"realm_access"`
}

var errNoJWT = errors.New("the token is no signed JSON document")

func parseJWT(token string) (jwt, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return jwt{}, errNoJWT
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return jwt{}, errNoJWT
		}
	}
	t := jwt{signed: parts[0] + "." + parts[1], signature: decoded[2]}
	if json.Unmarshal(decoded[0], &t.header) != nil || json.Unmarshal(decoded[1], &t.claims) != nil {
		return jwt{}, errNoJWT
	}
	return t, nil
}

// checkSignature takes the two algorithms below and no other: the key decides
// which, so that a token cannot choose a weaker one.
func (t jwt) checkSignature(key crypto.PublicKey) error {
	hash := sha256.Sum256([]byte(t.signed))
	valid := false
	switch key := key.(type) {
	case *rsa.PublicKey:
		valid = t.header.Algorithm == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], t.signature) == nil
	case *ecdsa.PublicKey:
		valid = t.header.Algorithm == "ES256" && len(t.signature) == 64 &&
			ecdsa.Verify(key, hash[:], new(big.Int).SetBytes(t.signature[:32]), new(big.Int).SetBytes(t.signature[32:]))
	}
	if !valid {
		return errors.New("the token's signature is not the realm's")
	}
	return nil
}

// accessToken gives the token's bearer the most powerful of its roles.
func (c jwtClaims) accessToken() (*accessToken, error) {
	for _, known := range keycloakRoles {
		if slices.Contains(c.RealmAccess.Roles, known.name) {
			return &accessToken{
				account: account{name: c.User, role: known.role},
				openid:  slices.Contains(strings.Fields(c.Scope), "openid"),
				until:   unixSeconds(c.Expiry),
			}, nil
		}
	}
	return nil, errors.New("the token's user has no role here")
}

// unixSeconds reads a NumericDate; an absurd one is a time long past.
func unixSeconds(seconds float64) time.Time {
	const year9999 = 253402300799
	if !(seconds >= 0 && seconds <= year9999) {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * 1000))
}

// keySet holds the realm's issuer and signing keys. Keys are asked for again
// when a token names one that is not here: realms rotate them.
type keySet struct {
	mu     sync.Mutex
	issuer string
	keys   map[string]crypto.PublicKey
}

// unreachableError is a failure to learn the realm's keys, which says nothing
// about the token.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string {
	return "the realm's keys cannot be read: " + e.cause.Error()
}

func (e *unreachableError) Unwrap() error { return e.cause }

// find returns the realm's issuer and the key of that id. get reads a
// document below the realm's address; one caller at a time does so.
func (k *keySet) find(id string, get func(suffix string) ([]byte, error)) (issuer string, key crypto.PublicKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys[id] == nil {
		if err := k.load(get); err != nil {
			return "", nil, &unreachableError{err}
		}
	}
	if k.keys[id] == nil {
		return "", nil, errors.New("the realm has no such key")
	}
	return k.issuer, k.keys[id], nil
}

func (k *keySet) load(get func(suffix string) ([]byte, error)) error {
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	for suffix, into := range map[string]any{
		"/.well-known/openid-configuration": &discovery,
		"/protocol/openid-connect/certs":    &set,
	} {
		body, err := get(suffix)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, into); err != nil {
			return err
		}
	}
	k.issuer, k.keys = discovery.Issuer, map[string]crypto.PublicKey{}
	for _, j := range set.Keys {
		if key := j.publicKey(); key != nil {
			k.keys[j.KeyID] = key
		}
	}
	return nil
}

// jwk is a public key as realms publish it.
type jwk struct {
	KeyID     string `json:"kid"`
	Type      string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	N, E      string // RSA
	Curve     string `json:"crv"`
	X, Y      string // EC
}

// publicKey returns nil for a key that signs nothing we take: realms publish
// encryption keys too.
func (j jwk) publicKey() crypto.PublicKey {
	switch {
	case j.Use != "sig":
		return nil
	case j.Algorithm == "RS256" && j.Type == "RSA":
		n, e := unsigned(j.N), unsigned(j.E)
		if n == nil || e == nil || !e.IsInt64() {
			return nil
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}
	case j.Algorithm == "ES256" && j.Type == "EC" && j.Curve == "P-256":
		x, y := unsigned(j.X), unsigned(j.Y)
		if x == nil || y == nil || x.BitLen() > 256 || y.BitLen() > 256 {
			return nil
		}
		point := append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, point...))
		if err != nil {
			return nil
		}
		return key
	}
	return nil
}

func unsigned(text string) *big.Int {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil
	}
	return new(big.Int).SetBytes(raw)
}
