package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// call is one request as a resource file describes it.
type call struct {
	op     string
	method string
	path   string // "/v1/...", built by apiPath
	query  url.Values
	body   any  // encoded as JSON; nil sends none
	safe   bool // a POST without effect on the server: a lost answer is an ordinary error
}

// apiPath joins segments, each escaped as one segment of the path. A segment that is empty, relative or holds a separator is an error,
// so that no id can lead to another resource.
func apiPath(segments ...string) (string, error) {
	var b strings.Builder
	for _, s := range segments {
		if s == "" || s == "." || s == ".." || !utf8.ValidString(s) ||
			strings.ContainsAny(s, `/\?#`) || strings.ContainsFunc(s, unicode.IsControl) {
			return "", fmt.Errorf("zvm: %q cannot be part of a path", s)
		}
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	if b.Len() == 0 {
		return "", errors.New("zvm: the path is empty")
	}
	return b.String(), nil
}

// read sends a GET, again as the retry policy allows, and decodes its JSON answer into out. A body that breaks off is a failed
// attempt like any other.
func (c *Client) read(ctx context.Context, cl call, out any) error {
	_, err := c.look(ctx, cl, out)
	return err
}

// look is read for callers that may find the answer senseless.
func (c *Client) look(ctx context.Context, cl call, out any) (*exchange, error) {
	x, err := c.sender.exchange(cl)
	if err != nil {
		return nil, err
	}
	var body []byte
	x.consume = func(resp *http.Response) error {
		if resp.StatusCode/100 != 2 {
			return nil
		}
		defer closeBody(resp.Body)
		body, err = readAll(resp.Body, maxAnswer)
		return err
	}
	resp, err := c.send(ctx, x)
	if err != nil {
		return nil, err
	}
	defer closeBody(resp.Body)
	if err := decode(body, out); err != nil {
		return nil, x.badAnswer(resp, body, err)
	}
	return x, nil
}

// answered is the 2xx answer to a call, with its body in memory.
type answered struct {
	exchange *exchange
	resp     *http.Response
	body     []byte
}

// unusable is the error for an answer that arrived and makes no sense. After a write it leaves open what was done.
func (a *answered) unusable(err error) error { return a.exchange.badAnswer(a.resp, a.body, err) }

// writeRaw sends a write once and returns its 2xx answer, the body without a byte order mark. The body may be empty, and need not be
// JSON; HTML and XML are errors. When the write may have been carried out and its answer is lost, the error matches ErrOutcomeUnknown.
func (c *Client) writeRaw(ctx context.Context, cl call) (*answered, error) {
	x, err := c.sender.exchange(cl)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, x)
	if err != nil {
		return nil, err
	}
	defer closeBody(resp.Body)
	body, err := readAll(resp.Body, maxAnswer)
	if err != nil {
		x.reached = true
		return nil, x.failed(ctx, err)
	}
	a := &answered{exchange: x, resp: resp, body: withoutBOM(body)}
	if markup(resp.Header, body) {
		return nil, a.unusable(errMarkup)
	}
	return a, nil
}

// stream sends a GET for a JSON array and calls each with the decoder before every element; each has to decode exactly one. null is an
// empty array. An error of each that is neither a decoding error nor a rowError is returned as it is.
func (c *Client) stream(ctx context.Context, cl call, each func(dec *json.Decoder) error) error {
	x, err := c.sender.exchange(cl)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, x)
	if err != nil {
		return err
	}
	defer closeBody(resp.Body)
	list := newListReader(resp.Body, c.cfg.maxListBytes)
	err = list.each(each)
	var row *rowError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &row):
		return x.senseless(row.error)
	case list.failure != nil:
		return x.failed(ctx, list.failure)
	case malformed(err):
		return x.badAnswer(resp, []byte(x.scrubber().head(string(list.head), shownHead)), err)
	default:
		return err
	}
}

// rowError is an element of a list that was decoded and makes no sense.
type rowError struct{ error }

func (e *rowError) Unwrap() error { return e.error }

// open sends a GET for a download link, which may be relative, and returns the answer with its body open. The link is not part of any
// error or log line. A page for humans instead of a file is an error.
func (c *Client) open(ctx context.Context, cl call, rawURL string) (*http.Response, error) {
	cl.method, cl.path, cl.query = http.MethodGet, downloadPath, nil
	x, err := c.sender.exchange(cl)
	if err != nil {
		return nil, err
	}
	target, err := c.sender.resolve(rawURL, c.cfg.downloadOrigins...)
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	send := c.send
	if originOf(target) != originOf(c.sender.base) {
		x.sender = newSender(&url.URL{Scheme: target.Scheme, Host: target.Host}, c.sender.transport, c.cfg)
		send = sendUnsigned
	}
	x.target = target.String()
	x.hide(append(partsOf(target), rawURL)...)
	// The length has to be that of the file, not of a compressed form of it.
	x.header.Set("Accept", "*/*")
	x.header.Set("Accept-Encoding", "identity")
	resp, err := send(ctx, x)
	if err != nil {
		return nil, err
	}
	if err := x.refusePart(resp); err != nil {
		return nil, err
	}
	if markup(resp.Header, nil) && resp.Header.Get("Content-Disposition") == "" {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody+scrubMargin))
		closeBody(resp.Body)
		return nil, x.badAnswer(resp, head, errMarkup)
	}
	resp.Request = nil // it holds the token and the link
	return resp, nil
}

// refusePart closes an answer that is a part of a file: no call asks for one, and a part looks like the whole.
func (x *exchange) refusePart(resp *http.Response) error {
	if resp.StatusCode != http.StatusPartialContent {
		return nil
	}
	closeBody(resp.Body)
	return x.badAnswer(resp, nil, errPart)
}

// downloadPath stands for a download link wherever a path is shown.
const downloadPath = "(download link)"

// resolve makes a link absolute and refuses it if it leads anywhere but to the configured origin and those that are allowed.
func (s *sender) resolve(rawURL string, allowed ...string) (*url.URL, error) {
	link, err := url.Parse(strings.TrimSpace(rawURL))
	if err != nil || strings.TrimSpace(rawURL) == "" {
		return nil, errors.New("the link is not a URL")
	}
	base := *s.base
	base.Path, base.RawPath = base.Path+"/", ""
	// Servers behind a path prefix do not know of it and send links from their own root.
	if prefix := s.base.Path; prefix != "" && link.Host == "" && link.Scheme == "" && strings.HasPrefix(link.Path, "/v1/") {
		link.Path, link.RawPath = strings.TrimPrefix(link.Path, "/"), strings.TrimPrefix(link.RawPath, "/")
	}
	target := base.ResolveReference(link)
	target.Fragment, target.RawFragment = "", ""
	if origin := originOf(target); origin != originOf(s.base) && !slices.Contains(allowed, origin) || target.User != nil {
		return nil, ErrForeignOrigin
	}
	return target, nil
}

// longSegment is how long a part of a link's path is that is more likely a ticket than a word.
const longSegment = 12

// partsOf returns all of a link that an error page might repeat.
func partsOf(target *url.URL) []string {
	parts := append(secretsOfQuery(target), target.String(), target.EscapedPath(), target.Path)
	segments := strings.Split(target.Path, "/")
	for i, segment := range segments {
		if i == len(segments)-1 || len(segment) >= longSegment {
			parts = append(parts, segment)
		}
	}
	return parts
}

func secretsOfQuery(target *url.URL) []string {
	parts := []string{target.RawQuery}
	for _, values := range target.Query() {
		parts = append(parts, values...)
	}
	return parts
}
