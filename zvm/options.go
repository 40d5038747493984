package zvm

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Option changes one setting of a client. An invalid setting is an error of New or With.
type Option func(*config) error

// OptionError says that an option cannot be used as it is given. New and With return it.
type OptionError struct {
	Option string // the function that makes it, for example "WithRealm"
	Reason string
}

func (e *OptionError) Error() string { return "zvm: " + e.Option + ": " + e.Reason }

func refuse(option, reason string) error { return &OptionError{Option: option, Reason: reason} }

// config is what the options decide. The two flags tell With how much of a client an option has made unusable for the copy.
type config struct {
	trust     trust
	transport http.RoundTripper
	realm     string
	clientID  string
	tokenPath string
	store     TokenCache
	// downloadOrigins are those that links may lead to beside the server's own.
	downloadOrigins []string

	logger        *slog.Logger
	userAgent     string
	retry         RetryPolicy
	headerTimeout time.Duration
	idleTimeout   time.Duration
	maxListBytes  int64

	newTransport bool
	newIdentity  bool
}

func defaultConfig() config {
	return config{
		realm:         "zerto",
		clientID:      "zerto-client",
		logger:        slog.New(slog.DiscardHandler),
		userAgent:     "zerto-rewind",
		retry:         RetryPolicy{Max: 4},
		headerTimeout: time.Minute,
		idleTimeout:   time.Minute,
		maxListBytes:  512 << 20,
		newTransport:  true,
		newIdentity:   true,
	}
}

// apply returns the config changed by opts, with the flags set for what changed.
func (cfg config) apply(opts []Option) (config, error) {
	for _, opt := range opts {
		if opt == nil {
			return config{}, errors.New("zvm: an option is nil")
		}
		if err := opt(&cfg); err != nil {
			return config{}, err
		}
	}
	if err := cfg.trust.check(); err != nil {
		return config{}, err
	}
	if cfg.transport != nil && cfg.trust != (trust{}) {
		return config{}, refuse("WithTransport", "it brings its own TLS settings and cannot be combined with another TLS option")
	}
	return cfg, nil
}

// WithRootCAs verifies the server against these certificate authorities instead of those of the system. It applies to the token
// endpoint, the API and downloads alike, as every TLS option does.
func WithRootCAs(pool *x509.CertPool) Option {
	return func(cfg *config) error {
		if pool == nil {
			return refuse("WithRootCAs", "the pool is nil")
		}
		cfg.trust.roots = pool
		cfg.newTransport = true
		return nil
	}
}

// WithCertSHA256 accepts exactly the server certificate whose DER form has this SHA-256 fingerprint: 64 hexadecimal digits, with or
// without colons. It is meant for an appliance's self-signed certificate. Alone it replaces the check of the chain, the name and the
// dates; together with WithRootCAs both must hold.
func WithCertSHA256(fingerprint string) Option {
	return func(cfg *config) error {
		sum, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(fingerprint), ":", ""))
		if err != nil || len(sum) != sha256.Size {
			return refuse("WithCertSHA256", "want the 64 hexadecimal digits of a SHA-256 fingerprint")
		}
		cfg.trust.pin = (*[sha256.Size]byte)(sum)
		cfg.newTransport = true
		return nil
	}
}

// WithInsecureSkipVerify turns off every check of the server's certificate: whoever can intercept the connection reads the password.
// It is for laboratories. WithCertSHA256 is as easy and safe.
func WithInsecureSkipVerify() Option {
	return func(cfg *config) error {
		cfg.trust.insecure = true
		cfg.newTransport = true
		return nil
	}
}

// WithServerName verifies the certificate for this name instead of the host of the base URL, for an appliance that is reached by an
// address that its certificate does not name.
func WithServerName(name string) Option {
	return func(cfg *config) error {
		if name == "" || strings.ContainsAny(name, "/:@ ") {
			return refuse("WithServerName", "want a host name without scheme and port")
		}
		cfg.trust.serverName = name
		cfg.newTransport = true
		return nil
	}
}

// WithTransport sends all requests through rt, for tests and for programs with a network of their own. TLS is then the business of rt.
//
// rt must not repeat writes. Where it does and reports to net/http/httptrace, as every transport built on net/http does, the repetition
// is cut off and the write's error matches ErrOutcomeUnknown.
func WithTransport(rt http.RoundTripper) Option {
	return func(cfg *config) error {
		if rt == nil {
			return refuse("WithTransport", "the transport is nil")
		}
		cfg.transport = rt
		cfg.newTransport = true
		return nil
	}
}

// WithRealm names the Keycloak realm; "zerto" if not given (zvm-wire 1.1).
func WithRealm(realm string) Option {
	return func(cfg *config) error {
		if _, err := apiPath(realm); err != nil {
			return refuse("WithRealm", "want the name of a realm")
		}
		cfg.realm = realm
		cfg.newIdentity = true
		return nil
	}
}

// WithClientID names the public Keycloak client of the password grant; "zerto-client" if not given (zvm-wire 1.1).
func WithClientID(id string) Option {
	return func(cfg *config) error {
		if id == "" {
			return refuse("WithClientID", "the id is empty")
		}
		cfg.clientID = id
		cfg.newIdentity = true
		return nil
	}
}

