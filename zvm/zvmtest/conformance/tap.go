package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxKept bounds what a Tap keeps of one answer.
const maxKept = 256 << 10

// Tap is a transport that looks at what passes: the answers as they are on
// the wire, which a typed client does not show. It also sends GETs of its own
// with the client's token. What it keeps stays in memory, and no print of it
// shows anything.
type Tap struct {
	base http.RoundTripper

	mu     sync.Mutex
	bearer string
	root   string // scheme, host and path prefix
	last   map[string]*wireAnswer
	logins []login
}

// NewTap returns a Tap in front of base, which brings the TLS settings.
func NewTap(base http.RoundTripper) *Tap { return &Tap{base: base, last: map[string]*wireAnswer{}} }

// String shows nothing of what passed.
func (t *Tap) String() string { return "conformance.Tap" }

// Format prints String for every verb.
func (t *Tap) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// login is what may be told of an answer of the token endpoint.
type login struct {
	grant              string
	status             int
	expires, refreshes float64
	hasRefreshToken    bool
}

// wireAnswer is the head of an answer.
type wireAnswer struct {
	status int
	header http.Header
	body   []byte
}

// RoundTrip sends the request through the transport below.
func (t *Tap) RoundTrip(req *http.Request) (*http.Response, error) {
	grant := grantOf(req)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	root, path, ours := strings.Cut(req.URL.String(), "/v1/")
	switch {
	case strings.HasSuffix(req.URL.Path, "/token"):
		return resp, t.keepLogin(grant, resp)
	case !ours:
		return resp, nil
	}
	key := req.Method + " /v1/" + collapse(path)
	kept := &wireAnswer{status: resp.StatusCode, header: resp.Header.Clone()}
	t.mu.Lock()
	// A refusal hides no success: what an answer looks like is asked for.
	if old := t.last[key]; old == nil || old.status >= 300 || kept.status < 300 {
		t.last[key] = kept
	}
	// Together, so that the token never goes where the client did not send it.
	if bearer, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); found {
		t.root, t.bearer = root, bearer
	}
	t.mu.Unlock()
	if kept.isText() && !strings.HasPrefix(path, "downloads/") {
		resp.Body = &keeper{ReadCloser: resp.Body, tap: t, kept: kept}
	}
	return resp, nil
}

// grantOf reads the kind of a login from its form, whose body can be had again.
func grantOf(req *http.Request) string {
	if req.GetBody == nil || !strings.HasSuffix(req.URL.Path, "/token") {
		return "unknown"
	}
	body, err := req.GetBody()
	if err != nil {
		return "unknown"
	}
	defer func() { _ = body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(body, maxKept))
	form, _ := url.ParseQuery(string(text))
	return form.Get("grant_type")
}

// keepLogin reads the numbers of a login and hands its body on.
func (t *Tap) keepLogin(grant string, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKept))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return err
	}
	var fields struct {
		ExpiresIn        float64 `json:"expires_in"`
		RefreshExpiresIn float64 `json:"refresh_expires_in"`
		RefreshToken     string  `json:"refresh_token"`
	}
	_ = json.Unmarshal(body, &fields) // an error page has no numbers
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logins = append(t.logins, login{grant, resp.StatusCode, fields.ExpiresIn, fields.RefreshExpiresIn, fields.RefreshToken != ""})
	return nil
}

// keeper copies the head of a body that is read.
type keeper struct {
	io.ReadCloser

	tap  *Tap
	kept *wireAnswer
}

func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	k.tap.mu.Lock()
	defer k.tap.mu.Unlock()
	k.kept.body = append(k.kept.body, p[:min(n, maxKept-len(k.kept.body))]...)
	return n, err
}

// idLike is a segment of a path that is an id and not a word.
var idLike = regexp.MustCompile(`[0-9]|^.{25,}$`)

func collapse(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if idLike.MatchString(segment) || i > 0 && segments[i-1] == "downloads" {
			segments[i] = "{id}"
		}
	}
	return strings.Join(segments, "/")
}

// seen returns the last answer of an operation, a success if there was one, such as "GET /v1/flrs/{id}".
func (t *Tap) seen(operation string) (wireAnswer, bool) {
	if t == nil {
		return wireAnswer{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, found := t.last[operation]
	if !found {
		return wireAnswer{}, false
	}
	return wireAnswer{kept.status, kept.header, slices.Clone(kept.body)}, true
}

func (t *Tap) loginsSoFar() []login {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.logins)
}

var errNoTap = errors.New("nothing of the wire was seen")

// get sends a GET of its own with the client's token.
func (t *Tap) get(ctx context.Context, path string) (wireAnswer, error) {
	if t == nil {
		return wireAnswer{}, errNoTap
	}
	t.mu.Lock()
	bearer := t.bearer
	t.mu.Unlock()
	return t.getAs(ctx, path, bearer)
}

// getAs sends a GET with a token of the caller's choice; "" sends none.
func (t *Tap) getAs(ctx context.Context, path, bearer string) (wireAnswer, error) {
	if t == nil {
		return wireAnswer{}, errNoTap
	}
	t.mu.Lock()
	root := t.root
	t.mu.Unlock()
	if root == "" {
		return wireAnswer{}, errNoTap
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, root+path, nil)
	if err != nil {
		return wireAnswer{}, err
	}
	req.Header.Set("Accept", "application/json")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return wireAnswer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKept))
	return wireAnswer{resp.StatusCode, resp.Header, body}, err
}

func (a *wireAnswer) isText() bool {
	kind := a.header.Get("Content-Type")
	return strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/")
}

// list reads an array of objects; keys come in lower case.
func (a wireAnswer) list() []map[string]any {
	var raw []map[string]any
	if json.Unmarshal(a.body, &raw) != nil {
		return nil
	}
	for i, object := range raw {
		raw[i] = lowered(object)
	}
	return raw
}

func lowered(object map[string]any) map[string]any {
	low := map[string]any{}
	for key, value := range object {
		if inner, ok := value.(map[string]any); ok {
			value = lowered(inner)
		}
		low[strings.ToLower(key)] = value
	}
	return low
}

var (
	dotID   = regexp.MustCompile(`^[0-9a-fA-F-]{36}\.[0-9a-fA-F-]{36}$`)
	colonID = regexp.MustCompile(`^[0-9a-fA-F-]{36}:[0-9a-fA-F-]{36}$`)
)

// form says what an answer looks like, without what it says.
func (a wireAnswer) form() string {
	trimmed := bytes.TrimSpace(a.body)
	var value any
	if len(trimmed) == 0 {
		return "empty"
	}
	if json.Unmarshal(trimmed, &value) != nil {
		if trimmed[0] == '<' {
			return "markup"
		}
		return "text that is not JSON"
	}
	switch value := value.(type) {
	case []any:
		return fmt.Sprintf("array of %d", len(value))
	case map[string]any:
		return "object with " + strings.Join(slices.Sorted(maps.Keys(value)), ", ")
	case string:
		return formOfText(value)
	}
	return fmt.Sprintf("JSON %T", value)
}

func formOfText(text string) string {
	switch {
	case text == "":
		return "empty string"
	case dotID.MatchString(text):
		return "string guid.guid"
	case colonID.MatchString(text):
		return "string guid:guid"
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		return "absolute link"
	case strings.HasPrefix(text, "/"):
		return "link relative to the host"
	case strings.Contains(text, "/"):
		return "link relative to a path"
	}
	return fmt.Sprintf("string of %d bytes", len(text))
}
