package mcpadapter

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// minToken is the least length of a bearer token, in bytes: 128 bits in hex.
const minToken = 32

// modernEra is the first protocol version whose requests stand alone, without a session; those before are of the legacy
// era (mcp 1.8). Versions are dates, which sort as text.
const modernEra = "2026-07-28"

// idleSession is how long a session of the legacy era may be silent before it ends.
const idleSession = time.Hour

// Handler serves a server over HTTP, clients of both protocol eras on one URL (mcp 1.8). Every request has to bear the
// token, and none may come from a page of another origin. It is meant for a loopback listener, or for one behind
// something that speaks TLS: the token would be in clear. The token has to have 32 bytes at least.
func Handler(server *mcp.Server, token string, logger *slog.Logger) (http.Handler, error) {
	if server == nil {
		return nil, errors.New("mcpadapter: Handler needs a server")
	}
	if len(token) < minToken || strings.TrimSpace(token) != token {
		return nil, errors.New("mcpadapter: the bearer token needs 32 characters at least, and no blanks around them")
	}
	get := func(*http.Request) *mcp.Server { return server }
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: idleSession, Logger: logger})
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, Logger: logger})
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case !sameOrigin(r):
			http.Error(w, "requests from pages of other origins are not taken", http.StatusForbidden)
		case len(r.Header.Values("Authorization")) != 1 || subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		case r.Header.Get("Mcp-Protocol-Version") >= modernEra:
			modern.ServeHTTP(w, r)
		default:
			legacy.ServeHTTP(w, r)
		}
	}), nil
}

// sameOrigin reports whether a request comes from no page, or from one of this very server.
func sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && origin.Host != "" && origin.Host == r.Host
}
