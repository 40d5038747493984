package zvm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Sentinels for errors.Is. An *Error matches them by what the server answered or by what is known of the request.
var (
	// ErrNotFound: the server does not know the object (404, 410).
	ErrNotFound = errors.New("zvm: not found")
	// ErrUnauthorized: the credentials or the token were refused (401, and every refusal of the token endpoint).
	ErrUnauthorized = errors.New("zvm: unauthorized")
	// ErrForbidden: the user is known and may not do this (403).
	ErrForbidden = errors.New("zvm: forbidden")
	// ErrConflict: the object is in a state that does not allow this (409).
	ErrConflict = errors.New("zvm: conflict")
	// ErrUnavailable: the server cannot be reached or is not ready (429, 502, 503, 504, connection errors). Never true of an error
	// that is ErrOutcomeUnknown, so that "unavailable, try again" cannot send a write twice.
	ErrUnavailable = errors.New("zvm: unavailable")
	// ErrOutcomeUnknown: a write may have been carried out, and its answer was lost. Look for the effect before sending it again.
	ErrOutcomeUnknown = errors.New("zvm: outcome unknown")
	// ErrNoLogin: there is no token endpoint where the base URL, WithRealm and WithTokenPath say (404 of the token endpoint).
	ErrNoLogin = errors.New("zvm: no login at this address")
	// ErrForeignOrigin: a link or a redirect leads away from the configured scheme, host and port. No request was sent there.
	ErrForeignOrigin = errors.New("zvm: the address leads to another origin")
	// ErrSessionPath: a path cannot be one in an FLR session, such as one that holds a backslash (zvm-wire 6.4). No request was sent.
	ErrSessionPath = errors.New("zvm: this cannot be a path in an FLR session")
)

// Error is what went wrong with one call. It holds no secret and no query string.
type Error struct {
	// Op says what was attempted in plain words, for example "insert checkpoint".
	Op string
	// Method and Path are those of the request; Path is without the prefix of the base URL, without query, and "(download link)"
	// instead of a download link.
	Method, Path string
	// Status is the HTTP status of the last answer; 0 when there was none.
	Status int
	// Code is the server's own error code where it sent one, for example Keycloak's "invalid_grant".
	Code string
	// Message is the server's reason in its own words, or what was wrong with its answer. May be empty.
	Message string
	// Trust says by what means the server's certificate can come to be accepted; empty unless it was refused.
	Trust TrustProblem
	// Attempts counts the requests that were tried. 0 when the call ended before the first.
	Attempts int
	// Elapsed is the time from the start of the call to its failure, waits included.
	Elapsed time.Duration
	// RetryAfter is how long the server asked to wait; 0 when it did not ask.
	RetryAfter time.Duration
	// ContentType and Body are those of the last answer. Body holds at most 64 KiB, with known secrets taken out.
	ContentType string
	Body        []byte

	hint    string
	cause   error
	lost    bool // a write that may have been carried out
	login   bool // the token endpoint failed, not the call
	refused bool // the token endpoint refused the credentials
}

// shownPart is how many characters of one part an error's line shows, so that no part hides the others.
const shownPart = 500

// Error returns one line of printable text.
func (e *Error) Error() string {
	line := "zvm"
	for _, part := range e.parts() {
		if part != "" {
			line += ": " + printable(part, shownPart)
		}
	}
	if e.Attempts > 1 {
		line += fmt.Sprintf(" (%d attempts in %s)", e.Attempts, e.Elapsed.Round(time.Millisecond))
	}
	return line
}

func (e *Error) parts() []string {
	var status, cause, wait, lost string
	if e.Status != 0 {
		status = strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	}
	if e.cause != nil {
		cause = e.cause.Error()
	}
	if e.RetryAfter > 0 {
		wait = "the server asks to wait " + e.RetryAfter.String()
	}
	if e.lost {
		lost = "outcome unknown, the request may have been carried out"
	}
	return []string{e.Op, strings.TrimSpace(e.Method + " " + e.Path), status, e.Code, e.Message, cause, wait, e.hint, lost}
}

// Unwrap returns the cause: a context error, a network error, a decoding error, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is matches the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.NotFound()
	case ErrUnauthorized:
		return e.refused || e.Status == http.StatusUnauthorized
	case ErrForbidden:
		return e.Status == http.StatusForbidden
	case ErrNoLogin:
		return e.login && e.Status == http.StatusNotFound
	case ErrConflict:
		return e.Status == http.StatusConflict
	case ErrUnavailable:
		return e.unavailable()
	case ErrOutcomeUnknown:
		return e.lost
	default:
		return false
	}
}

// NotFound reports whether the server does not know the object.
func (e *Error) NotFound() bool {
	if e.login {
		return false // a missing token endpoint says nothing about the object
	}
	return e.Status == http.StatusNotFound || e.Status == http.StatusGone || errors.Is(e.cause, ErrNotFound)
}

// Temporary reports whether the same call may succeed later without anybody changing anything. It is false for a write whose
// outcome is unknown and for a call that ended because its context did.
func (e *Error) Temporary() bool { return e.unavailable() && !endedByContext(e.cause) }

func (e *Error) unavailable() bool {
	if e.lost || e.refused {
		return false
	}
	return retryableStatus(e.Status) || connectionFailed(e.cause)
}

// contextError returns why ctx ended so that both the standard context error and the caller's own cause match errors.Is.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func endedByContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// printable returns at most limit characters of s on one line; what a terminal would obey or hide is escaped.
func printable(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r) && r != unicode.ReplacementChar:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
