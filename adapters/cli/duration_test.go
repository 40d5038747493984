package cli

import (
	"testing"
	"time"
)

func TestDurationsTakeDaysAndWeeks(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour,
		"9999w9999d": (7*9999 + 9999) * day,
	} {
		var s span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%q gives %v, %v, want %v", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "7", "d", "2d1w", "1.5d", "-1s", "-1d", "1d-1s", "99999d", "soon", "9999w2562047h"} {
		var s span
		if err := s.Set(text); err == nil {
			t.Errorf("%q gives %v", text, time.Duration(s))
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0", 30 * time.Second: "30s", 5 * time.Minute: "5m", 2 * time.Hour: "2h", 10 * time.Hour: "10h", 90 * time.Minute: "1h30m",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v is written as %s, want %s", d, got, want)
		}
	}
}

func FuzzSpan(f *testing.F) {
	for _, seed := range []string{"7d", "1w2d3h", "-1s", "9999w9999d", "0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again span
		if s.Set(text) != nil {
			return
		}
		if s < 0 {
			t.Errorf("%q gives %v", text, time.Duration(s))
		}
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is written as %s, which gives %v, %v", text, s.String(), time.Duration(again), err)
		}
	})
}
