package gate

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func asked() Question {
	return Question{
		Session: "s1", Server: "ssh-mcp", Tool: "run", Object: "vm-38",
		Args: map[string]any{"host": "web01", "n": json.Number("9007199254740993")},
	}
}

func newSealed(t *testing.T) (*Sealer, string) {
	t.Helper()
	s, err := NewSealer(0)
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.Seal(asked())
	if err != nil {
		t.Fatal(err)
	}
	return s, state
}

func TestAnAnswerIsTakenOnce(t *testing.T) {
	t.Parallel()
	s, state := newSealed(t)
	var taken atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch err := s.Open(state, asked()); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, ErrUsed):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1 {
		t.Errorf("taken %d times", taken.Load())
	}
}

func TestAnAnswerToAnotherQuestionIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Question){
		"session":  func(q *Question) { q.Session = "s2" },
		"server":   func(q *Question) { q.Server = "ssh" },
		"tool":     func(q *Question) { q.Tool = "rm" },
		"argument": func(q *Question) { q.Args["host"] = "db01" },
		"digit":    func(q *Question) { q.Args["n"] = json.Number("9007199254740992") },
		"none":     func(q *Question) { q.Args = nil },
		"object":   func(q *Question) { q.Object = "vm-39" },
	} {
		s, state := newSealed(t)
		other := asked()
		change(&other)
		if err := s.Open(state, other); !errors.Is(err, ErrOtherSubject) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := s.Open(state, asked()); err != nil {
			t.Errorf("%s: the right answer no longer counts: %v", name, err)
		}
	}
}

func TestAForgedAnswerIsRefused(t *testing.T) {
	t.Parallel()
	s, state := newSealed(t)
	_, foreign := newSealed(t)
	altered := []byte(state)
	altered[len(altered)/2] ^= 1
	for _, forged := range []string{"", "forged", sealPrefix, sealPrefix + "AAAA", state[:len(state)-1], state + "A", string(altered), foreign, strings.TrimPrefix(state, sealPrefix)} {
		if err := s.Open(forged, asked()); !errors.Is(err, ErrForged) {
			t.Errorf("%q: got %v", forged, err)
		}
	}
}

func TestALateAnswerIsRefused(t *testing.T) {
	t.Parallel()
	s, state := newSealed(t)
	s.now = func() time.Time { return time.Now().Add(sealLifetime) }
	if err := s.Open(state, asked()); !errors.Is(err, ErrExpired) {
		t.Errorf("got %v", err)
	}
}

func TestAStateShowsNothing(t *testing.T) {
	t.Parallel()
	_, state := newSealed(t)
	if strings.Contains(state, "web01") || strings.Contains(state, "vm-38") {
		t.Error(state)
	}
}
