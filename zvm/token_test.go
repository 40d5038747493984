package zvm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// countingSource issues MARKER-token-1, -2, ... after delay, each with the same life.
type countingSource struct {
	delay, life time.Duration
	before      func(n int64, rejected Secret) error

	count    atomic.Int64
	inFlight atomic.Int64
	overlap  atomic.Bool
}

func (s *countingSource) acquire(ctx context.Context, rejected Secret) (grant, error) {
	if s.inFlight.Add(1) > 1 {
		s.overlap.Store(true)
	}
	defer s.inFlight.Add(-1)
	n := s.count.Add(1)
	started := time.Now()
	if err := sleep(ctx, s.delay); err != nil {
		return grant{}, err
	}
	if s.before != nil {
		if err := s.before(n, rejected); err != nil {
			return grant{}, err
		}
	}
	return grant{value: Secret(tokenNumber(n)), started: started, life: s.life}, nil
}

func TestCallersShareOneAcquisition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: time.Second, life: time.Minute}
		tk := &tokens{source: src}
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				got, err := tk.get(t.Context(), token{})
				if err != nil || got.value.Reveal() != tokenNumber(1) {
					t.Errorf("got %q, %v", got.value.Reveal(), err)
				}
			})
		}
		wg.Wait()
		if n := src.count.Load(); n != 1 {
			t.Errorf("%d acquisitions, want 1", n)
		}
	})
}

func TestCancelledCallerLeavesTheOthersWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: 10 * time.Second, life: time.Minute}
		tk := &tokens{source: src}
		own := errors.New("the user gave up")
		first, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := tk.get(first, token{})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, own) {
				t.Errorf("the cancelled caller got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := tk.get(t.Context(), token{}); err != nil || got.generation != 1 {
				t.Errorf("the other caller got generation %d, %v", got.generation, err)
			}
		})
		synctest.Wait()
		start := time.Now()
		cancel(own)
		wg.Wait()
		if src.count.Load() != 1 || time.Since(start) != 10*time.Second {
			t.Errorf("%d acquisitions, done after %s", src.count.Load(), time.Since(start))
		}
	})
}

func TestEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := &countingSource{life: time.Minute}
	if _, err := (&tokens{source: src}).get(ctx, token{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if src.count.Load() != 0 {
		t.Error("an acquisition was started")
	}
}

func TestBurstOfRefusalsLeadsToOneRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: time.Second, life: time.Minute}
		tk := &tokens{source: src}
		old, err := tk.get(t.Context(), token{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				_ = sleep(t.Context(), time.Duration(i)*100*time.Millisecond) // some refusals come after the renewal
				got, err := tk.get(t.Context(), old)
				if err != nil || got.generation != 2 {
					t.Errorf("got generation %d, %v", got.generation, err)
				}
			})
		}
		wg.Wait()
		if n := src.count.Load(); n != 2 || src.overlap.Load() {
			t.Errorf("%d acquisitions, overlapping %v", n, src.overlap.Load())
		}
	})
}

func TestResultFromBeforeAnInvalidationIsNotPublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: 5 * time.Second, life: time.Minute}
		tk := &tokens{source: src}
		old, err := tk.get(t.Context(), token{})
		if err != nil {
			t.Fatal(err)
		}
		_ = sleep(t.Context(), 45*time.Second) // within the margin: the next caller renews
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				got, err := tk.get(t.Context(), token{})
				if err != nil || got.generation != 2 || got.value.Reveal() != tokenNumber(3) {
					t.Errorf("got generation %d, %q, %v", got.generation, got.value.Reveal(), err)
				}
			})
		}
		synctest.Wait()
		got, err := tk.get(t.Context(), old) // the server dropped its sessions while the renewal was under way
		if err != nil || got.value.Reveal() != tokenNumber(3) {
			t.Errorf("got %q, %v", got.value.Reveal(), err)
		}
		wg.Wait()
		if src.overlap.Load() {
			t.Error("two acquisitions overlapped")
		}
	})
}

func TestEveryLifeIsUsable(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{time.Hour, time.Minute, 30 * time.Second, 5 * time.Second, time.Second, time.Millisecond, 0, -time.Minute} {
		t.Run(life.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				src := &countingSource{life: life}
				tk := &tokens{source: src}
				for range 1000 {
					got, err := tk.get(t.Context(), token{})
					if err != nil {
						t.Fatal(err)
					}
					if age := time.Since(got.started); age > 0 && age >= life {
						t.Fatalf("a token of age %s was handed out", age)
					}
					_ = sleep(t.Context(), 100*time.Millisecond)
				}
				if life >= time.Second {
					most := int64(100*time.Second/(life-margin(life))) + 2
					if n := src.count.Load(); n > most {
						t.Errorf("%d acquisitions in 100 s, want at most %d", n, most)
					}
				}
			})
		})
	}
}

func TestSlowLoginStillServesItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: 2 * time.Second, life: time.Second}
		got, err := (&tokens{source: src}).get(t.Context(), token{})
		if err != nil || got.value.Reveal() != tokenNumber(1) || src.count.Load() != 1 {
			t.Errorf("got %q, %v after %d acquisitions", got.value.Reveal(), err, src.count.Load())
		}
	})
}

func TestFailureIsNotRemembered(t *testing.T) {
	t.Parallel()
	src := &countingSource{life: time.Minute, before: func(n int64, _ Secret) error {
		if n == 1 {
			return errors.New("the network is down")
		}
		return nil
	}}
	tk := &tokens{source: src}
	if _, err := tk.get(t.Context(), token{}); err == nil {
		t.Fatal("no error")
	}
	if _, err := tk.get(t.Context(), token{}); err != nil {
		t.Errorf("the second caller got %v", err)
	}
}

func TestRefusedCredentialsAreRememberedBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{life: time.Minute, before: func(int64, Secret) error { return &Error{Op: opLogin, Status: 401, refused: true} }}
		tk := &tokens{source: src}
		for range 100 {
			if _, err := tk.get(t.Context(), token{}); !errors.Is(err, ErrUnauthorized) {
				t.Fatalf("got %v", err)
			}
		}
		if n := src.count.Load(); n != 1 {
			t.Errorf("%d acquisitions, want 1", n)
		}
		_ = sleep(t.Context(), refusalMemory)
		_, _ = tk.get(t.Context(), token{})
		if n := src.count.Load(); n != 2 {
			t.Errorf("%d acquisitions after the memory ended, want 2", n)
		}
	})
}

func TestBrokenSourceLeavesNobodyHanging(t *testing.T) {
	t.Parallel()
	for name, breakDown := range map[string]func(){
		"panic":  func() { panic("MARKER-panic") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := &countingSource{delay: 10 * time.Millisecond, life: time.Minute}
			src.before = func(n int64, _ Secret) error {
				if n == 1 {
					breakDown()
				}
				return nil
			}
			tk := &tokens{source: src}
			var failures atomic.Int64
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if _, err := tk.get(t.Context(), token{}); err != nil {
						failures.Add(1)
						wantNoMarker(t, "the error", err.Error())
					}
				})
			}
			wg.Wait()
			if failures.Load() == 0 {
				t.Error("nobody was told")
			}
			if _, err := tk.get(t.Context(), token{}); err != nil {
				t.Errorf("the next caller got %v", err)
			}
		})
	}
}

func TestAcquisitionHasALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &countingSource{delay: time.Hour, life: time.Minute}
		start := time.Now()
		_, err := (&tokens{source: src}).get(t.Context(), token{})
		if err == nil || time.Since(start) != acquireLimit {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("the limit looks like the end of the caller's context")
		}
	})
}

// talkingSource is a TokenSource that is told of rejected tokens.
type talkingSource struct {
	mu     sync.Mutex
	events []string
	n      int
	expiry time.Duration
}

func (s *talkingSource) Token(context.Context) (Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.events = append(s.events, fmt.Sprint("issue ", s.n))
	tok := Token{Value: Secret(fmt.Sprint("MARKER-", s.n))}
	if s.expiry != 0 {
		tok.Expiry = time.Now().Add(s.expiry)
	}
	return tok, nil
}

func (s *talkingSource) Reject(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, "reject "+t.Value.Reveal())
}

func TestForeignSourceIsToldOfRejectedTokens(t *testing.T) {
	t.Parallel()
	src := &talkingSource{expiry: time.Hour}
	tk := &tokens{source: &foreignSource{src: src}}
	first, err := tk.get(t.Context(), token{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := tk.get(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"issue 1", "reject MARKER-1", "issue 2"}, src.events); diff != "" {
		t.Errorf("events mismatch (-want +got):\n%s", diff)
	}
}

func TestForeignSourceWithBadToken(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "MARKER two", "MARKER\r\nX-Evil: 1", "MARKER-é"} {
		tk := &tokens{source: &foreignSource{src: &staticSource{bad}}}
		_, err := tk.get(t.Context(), token{})
		if err == nil {
			t.Errorf("%q was accepted", bad)
			continue
		}
		wantNoMarker(t, "the error", err.Error())
	}
}
