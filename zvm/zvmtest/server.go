package zvmtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// TB is what Start needs of *testing.T. It is spelled out so that a binary
// that links the simulator does not link package testing and its flags.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Server is a simulated ZVM on a TLS socket of its own. All methods, and
// those of the handles it gives out, are safe for concurrent use.
type Server struct {
	cfg      config
	routes   []route
	tls      *identity
	listener net.Listener
	http     *http.Server
	client   *http.Client
	url      string
	stopped  chan struct{}
	served   chan struct{}
	advanced atomic.Int64

	mu             sync.Mutex
	idle           sync.Cond // in flight has become 0
	inFlight       int
	closed         bool
	ordinals       map[string]int
	problems       []string
	local          *site
	peers          []*site
	vms            []*VM
	vpgs           []*VPG
	tasks          []*task
	taskByID       map[string]*task // by the id in lower case
	pending        []*task
	outcomes       []scriptedOutcome
	inserts        int
	logins         map[string]int
	wrongPasswords map[string]int
	tokens         map[string]*accessToken
	refreshTokens  map[string]*session
	mounts         []*flrSession
	links          map[string]*link
	clones         []Clone
	tests          []*failoverTest
	events         []event
	faults         []*Fault
	log            requestLog
	foreign        *foreignOrigin
	files          []string // to be removed
}

// New starts a server. The caller closes it.
func New(opts ...Option) (*Server, error) {
	cfg := defaultConfig()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("a nil option")
		}
		if err := opt(&cfg); err != nil {
			return nil, err
		}
	}
	if err := cfg.checkSwitches(); err != nil {
		return nil, err
	}
	if cfg.hostile {
		cfg.addHostileSwitches()
	}
	id, err := processIdentity()
	if err != nil {
		return nil, err
	}
	owned := cfg.listener == nil
	if owned {
		cfg.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
	}
	s := &Server{
		cfg:            cfg,
		routes:         cfg.routes(),
		tls:            id,
		listener:       cfg.listener,
		url:            "https://" + cfg.listener.Addr().String() + cfg.prefix,
		stopped:        make(chan struct{}),
		served:         make(chan struct{}),
		ordinals:       map[string]int{},
		logins:         map[string]int{},
		wrongPasswords: map[string]int{},
		tokens:         map[string]*accessToken{},
		refreshTokens:  map[string]*session{},
		links:          map[string]*link{},
		taskByID:       map[string]*task{},
	}
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.CertPool(), MinVersion: tls.VersionTLS12},
	}}
	s.idle.L = &s.mu
	s.local = s.newSite(cfg.siteName)
	if cfg.mirror != nil {
		s.local = cfg.mirror.at
	}
	if err := s.stock(); err != nil {
		if owned {
			err = errors.Join(err, s.listener.Close())
		}
		return nil, err
	}
	s.http = newHTTPServer(s)
	go func() {
		defer close(s.served)
		_ = s.http.Serve(tls.NewListener(s.listener, id.serverConfig()))
	}()
	return s, nil
}

// Start is New for a test: the server is closed when the test ends, and the
// test fails for everything that Problems lists by then.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	return started(tb, s, err)
}

func started(tb TB, s *Server, err error) *Server {
	tb.Helper()
	if err != nil {
		tb.Fatalf("zvmtest: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		tb.Helper()
		s.Close()
		if problems := s.Problems(); len(problems) > 0 {
			tb.Errorf("zvmtest: %s", strings.Join(problems, "\n"))
		}
	})
	return s
}

// newHTTPServer speaks HTTP/1.1 alone: a connection of HTTP/2 cannot be cut
// for one request.
func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
}

// Close stops the server: hanging requests are cut, and no handler runs when
// it returns. Accessors work on.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	foreign := s.foreign
	files := s.files
	s.mu.Unlock()

	for _, name := range files {
		_ = os.Remove(name)
	}
	close(s.stopped)
	_ = s.http.Close()
	<-s.served
	s.client.CloseIdleConnections()
	if foreign != nil {
		_ = foreign.http.Close()
		<-foreign.served
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.inFlight > 0 {
		s.idle.Wait()
	}
}

// enter counts a handler in, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inFlight++
	return true
}

// leave counts it out. The caller holds the mutex.
func (s *Server) leave() {
	s.inFlight--
	if s.inFlight == 0 {
		s.idle.Broadcast()
	}
}

// URL is the base URL, with the path prefix and without a final slash.
func (s *Server) URL() string { return s.url }

// CertPool holds the authority that signed the server's certificate.
func (s *Server) CertPool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.tls.authority)
	return pool
}

// Client is a plain HTTP client that trusts the server's certificate. It knows
// no token, and its connections end with the server.
func (s *Server) Client() *http.Client { return s.client }

// CAPEM is that authority in PEM form, as a CA file holds it.
func (s *Server) CAPEM() []byte { return append([]byte(nil), s.tls.authorityPEM...) }

// CAFile writes CAPEM to a new temporary file and returns its name. Close
// removes it.
func (s *Server) CAFile() (string, error) {
	f, err := os.CreateTemp("", "zvmtest-ca-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(s.tls.authorityPEM)
	if err = errors.Join(err, f.Close()); err == nil {
		if s.addFile(f.Name()) {
			return f.Name(), nil
		}
		err = http.ErrServerClosed
	}
	return "", errors.Join(err, os.Remove(f.Name()))
}

// addFile notes a file for Close to remove, unless the server is closed.
func (s *Server) addFile(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.files = append(s.files, name)
	}
	return !s.closed
}

// CertSHA256 is the SHA-256 of the server's certificate in lower-case hex.
func (s *Server) CertSHA256() string { return s.tls.leafSHA256 }

// Username is the Admin that the server has from the start.
func (s *Server) Username() string { return defaultUser }

// Password is that user's password, or the one WithUser gave it.
func (s *Server) Password() string { return s.cfg.users[defaultUser].secret }

// Problems lists what a test should not have caused: calls of operations that
// do not exist here or that a rewind must never send, scripted faults and
// outcomes that did not come about, panics of handlers, and impossible
// inventories.
func (s *Server) Problems() []string {
	unused := s.Unused()
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := append([]string(nil), s.problems...)
	for _, u := range unused {
		problems = append(problems, "never happened: "+u)
	}
	return problems
}

// problem records one. The caller holds the mutex.
func (s *Server) problem(text string) { s.problems = append(s.problems, text) }