// WithTokenPath sets the path of the token endpoint below the base URL, for a Keycloak without the "/auth" prefix. If not given it is
// "/auth/realms/REALM/protocol/openid-connect/token" (zvm-wire 1.1).
func WithTokenPath(path string) Option {
	return func(cfg *config) error {
		rest, absolute := strings.CutPrefix(path, "/")
		checked, err := apiPath(strings.Split(rest, "/")...)
		if !absolute || err != nil {
			return refuse("WithTokenPath", "want an absolute path without query")
		}
		cfg.tokenPath = checked
		cfg.newIdentity = true
		return nil
	}
}

// WithTokenCache shares tokens with other processes through store, so that a command line, a hook and a server do not log in side by
// side and one login serves many runs. It does not apply to Tokens.
func WithTokenCache(store TokenCache) Option {
	return func(cfg *config) error {
		if store == nil {
			return refuse("WithTokenCache", "the cache is nil")
		}
		cfg.store = store
		cfg.newIdentity = true
		return nil
	}
}

// WithDownloadOrigin allows download links to lead to one more origin, such as "https://files.example.com:9443", and may be given
// several times: a server behind another name than it knows of sends links to its own. The token is never sent there, and a redirect
// away from it is refused. The TLS options hold there as well, so that a pinned certificate has to be that origin's too.
func WithDownloadOrigin(origin string) Option {
	return func(cfg *config) error {
		u, err := parseBaseURL(origin)
		if err != nil || u.Path != "" {
			return refuse("WithDownloadOrigin", "want an https address of scheme, host and port alone")
		}
		cfg.downloadOrigins = append(slices.Clip(cfg.downloadOrigins), originOf(u))
		return nil
	}
}

// WithLogger writes one debug line for every attempt to logger, without secrets and without query strings. If not given nothing
// is logged.
func WithLogger(logger *slog.Logger) Option {
	return func(cfg *config) error {
		if logger == nil {
			return refuse("WithLogger", "the logger is nil")
		}
		cfg.logger = logger
		return nil
	}
}

// WithUserAgent sets the User-Agent header; "zerto-rewind" if not given.
func WithUserAgent(agent string) Option {
	return func(cfg *config) error {
		if agent == "" || printable(agent, len(agent)) != agent {
			return refuse("WithUserAgent", "want printable text on one line")
		}
		cfg.userAgent = agent
		return nil
	}
}

// WithRetry sets how reads are repeated; see RetryPolicy. Writes are not affected by anything here but Max and the waits of a
// refused connection.
func WithRetry(policy RetryPolicy) Option {
	return func(cfg *config) error {
		if err := policy.check(); err != nil {
			return refuse("WithRetry", err.Error())
		}
		cfg.retry = policy
		return nil
	}
}

// WithHeaderTimeout bounds each attempt from its start to the headers of the answer, connecting included; one minute if not given.
// It never cuts a body that is on its way.
func WithHeaderTimeout(d time.Duration) Option {
	return func(cfg *config) error {
		if d <= 0 {
			return refuse("WithHeaderTimeout", "want a positive duration")
		}
		cfg.headerTimeout = d
		return nil
	}
}

// WithIdleTimeout bounds how long a body may deliver nothing while it is being read; one minute if not given. A slow body that moves
// is never cut.
func WithIdleTimeout(d time.Duration) Option {
	return func(cfg *config) error {
		if d <= 0 {
			return refuse("WithIdleTimeout", "want a positive duration")
		}
		cfg.idleTimeout = d
		return nil
	}
}

// WithMaxListBytes bounds how many bytes one list may have; 512 MiB if not given. Lists are decoded as they arrive, so this is a
// bound on the transfer, not on memory.
func WithMaxListBytes(n int64) Option {
	return func(cfg *config) error {
		if n <= 0 {
			return refuse("WithMaxListBytes", "want a positive number of bytes")
		}
		cfg.maxListBytes = n
		return nil
	}
}

// TokenCache keeps tokens between processes. An implementation stores secrets: it must keep other users out.
type TokenCache interface {
	// Lock waits until this process alone may use the entry named key, and returns it. key is a hash, fit for a file name; it
	// differs between servers, realms, clients and users. The wait obeys ctx.
	Lock(ctx context.Context, key string) (TokenEntry, error)
}

// TokenEntry is a locked entry of a TokenCache. It may be locked during a whole login.
type TokenEntry interface {
	// Load returns what was stored last; the zero SavedToken if nothing was.
	Load() (SavedToken, error)
	// Store replaces the entry. The zero SavedToken empties it.
	Store(SavedToken) error
	// Unlock releases the entry. It is called exactly once.
	Unlock() error
}

// SavedToken is what a TokenCache keeps. Secret shows nothing to encoders: an implementation that writes it has to call Reveal.
type SavedToken struct {
	// Access is the bearer token, Expiry the local wall-clock time at which it ends.
	Access Secret
	Expiry time.Time
	// Refresh is the refresh token, empty if the server issued none.
	Refresh Secret
}
