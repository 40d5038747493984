package zvmtest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const redacted = "[redacted]"

// Request is one request as the server saw it. Authorization, the secrets of
// a token form and the ids of download links are replaced by "[redacted]".
type Request struct {
	Method string
	Path   string // decoded, without the path prefix
	Query  string // as sent
	Header http.Header
	Body   string
	Status int       // what was answered; 0 while it runs, and when the connection was cut
	Time   time.Time // when it arrived, by the server's clock
	Fault  string    // the scripted fault that took it, or ""

	unknown      bool
	forbidden    bool
	began, ended int
}

func (r *Request) public() Request {
	request := *r
	request.Header = r.Header.Clone()
	return request
}

// requestLog numbers the beginnings and ends of requests, so that overlaps
// can be told without a clock. It is guarded by the server's mutex.
type requestLog struct {
	entries []*Request
	order   int
}

// keep forgets the oldest entries beyond n; a negative n keeps all. It waits
// for twice as many, so that a long log is not moved for each request.
func (l *requestLog) keep(n int) {
	if n >= 0 && len(l.entries) > 2*n {
		l.entries = slices.Clone(l.entries[len(l.entries)-n:])
	}
}

func (l *requestLog) begin(c *call) *Request {
	l.order++
	entry := &Request{
		Method: c.request.Method,
		Path:   redactPath(c.path),
		Query:  c.request.URL.RawQuery,
		Header: c.request.Header.Clone(),
		Body:   redactBody(c),
		Time:   c.now,
		began:  l.order,
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Zerto-Session"} {
		if entry.Header.Get(name) != "" {
			entry.Header.Set(name, redacted)
		}
	}
	l.entries = append(l.entries, entry)
	return entry
}

func (l *requestLog) end(entry *Request, status int) {
	l.order++
	entry.ended, entry.Status = l.order, status
}

func redactPath(path string) string {
	if matchPattern("/v1/downloads/*", path) {
		return "/v1/downloads/" + redacted
	}
	return path
}

// redactBody hides the secrets of a form wherever it was sent to: a client may
// have the address of the token endpoint wrong.
func redactBody(c *call) string {
	if isJSON(c.request) && !strings.HasPrefix(strings.ToLower(c.path), "/auth/") {
		return string(c.body)
	}
	form, err := url.ParseQuery(string(c.body))
	if err != nil {
		return redacted
	}
	for _, name := range []string{"password", "client_secret", "refresh_token"} {
		if form.Has(name) {
			form.Set(name, redacted)
		}
	}
	return form.Encode()
}

// matchPattern compares a decoded path with a pattern in which * stands for
// one segment, and ** at the end for any number of them. Case does not
// matter, as it does not to the server's routes.
func matchPattern(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if last := len(want) - 1; want[last] == "**" && len(got) >= last {
		want, got = want[:last], got[:last]
	}
	if len(want) != len(got) {
		return false
	}
	for i, segment := range want {
		if segment != "*" && !strings.EqualFold(segment, got[i]) {
			return false
		}
	}
	return true
}

// matching returns the entries of one method ("" for any) and pattern. The
// caller holds the mutex.
func (l *requestLog) matching(method, pattern string) []*Request {
	var found []*Request
	for _, entry := range l.entries {
		if (method == "" || method == entry.Method) && matchPattern(pattern, entry.Path) {
			found = append(found, entry)
		}
	}
	return found
}

// Requests lists every request so far, in the order of arrival; see
// WithRequestLog.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, 0, len(s.log.entries))
	for _, entry := range s.log.entries {
		all = append(all, entry.public())
	}
	return all
}

// Count counts the requests of a method ("" for any) whose path matches a
// pattern such as "/v1/vpgs/*/checkpoints" or "/v1/**". * is one segment, **
// at the end any number of them; the path prefix does not belong to the
// pattern.
func (s *Server) Count(method, pattern string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log.matching(method, pattern))
}

// MaxInFlight is the greatest number of such requests that were in progress
// at one time.
func (s *Server) MaxInFlight(method, pattern string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	change := map[int]int{}
	for _, entry := range s.log.matching(method, pattern) {
		change[entry.began] = 1
		if entry.ended > 0 {
			change[entry.ended] = -1
		}
	}
	running, greatest := 0, 0
	for _, order := range slices.Sorted(maps.Keys(change)) {
		running += change[order]
		greatest = max(greatest, running)
	}
	return greatest
}

// TokenRequests counts the requests to the token endpoint.
func (s *Server) TokenRequests() int {
	return s.Count(http.MethodPost, "/auth/realms/*/protocol/openid-connect/token")
}

// ForbiddenCalls lists, as "METHOD path", the calls of operations that a
// rewind must never send: live failover, move, commit, rollback and the like.
func (s *Server) ForbiddenCalls() []string {
	return s.calls(func(r *Request) bool { return r.forbidden })
}

// UnknownCalls lists, as "METHOD path", the calls that no route serves.
func (s *Server) UnknownCalls() []string {
	return s.calls(func(r *Request) bool { return r.unknown })
}

func (s *Server) calls(wanted func(*Request) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, entry := range s.log.entries {
		if wanted(entry) {
			found = append(found, entry.Method+" "+entry.Path)
		}
	}
	return found
}
