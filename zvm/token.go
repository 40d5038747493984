package zvm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// acquireLimit bounds one acquisition, which runs on behalf of all callers and so on no caller's context.
	acquireLimit = 30 * time.Second
	// refusalMemory is how long refused credentials are not tried again: long enough for parallel callers to share one refusal,
	// short enough that a corrected account works at once. Every further try counts towards a lock-out (zvm-wire 1.5).
	refusalMemory = 2 * time.Second
	// unknownLife is the life of a token whose end the server did not tell. A 401 renews it if that was too long.
	unknownLife = 30 * time.Second
	// longestLife bounds what a server may claim.
	longestLife = 24 * time.Hour
	// youngAge: a token refused at this age was probably not yet valid by the server's clock (one second is enough for that).
	youngAge = 2 * time.Second
)

// grant is a token as a source delivers it. Its life counts from the start of the request for it, on the monotonic clock:
// neither clock jumps nor clock differences matter, and the time on the way is on the safe side.
type grant struct {
	value   Secret
	started time.Time
	life    time.Duration
}

// tokenSource obtains tokens. acquire is never called twice at the same time. rejected is the token that the server refused last,
// or empty; a source must not deliver it again from a store.
type tokenSource interface {
	acquire(ctx context.Context, rejected Secret) (grant, error)
}

// token is a grant in use. Generations only grow; 0 is no token.
type token struct {
	value      Secret
	generation uint64
	started    time.Time
	goodUntil  time.Time
}

func (t token) usable(now time.Time) bool { return t.generation != 0 && now.Before(t.goodUntil) }

// margin is how long before its end a token is renewed. It scales with the life so that even a token of one second is used.
func margin(life time.Duration) time.Duration { return min(30*time.Second, life/3) }

// tokens is the one place where a client obtains, keeps and drops its token.
type tokens struct {
	source tokenSource

	mu           sync.Mutex
	current      token
	generation   uint64
	invalidation uint64 // counts dropped tokens; a flight that began under an older count is not published
	rejected     Secret
	flight       *flight
	refusal      error
	refusedUntil time.Time

	accepted atomic.Uint64 // a generation that the server has accepted
}

// flight is one acquisition that all callers wait for. Its fields are written before done is closed and never after.
type flight struct {
	done         chan struct{}
	invalidation uint64
	published    bool
	token        token
	err          error
}

// get returns a token that is not the rejected one. A caller whose context ends stops waiting; the acquisition goes on for
// the others.
func (t *tokens) get(ctx context.Context, rejected token) (token, error) {
	if ctx.Err() != nil {
		return token{}, contextError(ctx)
	}
	t.drop(rejected)
	for {
		f, tok, err := t.join(ctx)
		if f == nil {
			return tok, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return token{}, contextError(ctx)
		}
		switch {
		case f.err != nil:
			return token{}, f.err
		case f.published:
			return f.token, nil
		}
	}
}

// accept notes that the server took the token.
func (t *tokens) accept(tok token) { t.accepted.Store(tok.generation) }

// premature reports whether a refused token may have been refused for being too new: it is young, and no call got through with it.
func (t *tokens) premature(tok token) bool {
	return time.Since(tok.started) < youngAge && t.accepted.Load() != tok.generation
}

// drop forgets the rejected token if it is still the current one: a late 401 for an older token changes nothing.
func (t *tokens) drop(rejected token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rejected.generation == 0 || t.current.generation != rejected.generation {
		return
	}
	t.current = token{}
	t.rejected = rejected.value
	t.invalidation++
}

// join returns the current token, the remembered refusal, or the flight to wait for.
func (t *tokens) join(ctx context.Context) (*flight, token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.current.usable(now) {
		return nil, t.current, nil
	}
	if t.flight != nil {
		return t.flight, token{}, nil
	}
	if t.refusal != nil && now.Before(t.refusedUntil) {
		return nil, token{}, t.refusal
	}
	t.flight = &flight{done: make(chan struct{}), invalidation: t.invalidation}
	go t.fly(context.WithoutCancel(ctx), t.flight, t.rejected)
	return t.flight, token{}, nil
}

// fly runs one acquisition. Whatever the source does, the flight lands and the next caller can start another.
func (t *tokens) fly(ctx context.Context, f *flight, rejected Secret) {
	var got grant
	err := errors.New("zvm: the token source ended without an answer")
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("zvm: the token source failed: panic of type %T", r)
		}
		t.land(f, got, err)
	}()
	ctx, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	got, err = t.source.acquire(ctx, rejected)
	if err != nil && ctx.Err() != nil {
		// Without this it would look as if a caller's own context had ended.
		err = &Error{Op: opLogin, login: true, cause: &sendError{cause: errNoToken}}
	}
}

const errNoToken = timeoutError("no token within 30 seconds")

func (t *tokens) land(f *flight, got grant, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(f.done)
	t.flight = nil
	t.refusal = nil
	if err != nil {
		f.err = err
		var e *Error
		if errors.As(err, &e) && e.refused {
			t.refusal, t.refusedUntil = err, time.Now().Add(refusalMemory)
		}
		return
	}
	if f.invalidation != t.invalidation {
		return
	}
	t.generation++
	life := min(got.life, longestLife)
	t.current = token{
		value:      got.value,
		generation: t.generation,
		started:    got.started,
		goodUntil:  got.started.Add(life - margin(life)),
	}
	f.token, f.published = t.current, true
}

// checkBearer refuses what cannot stand in an Authorization header.
func checkBearer(value Secret) error {
	if value == "" {
		return errors.New("the token is empty")
	}
	for _, r := range value.Reveal() {
		if r <= ' ' || r > '~' {
			return errors.New("the token holds characters that no bearer token has")
		}
	}
	return nil
}
