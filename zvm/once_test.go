package zvm

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// http2Server speaks just enough HTTP/2 to take requests whole and give each of them up, or the first ones alone.
type http2Server struct {
	url      string
	requests atomic.Int64 // requests that were read whole
	giveUp   func(conn io.Writer, stream uint32)
	failures int64 // how many are given up; the others are answered with {}
}

const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	flagEndStream, flagAck, flagEndHeaders = 1, 1, 4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

func resetStream(code uint32) func(io.Writer, uint32) {
	return func(conn io.Writer, stream uint32) {
		_, _ = conn.Write(frame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code)))
	}
}

// goAway claims that no request was looked at.
func goAway(conn io.Writer, _ uint32) { _, _ = conn.Write(frame(frameGoAway, 0, 0, make([]byte, 8))) }

func (s *http2Server) start(t *testing.T) {
	t.Helper()
	certificates := newFakeServer(t, nil).TLS.Certificates
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	s.url = "https://" + ln.Addr().String()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
}

func (s *http2Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	_, _ = conn.Write(frame(frameSettings, 0, 0, nil))
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case (kind == frameSettings || kind == framePing) && flags&flagAck == 0:
			if kind == frameSettings {
				payload = nil
			}
			_, _ = conn.Write(frame(kind, flagAck, 0, payload))
		case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
			s.answer(conn, stream)
		}
	}
}

func (s *http2Server) answer(conn io.Writer, stream uint32) {
	if s.requests.Add(1) <= s.failures {
		s.giveUp(conn, stream)
		return
	}
	const status200 = 0x88 // of the static table of HPACK
	_, _ = conn.Write(frame(frameHeaders, flagEndHeaders, stream, []byte{status200}))
	_, _ = conn.Write(frame(frameData, flagEndStream, stream, []byte(`{}`)))
}

func http2Transport() *http.Transport {
	var http2 http.Protocols
	http2.SetHTTP2(true)
	return &http.Transport{Protocols: &http2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// wrapped hides what it wraps, as instruments of other programs do.
type wrapped struct{ next http.RoundTripper }

func (w wrapped) RoundTrip(req *http.Request) (*http.Response, error) { return w.next.RoundTrip(req) }

var waysToGiveUp = map[string]func(io.Writer, uint32){
	"PROTOCOL_ERROR": resetStream(1), "REFUSED_STREAM": resetStream(7), "GOAWAY": goAway,
}

func TestWriteIsSentOnceOverHTTP2(t *testing.T) {
	t.Parallel()
	writes := map[string]func(context.Context, *Client) error{
		"with a body": func(ctx context.Context, c *Client) error {
			_, err := c.InsertCheckpoint(ctx, "vpg", "tag")
			return err
		},
		"without one": func(ctx context.Context, c *Client) error {
			_, err := c.UnmountFLR(ctx, "session")
			return err
		},
	}
	for name, giveUp := range waysToGiveUp {
		for kind, write := range writes {
			for how, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
				"plain":   func(rt http.RoundTripper) http.RoundTripper { return rt },
				"wrapped": func(rt http.RoundTripper) http.RoundTripper { return wrapped{rt} },
			} {
				t.Run(name+" "+kind+" "+how, func(t *testing.T) {
					t.Parallel()
					s := &http2Server{giveUp: giveUp, failures: 1}
					s.start(t)
					transport := http2Transport()
					t.Cleanup(transport.CloseIdleConnections)
					c, err := New(s.url, Tokens(&staticSource{"MARKER-static"}), WithTransport(wrap(transport)), quickRetry)
					if err != nil {
						t.Fatal(err)
					}
					err = write(t.Context(), c)
					if !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) || endedByContext(err) {
						t.Errorf("error is %v", err)
					}
					if n := s.requests.Load(); n != 1 {
						t.Errorf("the write was sent %d times", n)
					}
				})
			}
		}
	}
}

func TestReadIsSentAgainOverHTTP2(t *testing.T) {
	t.Parallel()
	for name, giveUp := range waysToGiveUp {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &http2Server{giveUp: giveUp, failures: 1}
			s.start(t)
			transport := http2Transport()
			t.Cleanup(transport.CloseIdleConnections)
			c, err := New(s.url, Tokens(&staticSource{"MARKER-static"}), WithTransport(transport), quickRetry)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil || s.requests.Load() != 2 {
				t.Errorf("%v after %d requests", err, s.requests.Load())
			}
		})
	}
}

func TestClientSpeaksHTTP1ToAServerOfBoth(t *testing.T) {
	t.Parallel()
	f := unstartedFakeServer(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("the request came over %s", r.Proto)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(f.Close)
	if err := f.client(t).read(t.Context(), getCall(), &struct{}{}); err != nil {
		t.Error(err)
	}
}

// dyingConn fails its writes once it is dead, after it took the first bytes.
type dyingConn struct {
	net.Conn

	dead  *atomic.Bool
	taken int
}

func (c *dyingConn) Write(p []byte) (int, error) {
	if !c.dead.Swap(false) {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:c.taken])
	_ = c.Conn.Close()
	return n, net.ErrClosed
}

func TestWriteOnAnIdleConnectionThatDied(t *testing.T) {
	t.Parallel()
	plain := func(rt http.RoundTripper) http.RoundTripper { return rt }
	wrap := func(rt http.RoundTripper) http.RoundTripper { return wrapped{rt} }
	for name, tt := range map[string]struct {
		taken   int
		wrap    func(http.RoundTripper) http.RoundTripper
		unknown bool
	}{
		"no byte left, so it is sent":                         {0, plain, false},
		"some bytes left, so it is unknown":                   {10, plain, true},
		"some bytes left through a transport of another make": {10, wrap, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int64
			f := unstartedFakeServer(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					writes.Add(1)
				}
				_, _ = io.WriteString(w, `{}`)
			})
			f.Start()
			t.Cleanup(f.Close)
			var dead atomic.Bool
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &dyingConn{Conn: conn, dead: &dead, taken: tt.taken}, err
			}}
			t.Cleanup(transport.CloseIdleConnections)
			c := newTestClient(t, f.URL, WithTransport(tt.wrap(transport)), quickRetry)
			if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
				t.Fatal(err)
			}
			dead.Store(true)
			err := c.write(t.Context(), postCall(), &struct{}{})
			if errors.Is(err, ErrOutcomeUnknown) != tt.unknown || (err != nil) != tt.unknown {
				t.Errorf("error is %v", err)
			}
			want := int64(1)
			if tt.unknown {
				want = 0
			}
			if writes.Load() != want {
				t.Errorf("%d writes arrived, want %d", writes.Load(), want)
			}
		})
	}
}

// repeating is what a transport must not be: it sends everything once more.
type repeating struct{ next http.RoundTripper }

func (r repeating) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(strings.NewReader(`{}`))
	again.ContentLength = 2
	return r.next.RoundTrip(again)
}

func TestTransportThatRepeatsAWriteLeavesItUnknown(t *testing.T) {
	t.Parallel()
	f := unstartedFakeServer(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	f.Start()
	t.Cleanup(f.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	c, err := New(f.URL, Tokens(&staticSource{"MARKER-static"}), WithTransport(repeating{transport}), quickRetry)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(t.Context(), postCall(), nil); !errors.Is(err, ErrOutcomeUnknown) || endedByContext(err) {
		t.Errorf("error is %v", err)
	}
}
