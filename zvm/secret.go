package zvm

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

const redacted = "[redacted]"

// Secret is text that no print shows: every verb of package fmt, encoding/json and log/slog give "[redacted]". Only
// Reveal returns the text. The zero value is the empty secret.
//
// Package fmt cannot call methods of values in unexported struct fields, so a Secret that is stored in a struct belongs in an
// exported field or behind a pointer. Encoding/json prints map keys without asking: a Secret must not be one.
type Secret string

// Reveal returns the secret text.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// Format prints "[redacted]" for every verb, the numeric and hexadecimal ones included.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON returns "[redacted]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns "[redacted]", for encoders that prefer text.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]" for package log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// shortestScrubbed keeps the scrubber from eating ordinary text: a password of three letters is part of many words, and an echo of
// it proves nothing to anybody.
const shortestScrubbed = 4

// scrubber removes known secrets from text that a server sent, because servers echo what they were sent.
type scrubber struct{ replacer *strings.Replacer }

func newScrubber(secrets ...string) scrubber {
	var pairs []string
	for _, s := range secrets {
		if len(s) < shortestScrubbed {
			continue
		}
		forms := []string{
			s, url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)),
			base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		}
		for _, form := range forms {
			pairs = append(pairs, form, redacted)
		}
	}
	if len(pairs) == 0 {
		return scrubber{}
	}
	return scrubber{replacer: strings.NewReplacer(pairs...)}
}

func (s scrubber) text(t string) string {
	if s.replacer == nil {
		return t
	}
	return s.replacer.Replace(t)
}
