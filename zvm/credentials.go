package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Credentials prove to a ZVM who calls it. Password, ClientCredentials and Tokens make them; there is no other implementation.
// No print of a Credentials value shows a secret.
type Credentials interface {
	source(endpoint) (tokenSource, error)
}

// Token is one bearer token.
type Token struct {
	// Value is the token itself, without the word "Bearer".
	Value Secret
	// Expiry is the moment from which the server refuses the token. The zero value means unknown: the token is then used for
	// a short while and asked for again.
	Expiry time.Time
}

// TokenSource hands out bearer tokens that something else obtained, for example a host program that already talks to the ZVM.
// Token is never called twice at the same time by one client. Its context outlives the call that wanted the token and ends after
// 30 seconds.
//
// A source that also has a method Reject(Token) is told of every token that the ZVM refused with a 401 before it is asked for
// another.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// Password returns the credentials of a user of the ZVM's Keycloak realm: the password grant, renewed by its refresh token while
// that works (zvm-wire 1.2, 1.4).
func Password(user, secret string) Credentials {
	return &identity{kind: "Password", name: user, secret: &secret, make: newPasswordGrant}
}

// ClientCredentials returns the credentials of a confidential Keycloak client with a service account: the client-credentials grant
// (zvm-wire 1.2). WithClientID does not apply to them.
func ClientCredentials(clientID, secret string) Credentials {
	return &identity{kind: "ClientCredentials", name: clientID, secret: &secret, make: newClientGrant}
}

// Tokens returns credentials that take their tokens from src.
func Tokens(src TokenSource) Credentials {
	return &identity{kind: "Tokens", name: fmt.Sprintf("%T", src), make: func(endpoint, *identity) (tokenSource, error) {
		if src == nil {
			return nil, errors.New("zvm: the token source is nil")
		}
		return &foreignSource{src: src}, nil
	}}
}

// identity is the one implementation of Credentials. The secret sits behind a pointer: package fmt prints nested pointers as
// addresses even where it cannot call Format, inside unexported fields of other people's structs.
type identity struct {
	kind   string
	name   string
	secret *string
	make   func(endpoint, *identity) (tokenSource, error)
}

func (id *identity) source(e endpoint) (tokenSource, error) { return id.make(e, id) }

func (id *identity) reveal() string {
	if id.secret == nil {
		return ""
	}
	return *id.secret
}

// String names the kind of credentials and the user, never the secret.
func (id *identity) String() string { return fmt.Sprintf("zvm.%s(%q)", id.kind, id.name) }

// GoString is String.
func (id *identity) GoString() string { return id.String() }

// Format prints String for every verb.
func (id *identity) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(id.String())) }

// MarshalJSON returns String as a JSON string.
func (id *identity) MarshalJSON() ([]byte, error) { return json.Marshal(id.String()) }

// LogValue returns String for package log/slog.
func (id *identity) LogValue() slog.Value { return slog.StringValue(id.String()) }

// foreignSource adapts a TokenSource.
type foreignSource struct{ src TokenSource }

func (f *foreignSource) acquire(ctx context.Context, rejected Secret) (grant, error) {
	if r, ok := f.src.(interface{ Reject(Token) }); ok && rejected != "" {
		r.Reject(Token{Value: rejected})
	}
	started := time.Now()
	tok, err := f.src.Token(ctx)
	if err != nil {
		return grant{}, fmt.Errorf("zvm: token source: %w", err)
	}
	if err := checkBearer(tok.Value); err != nil {
		return grant{}, fmt.Errorf("zvm: token source: %w", err)
	}
	life := unknownLife
	if !tok.Expiry.IsZero() {
		life = time.Until(tok.Expiry)
	}
	return grant{value: tok.Value, started: started, life: life}, nil
}
