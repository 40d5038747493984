package mcpadapter

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// Serve speaks the protocol over a pair of streams, one JSON-RPC message in each line, until in ends or ctx does.
// Nothing else is ever written to out. It closes neither.
//
// Both ends cancel the calls that run, and Serve returns when they have returned: what a call opened at the ZVM is
// closed by then. It returns nil when in ended, and the cause when ctx did. A Read of in that does not return stays
// behind, as nothing can interrupt it.
func Serve(ctx context.Context, session *rewind.Session, in io.Reader, out io.Writer, opts ...Option) error {
	server, err := NewServer(session, opts...)
	if err != nil {
		return err
	}
	messages, feed := io.Pipe()
	// The end of the input is what cancels running calls: the context of Run does not reach them.
	stop := context.AfterFunc(ctx, func() { _ = feed.Close() })
	defer stop()
	go func() {
		_, err := io.Copy(feed, in)
		_ = feed.CloseWithError(err)
	}()
	defer messages.Close() //nolint:errcheck // a pipe in memory; closing it ends the copying
	err = server.Run(context.WithoutCancel(ctx), &mcp.IOTransport{Reader: messages, Writer: openWriter{out}})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// openWriter leaves the writer open, which is its owner's.
type openWriter struct{ io.Writer }

func (openWriter) Close() error { return nil }
