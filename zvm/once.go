package zvm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// errSentOnce ends a write that its transport was about to send again. The server may have carried out what left before.
var errSentOnce = errors.New("the connection broke or the server gave the request up, and it was not sent again")

// departure follows one request through the transport and lets a write leave once. Transports repeat requests by themselves: over HTTP/2
// that of net/http does so whenever the server resets the stream or gives up the connection, whatever the method, six times over; and one
// given by WithTransport may do as it likes.
type departure struct {
	write   bool
	proving bool // the transport repeats a write over HTTP/1.1 only if no byte of it left, as net/http's does
	cancel  context.CancelCauseFunc

	started   atomic.Bool // a connection was asked for
	connected atomic.Bool // and was had
	left      atomic.Bool // bytes may have left
	again     atomic.Bool // a connection was asked for after that
}

// trace returns a context under which the transport reports to d.
func (d *departure) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { d.started.Store(true); d.begin() },
		GotConn: func(httptrace.GotConnInfo) { d.connected.Store(true); d.begin() },
		WroteHeaderField: func(name string, _ []string) {
			if strings.HasPrefix(name, ":") { // HTTP/2, where net/http proves nothing
				d.left.Store(true)
			}
		},
		// Over HTTP/1.1 this comes when the headers are in a buffer, so it proves nothing to a transport that knows better.
		WroteHeaders: func() {
			if !d.proving {
				d.left.Store(true)
			}
		},
		GotFirstResponseByte: func() { d.left.Store(true) },
	})
}

// begin is called before every sending. The HTTP/2 transport looks at the context once more before it writes headers, so that the
// cancellation comes in time.
func (d *departure) begin() {
	if d.write && d.left.Load() {
		d.again.Store(true)
		d.cancel(errSentOnce)
	}
}

// unsent reports whether it is proven that no byte left: a connection was asked for and never had.
func (d *departure) unsent() bool { return d.started.Load() && !d.connected.Load() }

// provesUnsent reports whether a transport is net/http's own.
func provesUnsent(rt http.RoundTripper) bool {
	_, ok := rt.(*http.Transport)
	return ok
}
