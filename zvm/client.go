// Package zvm speaks the REST API of a Zerto Virtual Manager (ZVM): one method for each request that the SDK may send, typed answers,
// one kind of error. It has no policy: it chooses no VM and waits for no task.
//
//	client, err := zvm.New("https://zvm.example.com", zvm.Password("svc-rewind", secret), zvm.WithRootCAs(pool))
//	vms, err := client.ListVMs(ctx, zvm.VMFilter{Name: "web01"})
//
// Errors are *Error values; branch on them with errors.Is and the sentinels of this package, never on their text. A write is never
// sent twice: when its answer is lost, the error matches ErrOutcomeUnknown, and the caller looks for the effect.
package zvm

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Client talks to one ZVM as one user. It is immutable and safe for concurrent use, and starts nothing before its first call. All
// its callers share one token, which is renewed in time and once per refusal, however many callers meet the refusal.
//
// Reads are repeated by the RetryPolicy. A write is sent once; the exceptions are a 401, after which it is sent once more with a new
// token, and a connection that failed before the request could leave.
type Client struct {
	sender *sender
	tokens *tokens
	cred   Credentials
	cfg    config
}

// New returns a client of the ZVM at baseURL, for example "https://zvm.example.com". It checks its arguments and does no I/O.
//
// baseURL may have a port and a path prefix, and no user, query or fragment. "http" is accepted for loopback hosts alone. Proxies
// are found as net/http finds them, unless WithTransport is given.
func New(baseURL string, cred Credentials, opts ...Option) (*Client, error) {
	base, err := parseBaseURL(baseURL)
	if err != nil {
		return nil, err
	}
	if cred == nil {
		return nil, errors.New("zvm: the credentials are nil")
	}
	cfg, err := defaultConfig().apply(opts)
	if err != nil {
		return nil, err
	}
	return newClient(base, cred, cfg, nil)
}

// With returns a copy of the client with other settings. The copy shares the token, unless an option changes who asks for it or how
// it travels, and the connections, unless an option changes those.
func (c *Client) With(opts ...Option) (*Client, error) {
	cfg := c.cfg
	cfg.newTransport, cfg.newIdentity = false, false
	cfg, err := cfg.apply(opts)
	if err != nil {
		return nil, err
	}
	return newClient(c.sender.base, c.cred, cfg, c)
}

func newClient(base *url.URL, cred Credentials, cfg config, parent *Client) (*Client, error) {
	var transport http.RoundTripper
	switch {
	case !cfg.newTransport:
		transport = parent.sender.transport
	case cfg.transport != nil:
		transport = cfg.transport
	default:
		transport = newTransport(cfg.trust)
	}
	c := &Client{sender: newSender(base, transport, cfg), cred: cred, cfg: cfg}
	if !cfg.newTransport && !cfg.newIdentity {
		c.tokens = parent.tokens
		return c, nil
	}
	source, err := cred.source(newEndpoint(c.sender, cfg))
	if err != nil {
		return nil, err
	}
	c.tokens = &tokens{source: source}
	if cfg.newTransport && cfg.trust.insecure {
		cfg.logger.Warn("the server's certificate is not checked: whoever intercepts the connection reads the password",
			slog.String("url", c.BaseURL()))
	}
	return c, nil
}

// BaseURL returns the address given to New in its normal form: lower-case host, no trailing slash.
func (c *Client) BaseURL() string { return c.sender.base.String() }

// Trouble returns why the last attempt to reach the server got no answer, for a caller whose time has ended while something was
// tried again on everybody's behalf. It is empty after an answer, and before the first attempt has ended.
func (c *Client) Trouble() string {
	if last := c.sender.trouble.Load(); last != nil {
		return *last
	}
	return ""
}

// String names the server. Like every other print of a Client it shows no secret.
func (c *Client) String() string { return fmt.Sprintf("zvm.Client(%s)", c.BaseURL()) }

// Format prints String for every verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// parseBaseURL never quotes its argument in an error: the most common mistake is a password in it.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("zvm: the base URL is not a URL")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New(`zvm: the base URL must begin with "https://"`)
	case u.Hostname() == "":
		return nil, errors.New("zvm: the base URL has no host")
	case u.User != nil:
		return nil, errors.New("zvm: the base URL must not hold a user or password; credentials are an argument of their own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return nil, errors.New("zvm: the base URL must not have a query or fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, errors.New(`zvm: the base URL must begin with "https://": "http" would show the password to the network`)
	}
	if _, err := url.Parse(u.String()); err != nil {
		return nil, errors.New("zvm: the base URL is not a URL")
	}
	if u.Path == "" {
		return u, nil
	}
	segments := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if _, err := apiPath(segments...); err != nil {
		return nil, errors.New("zvm: the path of the base URL has an empty or relative part")
	}
	if last := strings.ToLower(segments[len(segments)-1]); last == "v1" || last == "auth" {
		return nil, fmt.Errorf("zvm: the base URL is the address above /v1 and /auth; leave out the final /%s", last)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
