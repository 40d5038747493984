package zvm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxErrorBody is how much of a refusal's body is kept.
const maxErrorBody = 64 << 10

// maxRedirects is how many redirects a read follows within the origin.
const maxRedirects = 5

// sender is the part of a client that sends: it knows the server and the limits, and no credentials.
type sender struct {
	base      *url.URL
	transport http.RoundTripper // as configured, shared by derived clients
	wire      *wire
	retry     RetryPolicy
	logger    *slog.Logger
	userAgent string
	// trouble is why the last attempt got no answer, nil after one that did. A caller whose time ends while another attempt is
	// waited for says it: the attempts of a login are those of no caller.
	trouble atomic.Pointer[string]
}

func newSender(base *url.URL, transport http.RoundTripper, cfg config) *sender {
	wire := &wire{
		next: transport, proving: provesUnsent(transport), origin: originOf(base),
		headerTimeout: cfg.headerTimeout, idleTimeout: cfg.idleTimeout,
	}
	return &sender{
		base:      base,
		transport: transport,
		wire:      wire,
		retry:     cfg.retry,
		logger:    cfg.logger,
		userAgent: cfg.userAgent,
	}
}

// wire carries one request to the configured origin and nowhere else: it is below the redirects, so no hop escapes it. It bounds the
// time to the headers and every silence of the body, and it is above whatever the transport repeats, so no write leaves twice.
type wire struct {
	next          http.RoundTripper
	proving       bool // see departure
	origin        string
	headerTimeout time.Duration
	idleTimeout   time.Duration
}

// RoundTrip returns answers other than 2xx with their body in memory, so that nobody downstream has to close or bound it.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if originOf(req.URL) != w.origin {
		closeBody(req.Body)
		return nil, ErrForeignOrigin
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.headerTimeout, func() { cancel(errNoHeaders) })
	defer timer.Stop()

	leaving := &departure{write: req.Method != http.MethodGet, proving: w.proving, cancel: cancel}
	resp, err := w.next.RoundTrip(req.WithContext(leaving.trace(ctx)))
	if err == nil && leaving.again.Load() {
		closeBody(resp.Body)
		err = errSentOnce
	}
	if err != nil {
		err = &sendError{cause: endedByUs(ctx, err), unsent: leaving.unsent()}
		cancel(nil)
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		kept, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody+scrubMargin))
		_ = resp.Body.Close()
		dropUnusableTarget(req, resp)
		cancel(nil)
		resp.Body = io.NopCloser(bytes.NewReader(kept))
		return resp, nil
	}
	resp.Body = newIdleBody(ctx, cancel, resp.Body, w.idleTimeout)
	return resp, nil
}

// dropUnusableTarget takes away the target of a redirect that is no URL: net/http would quote it whole, and it may be a download link.
func dropUnusableTarget(req *http.Request, resp *http.Response) {
	if _, err := req.URL.Parse(resp.Header.Get("Location")); err != nil {
		resp.Header.Del("Location")
	}
}

// timeoutError is a limit of this client, not of the caller's context.
type timeoutError string

func (e timeoutError) Error() string { return string(e) }

// Timeout makes it a timeout in the sense of net.Error.
func (timeoutError) Timeout() bool { return true }

const (
	errNoHeaders = timeoutError("no answer within the header timeout")
	errIdle      = timeoutError("the body stopped moving for longer than the idle timeout")
)

// endedByUs replaces the bare cancellation that a limit of ours causes by that limit: the caller's context did not end.
func endedByUs(ctx context.Context, err error) error {
	var limit timeoutError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &limit):
		return limit
	case errors.Is(cause, errSentOnce):
		return errSentOnce
	}
	return err
}

// sendError is a request that got no answer, or not all of one.
type sendError struct {
	cause  error
	unsent bool // proven: no byte of the request left
}

func (e *sendError) Error() string { return e.cause.Error() }

func (e *sendError) Unwrap() error { return e.cause }

// unsent reports whether it is proven that no byte of the request left. Doubt is no.
func unsent(err error) bool {
	var failed *sendError
	return errors.Is(err, ErrForeignOrigin) || errors.As(err, &failed) && failed.unsent
}

// idleBody is a body that fails when a read waits for too long. The time between reads is the reader's own and does not count.
type idleBody struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	timeout time.Duration
	timer   *time.Timer
	close   sync.Once
}

func newIdleBody(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, timeout time.Duration) *idleBody {
	timer := time.AfterFunc(timeout, func() { cancel(errIdle) })
	timer.Stop()
	return &idleBody{ctx: ctx, cancel: cancel, body: body, timeout: timeout, timer: timer}
}

func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	n, err := b.body.Read(p)
	b.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = &sendError{cause: endedByUs(b.ctx, err)}
	}
	return n, err
}

// Close ends the transfer at once. What is left unread is not worth waiting for: bodies that are to be reused are read to the end.
func (b *idleBody) Close() error {
	var err error
	b.close.Do(func() {
		b.timer.Stop()
		err = b.body.Close()
		b.cancel(nil)
	})
	return err
}

func closeBody(body io.Closer) {
	if body != nil {
		_ = body.Close()
	}
}

// originOf returns scheme, host and port in one comparable form.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		switch u.Scheme {
		case "https":
			port = "443"
		case "http":
			port = "80"
		}
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
