package zvm

import (
	"fmt"
	"log/slog"
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
