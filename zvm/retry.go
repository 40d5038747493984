package zvm

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// RetryPolicy says how often and how fast a read is repeated after a connection error or an answer 429, 502, 503 or 504. The waits
// double from MinWait to MaxWait and are jittered. A server's Retry-After counts within the same bounds; one that reaches beyond the
// context's deadline ends the call at once.
type RetryPolicy struct {
	// Max is the number of attempts after the first; 0 means none.
	Max int
	// MinWait and MaxWait bound one wait. Zero means 250 ms and 30 s.
	MinWait, MaxWait time.Duration
}

func (p RetryPolicy) check() error {
	low, high := p.bounds()
	switch {
	case p.Max < 0 || p.Max > 100:
		return errors.New("want 0 to 100 further attempts")
	case p.MinWait < 0 || p.MaxWait < 0 || low > high:
		return errors.New("want waits that are not negative, the shortest before the longest")
	}
	return nil
}

func (p RetryPolicy) bounds() (low, high time.Duration) {
	low, high = p.MinWait, p.MaxWait
	if high == 0 {
		high = max(30*time.Second, low)
	}
	if low == 0 {
		low = min(250*time.Millisecond, high)
	}
	return low, high
}

// wait returns how long to wait after the given attempt, the first being 1.
func (p RetryPolicy) wait(attempt int, asked time.Duration) time.Duration {
	low, high := p.bounds()
	ceiling := low
	for range attempt {
		if ceiling *= 2; ceiling >= high {
			ceiling = high
			break
		}
	}
	jittered := low + rand.N(ceiling-low+1)
	return min(max(asked, jittered), max(high, low))
}

// retryAfter reads a Retry-After header: seconds, with a fraction if need be, or a date, which is compared with the server's own Date
// so that clocks do not matter. Anything else counts as absent.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case !(seconds > 0):
			return 0
		case seconds > maxRetryAfter.Seconds():
			return maxRetryAfter
		}
		return time.Duration(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// maxRetryAfter keeps what a server asks within what a duration can hold.
const maxRetryAfter = 365 * 24 * time.Hour

func retryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// connectionFailed reports whether err is a failure of the network that may pass.
func connectionFailed(err error) bool {
	if err == nil || endedByContext(err) || failedTLS(err) || errors.Is(err, ErrForeignOrigin) {
		return false
	}
	var failed *sendError
	return errors.As(err, &failed)
}

// noSuchHost reports a host name that does not exist: mostly a spelling mistake, which no repetition mends.
func noSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// attempts sends one request, again where that is allowed, and returns the last answer with whatever status it has. A new
// retryablehttp client per call costs a few words and lets the policy know the call.
func (x *exchange) attempts(ctx context.Context, bearer Secret) (*http.Response, error) {
	var body any
	if x.body != nil {
		body = x.body
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, x.call.method, x.target, body)
	if err != nil {
		return nil, errors.New("the request cannot be built")
	}
	x.prepare(req.Header, bearer)
	x.round = 0
	if x.consume != nil {
		req.SetResponseHandler(x.consume)
	}
	client := retryablehttp.Client{
		HTTPClient:     &http.Client{Transport: x.sender.wire, CheckRedirect: x.follow},
		RetryMax:       x.sender.retry.Max,
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) { x.begin() },
		CheckRetry:     x.again,
		Backoff:        func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return x.pause },
		ErrorHandler:   lastAnswer,
	}
	return client.Do(req)
}

// lastAnswer hands out the answer of the last attempt instead of a text about it.
func lastAnswer(resp *http.Response, err error, _ int) (*http.Response, error) {
	if err != nil {
		if resp != nil {
			_ = resp.Body.Close()
		}
		return nil, err
	}
	return resp, nil
}

// again decides whether to try once more. It is asked after every attempt, and a second time when an answer could not be read.
func (x *exchange) again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	x.observe(ctx, resp, err)
	if ctx.Err() != nil || !x.repeatable(resp, err) {
		return false, nil
	}
	var asked time.Duration
	if resp != nil {
		asked = retryAfter(resp.Header)
	}
	x.pause = x.sender.retry.wait(x.round, asked)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < max(x.pause, asked) && x.round <= x.sender.retry.Max {
		x.hint = "the wait before another attempt reaches beyond the deadline"
		return false, nil
	}
	return true, nil
}

// repeatable: a read after a passing failure; anything else only if the request never left.
func (x *exchange) repeatable(resp *http.Response, err error) bool {
	if err != nil {
		return connectionFailed(err) && !noSuchHost(err) && (x.isRead() || unsent(err))
	}
	return x.isRead() && retryableStatus(resp.StatusCode)
}
