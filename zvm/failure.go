package zvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// answer is a refusal with its body in memory.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// keepAnswer reads the answer and leaves its body readable.
func keepAnswer(resp *http.Response) *answer {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody+scrubMargin))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}
}

func (x *exchange) newError() *Error {
	return &Error{
		Op: x.call.op, Method: x.call.method, Path: x.call.path,
		Attempts: x.count, Elapsed: time.Since(x.started), hint: x.hint, login: x.call.op == opLogin,
	}
}

// describe fills in what the server said.
func (x *exchange) describe(e *Error, a *answer) {
	r := readReason(a.body, x.scrubber())
	e.Status, e.Code, e.Message = a.status, r.code, r.message
	e.RetryAfter = retryAfter(a.header)
	x.quote(e, a.header, a.body)
	e.lost = x.mutates() && (x.reached || answerLost(a.status, r.structured))
}

// quote fills in what is kept of an answer. A secret at the end of the kept part goes as a whole.
func (x *exchange) quote(e *Error, h http.Header, body []byte) {
	e.ContentType = x.scrub(h.Get("Content-Type"))
	kept := x.scrubber().head(string(body[:min(len(body), maxErrorBody+scrubMargin)]), maxErrorBody)
	e.Body = []byte(kept[:min(len(kept), maxErrorBody)])
}

// refused is the error for an answer that is not a 2xx.
func (x *exchange) refused(resp *http.Response) *Error {
	e := x.newError()
	x.describe(e, keepAnswer(resp))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		e.hint = x.clocks
	case resp.StatusCode/100 == 3:
		x.explainRedirect(e, resp)
	}
	return e
}

// explainRedirect says why a redirect ended the call. Of the target only the origin is shown: login pages carry tokens in the query.
func (x *exchange) explainRedirect(e *Error, resp *http.Response) {
	target, err := resp.Location()
	switch {
	case err != nil:
		e.Message = "a redirect without a usable target"
	case originOf(target) != originOf(x.sender.base):
		where := originOf(target)
		if len(x.scrubber().find(target.Host)) > 0 {
			where = redacted // in lower case nothing would find it
		}
		e.Message = "a redirect to " + where + " was not followed"
		e.cause = ErrForeignOrigin
	case x.isRead():
		e.Message = fmt.Sprintf("more than %d redirects", maxRedirects)
	default:
		e.Message = "a redirect was not followed, because only reads follow redirects"
	}
}

// answerLost reports whether a refusal leaves open whether a write was carried out. A 500 with a reason is how the ZVM refuses
// (zvm-wire 9); one without is a server or a proxy that broke down on the way.
func answerLost(status int, structured bool) bool {
	switch status {
	case http.StatusFound, http.StatusSeeOther:
		return true
	case http.StatusInternalServerError:
		return !structured
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status > 500
}

// failed is the error for a call that ended without an answer.
func (x *exchange) failed(ctx context.Context, err error) error {
	e := x.newError()
	e.cause = x.clean(bare(err))
	if ctx.Err() != nil {
		if x.refusal != nil {
			x.describe(e, x.refusal)
		}
		if last := x.sender.trouble.Load(); last != nil && e.Status == 0 {
			e.Message = "no answer yet, last: " + x.scrub(*last)
		}
		e.cause = contextError(ctx)
	} else {
		e.Trust, e.Message = tlsProblem(err)
	}
	e.lost = e.lost || x.mutates() && x.reached
	return e
}

// noToken is the error for a call that did not get a token. What the token endpoint said speaks for itself.
func (x *exchange) noToken(ctx context.Context, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return x.failed(ctx, err)
}

// badAnswer is the error for a 2xx whose body is not what it should be.
func (x *exchange) badAnswer(resp *http.Response, body []byte, err error) error {
	e := x.newError()
	e.Status = resp.StatusCode
	x.quote(e, resp.Header, body)
	e.Message = x.unusableText(e.ContentType, e.Body)
	e.cause = x.clean(err)
	e.lost = x.mutates()
	return e
}

func (x *exchange) unusableText(contentType string, body []byte) string {
	if contentType == "" {
		contentType = "no content type"
	}
	return fmt.Sprintf("the answer (%s) cannot be used: %q", contentType, plainText(body, shownText, x.scrubber()))
}

// senseless is the error for an answer that has the right form and makes no sense.
func (x *exchange) senseless(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: x.call.op, Method: x.call.method, Path: x.call.path, cause: x.clean(bare(err))}
}

// clean returns err, or if it or an error in its chain shows a secret, an error that says and is the same without it.
func (x *exchange) clean(err error) error {
	if !x.shown(err) {
		return err
	}
	says := &scrubbedError{text: x.scrub(err.Error()), is: func(target error) bool { return errors.Is(err, target) }}
	var failed *sendError
	if errors.As(err, &failed) {
		return &sendError{cause: says, unsent: failed.unsent}
	}
	return says
}

// shown reports whether an error shows a secret to anybody who takes it apart.
func (x *exchange) shown(err error) bool {
	if err == nil {
		return false
	}
	if len(x.scrubber().find(err.Error())) > 0 {
		return true
	}
	switch inner := err.(type) { //nolint:errorlint // each error of the chain is looked at by itself
	case interface{ Unwrap() error }:
		return x.shown(inner.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(inner.Unwrap(), x.shown)
	}
	return false
}

// scrubbedError stands for an error that shows a secret. It matches what that one matches and gives nothing of it away.
type scrubbedError struct {
	text string
	is   func(error) bool
}

func (e *scrubbedError) Error() string { return e.text }

func (e *scrubbedError) Is(target error) bool { return e.is(target) }
