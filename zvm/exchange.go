package zvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// exchange is one call under way: the request, and what its attempts have shown so far. It belongs to one goroutine.
type exchange struct {
	sender  *sender
	call    call
	target  string
	body    []byte
	header  http.Header
	consume func(*http.Response) error // reads a 2xx body within the attempt
	secrets []string                   // to be taken out of whatever the server says
	scrubs  scrubber                   // made of the secrets, when it is needed

	started      time.Time
	count        int // attempts of the call
	round        int // attempts with the present token
	attemptStart time.Time
	observed     bool
	pause        time.Duration
	hint         string
	clocks       string  // explains a second 401
	reached      bool    // an attempt may have reached the server and got no answer
	refusal      *answer // the last answer that called for another attempt
}

func (s *sender) exchange(cl call) (*exchange, error) {
	x := &exchange{sender: s, call: cl, header: http.Header{}, started: time.Now()}
	x.target = s.base.String() + cl.path
	if len(cl.query) > 0 {
		x.target += "?" + cl.query.Encode()
	}
	x.header.Set("Accept", "application/json")
	x.header.Set("User-Agent", s.userAgent)
	if cl.body != nil || cl.method == http.MethodPost {
		x.header.Set("Content-Type", "application/json")
	}
	if cl.body != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(cl.body); err != nil {
			return nil, &Error{Op: cl.op, Method: cl.method, Path: cl.path, cause: err}
		}
		x.body = bytes.TrimSpace(b.Bytes())
	}
	return x, nil
}

func (x *exchange) isRead() bool { return x.call.method == http.MethodGet }

// mutates reports whether the call may change something on the server.
func (x *exchange) mutates() bool { return !x.isRead() && !x.call.safe }

func (x *exchange) prepare(h http.Header, bearer Secret) {
	for name, values := range x.header {
		h[name] = values
	}
	if bearer != "" {
		h.Set("Authorization", "Bearer "+bearer.Reveal())
		x.hide(bearer.Reveal())
	}
}

// send performs the exchange with a token: its attempts, and after a 401 once more with another token. The answer is a 2xx.
func (c *Client) send(ctx context.Context, x *exchange) (*http.Response, error) {
	tok, err := c.tokens.get(ctx, token{})
	if err != nil {
		return nil, x.noToken(ctx, err)
	}
	resp, err := x.attempts(ctx, tok.value)
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		resp, err = c.replay(ctx, x, tok, resp)
		if err != nil {
			return nil, err
		}
	} else if resp.StatusCode < 500 {
		c.tokens.accept(tok)
	}
	if resp.StatusCode/100 != 2 {
		return nil, x.refused(resp)
	}
	return resp, nil
}

// sendUnsigned performs an exchange with a server that is not to see the token.
func sendUnsigned(ctx context.Context, x *exchange) (*http.Response, error) {
	resp, err := x.attempts(ctx, "")
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, x.refused(resp)
	}
	return resp, nil
}

// replay answers a 401: the bearer check came before the call, so nothing was done yet. A token that was refused when it was brand-new
// may not be valid yet by the server's clock, so the replay waits a moment then.
func (c *Client) replay(ctx context.Context, x *exchange, rejected token, first *http.Response) (*http.Response, error) {
	fresh, err := c.tokens.get(ctx, rejected)
	var login *Error
	if errors.As(err, &login) {
		return nil, err
	}
	if err != nil {
		e := x.refused(first)
		e.cause = x.clean(err)
		return nil, e
	}
	if fresh.value == rejected.value {
		return first, nil
	}
	if c.tokens.premature(rejected) {
		x.clocks = clockHint(first.Header)
		if err := sleep(ctx, youngPause); err != nil {
			return nil, x.failed(ctx, err)
		}
	}
	resp, err := x.attempts(ctx, fresh.value)
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	return resp, nil
}

// youngPause lets a server's clock catch up with a token from the future.
const youngPause = time.Second

// clockHint compares the clocks for a refusal that a difference would explain.
func clockHint(h http.Header) string {
	server, err := http.ParseTime(h.Get("Date"))
	if diff := time.Since(server).Abs().Round(time.Second); err == nil && diff > 30*time.Second {
		return "a new token was refused, and the server's clock differs from this one by " + diff.String()
	}
	return "a new token was refused; the user may have no role on this server"
}

// follow decides on a redirect: only reads follow one, and only within the origin. What it leads to is as secret as the first address.
func (x *exchange) follow(req *http.Request, via []*http.Request) error {
	if !x.isRead() || len(via) > maxRedirects || originOf(req.URL) != x.sender.wire.origin {
		return http.ErrUseLastResponse
	}
	if x.call.path == downloadPath {
		x.hide(partsOf(req.URL)...)
	} else {
		x.hide(secretsOfQuery(req.URL)...)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

func (x *exchange) begin() {
	x.count++
	x.round++
	x.attemptStart = time.Now()
	x.observed = false
}

// observe notes and logs the end of an attempt.
func (x *exchange) observe(ctx context.Context, resp *http.Response, err error) {
	if err != nil && !unsent(err) {
		x.reached = true
	}
	if resp != nil && err == nil && retryableStatus(resp.StatusCode) {
		x.refusal = keepAnswer(resp)
	}
	x.noteTrouble(ctx, err)
	if x.observed && err == nil {
		return
	}
	x.observed = true
	attrs := []slog.Attr{
		slog.String("op", x.call.op), slog.String("method", x.call.method), slog.String("path", x.call.path),
		slog.Int("attempt", x.count), slog.Duration("took", time.Since(x.attemptStart)),
	}
	if resp != nil {
		attrs = append(attrs, slog.Int("status", resp.StatusCode))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", printable(x.scrub(bare(err).Error()), shownPart)))
	}
	x.sender.logger.LogAttrs(ctx, slog.LevelDebug, "zvm request", attrs...)
}

// noteTrouble leaves alone what is known when an attempt ends because its caller does: that says nothing of the server.
func (x *exchange) noteTrouble(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		x.sender.trouble.Store(nil)
	default:
		says := printable(x.scrub(bare(err).Error()), shownPart)
		x.sender.trouble.Store(&says)
	}
}

// hide adds secrets of the exchange.
func (x *exchange) hide(secrets ...string) {
	x.secrets = append(x.secrets, secrets...)
	x.scrubs = nil
}

func (x *exchange) scrubber() scrubber {
	if x.scrubs == nil {
		x.scrubs = newScrubber(x.secrets...)
	}
	return x.scrubs
}

func (x *exchange) scrub(text string) string { return x.scrubber().text(text) }

// bare takes the URL off an error of net/http: its query and a download link are nobody's business.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
