package zvmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// access says who may call an operation.
type access int

const (
	public    access = iota
	read             // every role
	write            // not the viewer, not the FLR operator
	flr              // as write, and the FLR operator by switch
	linkOnly         // download links, which check the bearer themselves
	forbidden        // known, and never to be sent by a rewind
)

type handler func(s *Server, c *call) reply

type route struct {
	method  string
	pattern string // {name} stands for one segment
	access  access
	handle  handler
	prepare func(s *Server, c *call) // work before the mutex is taken
	want    []string                 // the pattern's segments
}

// call is one request on its way through a handler.
type call struct {
	request *http.Request
	path    string            // decoded, without the prefix
	params  map[string]string // by the names of the pattern
	query   url.Values        // names in lower case
	body    []byte
	now     time.Time
	account account
	entry   *Request
}

// param returns a query parameter, whatever the case of its name.
func (c *call) param(name string) string { return c.query.Get(strings.ToLower(name)) }

// decode reads the JSON body. Names match in any case, as ASP.NET does.
func (c *call) decode(into any) error {
	return json.Unmarshal(bytes.TrimPrefix(c.body, []byte("\xef\xbb\xbf")), into)
}

// Operation is one row of the server's support table.
type Operation struct {
	Method string
	Path   string // with {name} for a variable segment
	Served bool   // false: known, counted and answered 403
}

// Support lists the operations that the server knows, from its own routes.
// Everything else is a 501 and a problem.
func (s *Server) Support() []Operation {
	var ops []Operation
	for _, r := range s.routes {
		ops = append(ops, Operation{r.method, r.pattern, r.access != forbidden})
	}
	return ops
}

// maxBody bounds what the server reads of a request.
const maxBody = 8 << 20

// ServeHTTP answers one request of the API or the token endpoint.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		cut(w)
		return
	}
	c := s.newCall(w, r)
	status := &statusWriter{ResponseWriter: w}
	defer s.finish(c, status)
	s.serveFaulty(r.Context(), status, c)
}

// finish notes how a request ended, tells whoever wants to know, and counts
// it out.
func (s *Server) finish(c *call, w *statusWriter) {
	s.mu.Lock()
	s.log.end(c.entry, w.status)
	s.log.keep(s.cfg.requestLog)
	ended := c.entry.public()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave()
	}()
	if s.cfg.onRequest != nil {
		s.cfg.onRequest(ended)
	}
}

func (s *Server) newCall(w http.ResponseWriter, r *http.Request) *call {
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	c := &call{request: r, body: body, query: url.Values{}, params: map[string]string{}}
	for name, values := range r.URL.Query() {
		key := strings.ToLower(name)
		c.query[key] = append(c.query[key], values...)
	}
	c.path = r.URL.Path
	if rest, found := strings.CutPrefix(r.URL.Path, s.cfg.prefix); found {
		c.path = rest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.Now()
	c.entry = s.log.begin(c)
	return c
}

// process runs the operation of a call and returns what to send.
func (s *Server) process(c *call) (rep reply) {
	defer func() {
		if p := recover(); p != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.problem(fmt.Sprintf("panic in %s %s: %v\n%s", c.request.Method, c.entry.Path, p, debug.Stack()))
			rep = fail(http.StatusInternalServerError, "the simulator panicked")
		}
	}()
	rt, allowed := s.match(c)
	if rt == nil {
		return s.unknownCall(c, allowed)
	}
	if rt.prepare != nil {
		rt.prepare(s, c)
	}
	rep = s.decide(rt, c)
	for rep.later != nil {
		rep = rep.later()
	}
	return s.shapeError(rep)
}

// decide runs the handler under the mutex.
func (s *Server) decide(rt *route, c *call) reply {
	c.now = s.lock()
	defer s.mu.Unlock()
	if rt.access == forbidden {
		c.entry.forbidden = true
		s.problem("forbidden call: " + c.request.Method + " " + c.entry.Path)
	}
	if !s.cfg.reaches(c) {
		s.problem("call beyond the reach: " + c.request.Method + " " + c.entry.Path)
	}
	if refusal, refused := s.authorize(rt, c); refused {
		return refusal
	}
	if rt.access == forbidden {
		return fail(http.StatusForbidden, "the simulator does not do this: "+rt.method+" "+rt.pattern)
	}
	if rt.access != public && len(c.body) > 0 && !isJSON(c.request) {
		return fail(http.StatusUnsupportedMediaType, "the Content-Type of a body is application/json")
	}
	if refusal, refused := s.refuseMirrored(rt, c); refused {
		return refusal
	}
	return rt.handle(s, c)
}

// reaches reports whether a call is one that WithReach allows.
func (c *config) reaches(asked *call) bool {
	return c.reach == nil || slices.ContainsFunc(c.reach, func(allowed string) bool {
		method, pattern, _ := strings.Cut(allowed, " ")
		return method == asked.request.Method && matchPattern(pattern, asked.path)
	})
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}

// match finds the route of a call, or the methods that its path knows.
func (s *Server) match(c *call) (*route, []string) {
	if !strings.HasPrefix(c.request.URL.Path, s.cfg.prefix+"/") {
		return nil, nil
	}
	segments, err := splitPath(strings.TrimPrefix(c.request.URL.EscapedPath(), s.cfg.prefix))
	if err != nil {
		return nil, nil
	}
	var allowed []string
	for i := range s.routes {
		rt := &s.routes[i]
		params, matched := rt.params(segments)
		if !matched {
			continue
		}
		if rt.method == c.request.Method {
			c.params = params
			return rt, nil
		}
		allowed = append(allowed, rt.method)
	}
	return nil, allowed
}

func splitPath(escaped string) ([]string, error) {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return nil, err
		}
		segments[i] = decoded
	}
	return segments, nil
}

func (rt *route) params(segments []string) (map[string]string, bool) {
	if len(rt.want) != len(segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range rt.want {
		switch name, variable := strings.CutPrefix(segment, "{"); {
		case variable && segments[i] != "":
			params[strings.TrimSuffix(name, "}")] = segments[i]
		case variable || !strings.EqualFold(segment, segments[i]):
			return nil, false
		}
	}
	return params, true
}

// unknownCall answers what no route serves, and makes it a problem.
func (s *Server) unknownCall(c *call, allowed []string) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := c.request.Method + " " + c.entry.Path
	s.problem("unknown call: " + what)
	c.entry.unknown = true
	if allowed != nil {
		rep := fail(http.StatusMethodNotAllowed, "the method is not allowed here: "+what)
		rep.header = http.Header{"Allow": allowed}
		return rep
	}
	return fail(http.StatusNotImplemented, "the simulator does not implement "+what)
}
