package gate

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Question is what a person is asked through a client that carries the question there and the answer back. A yes to one
// question is a yes to no other.
type Question struct {
	// Session names the connection over which it is asked.
	Session string
	// Server and Tool name the tool that waits for the answer.
	Server, Tool string
	// Args are the tool's arguments.
	Args map[string]any
	// Object is what the call would act on, as it was found when the question was asked, such as a VM's id.
	Object string
}

// Why a [Sealer] takes no answer. Nothing may be done on any of them.
var (
	ErrForged       = errors.New("the answer is to no question that was asked here")
	ErrExpired      = errors.New("the answer came too late")
	ErrUsed         = errors.New("the question has been answered before")
	ErrOtherSubject = errors.New("the answer is to another question")
)

// Sealer makes the state that travels with a question through a client, which may be hostile: nobody can read it, make
// it, use it twice, or use it for another question. It is safe for concurrent use.
type Sealer struct {
	aead     cipher.AEAD
	lifetime time.Duration
	now      func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // by nonce, until when it would have been good
}

const (
	sealPrefix   = "zr1."
	sealLifetime = 10 * time.Minute
)

// NewSealer returns a sealer with a key of its own, so that no state outlives the process. A question may be answered for
// lifetime; zero means 10 min. It fails when lifetime is negative.
func NewSealer(lifetime time.Duration) (*Sealer, error) {
	if lifetime < 0 {
		return nil, fmt.Errorf("gate: a question cannot be open for %v", lifetime)
	}
	if lifetime == 0 {
		lifetime = sealLifetime
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return &Sealer{aead: aead, lifetime: lifetime, now: time.Now, used: map[string]time.Time{}}, nil
}

// sealed is what a state holds.
type sealed struct {
	Subject string    `json:"subject"`
	Expires time.Time `json:"expires"`
	Nonce   string    `json:"nonce"`
}

// Seal returns the state that a client has to bring back with the answer.
func (s *Sealer) Seal(q Question) (string, error) {
	subject, err := q.subject()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(sealed{Subject: subject, Expires: s.now().Add(s.lifetime), Nonce: rand.Text()})
	if err != nil {
		return "", fmt.Errorf("gate: %w", err)
	}
	return sealPrefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(sealPrefix))), nil
}

// IsSealed reports whether text looks like a state of a sealer, if not of this one.
func IsSealed(text string) bool { return strings.HasPrefix(text, sealPrefix) }

// Open accepts the state of exactly this question, once. Every error is one of [ErrForged], [ErrExpired], [ErrUsed] and
// [ErrOtherSubject].
func (s *Sealer) Open(state string, q Question) error {
	text, ours := strings.CutPrefix(state, sealPrefix)
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ours || err != nil {
		return ErrForged
	}
	plain, err := s.aead.Open(nil, nil, data, []byte(sealPrefix))
	if err != nil {
		return ErrForged
	}
	var held sealed
	if err := json.Unmarshal(plain, &held); err != nil {
		return ErrForged
	}
	now := s.now()
	if !now.Before(held.Expires) {
		return ErrExpired
	}
	if subject, err := q.subject(); err != nil || subject != held.Subject {
		return ErrOtherSubject
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, expires := range s.used {
		if !now.Before(expires) {
			delete(s.used, nonce)
		}
	}
	if _, used := s.used[held.Nonce]; used {
		return ErrUsed
	}
	s.used[held.Nonce] = held.Expires
	return nil
}

// subject is a digest of everything that a question is about. Names come sorted out of a map, and numbers keep their
// digits.
func (q Question) subject() (string, error) {
	text, err := json.Marshal([]any{q.Session, q.Server, q.Tool, q.Args, q.Object})
	if err != nil {
		return "", fmt.Errorf("gate: the arguments have no JSON form: %w", err)
	}
	sum := sha256.Sum256(text)
	return string(base64.RawURLEncoding.AppendEncode(nil, sum[:])), nil
}
