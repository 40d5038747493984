package zvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestErrorMatchesSentinels(t *testing.T) {
	t.Parallel()
	all := []error{ErrNotFound, ErrUnauthorized, ErrForbidden, ErrConflict, ErrUnavailable, ErrOutcomeUnknown}
	broken := &sendError{cause: io.ErrUnexpectedEOF}
	for name, tc := range map[string]struct {
		err  Error
		want []error
	}{
		"404":                   {Error{Status: 404}, []error{ErrNotFound}},
		"410":                   {Error{Status: 410}, []error{ErrNotFound}},
		"404 of the login":      {Error{Status: 404, login: true}, nil},
		"not in the answer":     {Error{cause: ErrNotFound}, []error{ErrNotFound}},
		"401":                   {Error{Status: 401}, []error{ErrUnauthorized}},
		"400 of the login":      {Error{Status: 400, refused: true}, []error{ErrUnauthorized}},
		"403":                   {Error{Status: 403}, []error{ErrForbidden}},
		"409":                   {Error{Status: 409}, []error{ErrConflict}},
		"429":                   {Error{Status: 429}, []error{ErrUnavailable}},
		"503":                   {Error{Status: 503}, []error{ErrUnavailable}},
		"503 to a write":        {Error{Status: 503, lost: true}, []error{ErrOutcomeUnknown}},
		"500":                   {Error{Status: 500}, nil},
		"connection":            {Error{cause: broken}, []error{ErrUnavailable}},
		"connection of a write": {Error{cause: broken, lost: true}, []error{ErrOutcomeUnknown}},
		"context":               {Error{cause: context.Canceled}, nil},
		"context after 503":     {Error{Status: 503, cause: context.Canceled}, []error{ErrUnavailable}},
	} {
		for _, sentinel := range all {
			want := false
			for _, w := range tc.want {
				want = want || errors.Is(w, sentinel)
			}
			if got := errors.Is(fmt.Errorf("wrapped: %w", &tc.err), sentinel); got != want {
				t.Errorf("%s: errors.Is(%v) is %v", name, sentinel, got)
			}
		}
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  Error
		want bool
	}{
		"503":             {Error{Status: 503}, true},
		"503, lost":       {Error{Status: 503, lost: true}, false},
		"503, then ended": {Error{Status: 503, cause: context.DeadlineExceeded}, false},
		"connection":      {Error{cause: &sendError{cause: io.EOF}}, true},
		"header timeout":  {Error{cause: &sendError{cause: errNoHeaders}}, true},
		"foreign origin":  {Error{cause: &sendError{cause: ErrForeignOrigin}}, false},
		"bad form":        {Error{Status: 200, cause: errMarkup}, false},
		"401":             {Error{Status: 401}, false},
		"refused login":   {Error{Status: 503, refused: true}, false},
	} {
		if got := tc.err.Temporary(); got != tc.want {
			t.Errorf("%s: temporary is %v", name, got)
		}
	}
}

func TestErrorIsOnePrintableLine(t *testing.T) {
	t.Parallel()
	e := &Error{
		Op: "MakeThing", Method: "POST", Path: "/v1/things", Status: 500, Code: "50",
		Message: "first\nsecond\x1b[31m\u202e\x00" + strings.Repeat("long ", 1000), Attempts: 3, Elapsed: 1500 * time.Millisecond,
		cause: errors.New("line\r\nbreak"), lost: true,
	}
	got := e.Error()
	if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("not printable: %q", got)
	}
	if !strings.HasPrefix(got, `zvm: MakeThing: POST /v1/things: 500 Internal Server Error: 50: first second\u001b[31m\u202e\u0000long `) {
		t.Errorf("text begins %q", got[:120])
	}
	for _, want := range []string{"line  break", "outcome unknown", "(3 attempts in 1.5s)"} {
		if !strings.Contains(got, want) {
			t.Errorf("a long message hides %q: %s", want, got[len(got)-200:])
		}
	}
	if len(got) > 3000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestErrorsOfAnswersKeepTheirCause(t *testing.T) {
	t.Parallel()
	inner := &Error{Op: "Inner", Status: 404}
	x := &exchange{call: getCall()}
	if got := asError(t, x.senseless(inner)); got != inner {
		t.Errorf("an *Error was wrapped in another: %v", got)
	}
	cause := errors.New("no id")
	err := x.senseless(cause)
	if !errors.Is(err, cause) || errors.Is(err, ErrOutcomeUnknown) || asError(t, err).Op != "GetThing" {
		t.Errorf("error is %v", err)
	}
}
