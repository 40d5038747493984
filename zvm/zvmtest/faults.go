package zvmtest

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// Fault is a scripted answer to requests that match. It acts once unless
// Times or Always says otherwise, and not before it has an action. Several
// faults see a request in the order of their creation; the first whose turn
// it is takes it, and the others do not count it.
//
//	s.On("GET", "/v1/tasks/*").After(2).Times(3).Header("Retry-After", "1").Status(503, "")
type Fault struct {
	s       *Server
	method  string
	pattern string
	faultPlan
	skip  int
	left  int // negative: without end
	fired int
}

// faultPlan is what a fault does with a request; a copy of it is carried out
// without the mutex.
type faultPlan struct {
	kind        faultKind
	delay       time.Duration
	header      http.Header
	status      int
	body        string
	contentType string
	bytes       int
	interval    time.Duration
	arrival     <-chan struct{}
}

type faultKind int

const (
	faultNone faultKind = iota
	faultAnswer
	faultAnswerAfter
	faultHang
	faultContentType
	faultDrip
	faultTruncate
	faultCutBefore
	faultCutAfter
	faultLate
)

// On scripts a fault for a method ("" for any) and a pattern as Count takes.
func (s *Server) On(method, pattern string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Fault{s: s, method: method, pattern: pattern, left: 1}
	s.faults = append(s.faults, f)
	return f
}

func (f *Fault) set(change func()) *Fault {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	change()
	return f
}

// After lets n matching requests pass first.
func (f *Fault) After(n int) *Fault { return f.set(func() { f.skip = n }) }

// Times makes the fault act n times.
func (f *Fault) Times(n int) *Fault { return f.set(func() { f.left = n }) }

// Always makes the fault act without end.
func (f *Fault) Always() *Fault { return f.set(func() { f.left = -1 }) }

// Header adds a header to the answer, the scripted or the real one.
func (f *Fault) Header(key, value string) *Fault {
	return f.set(func() {
		if f.header == nil {
			f.header = http.Header{}
		}
		f.header.Add(key, value)
	})
}

// Delay waits for d of real time first. Without another action the request is
// then processed as ever.
func (f *Fault) Delay(d time.Duration) *Fault { return f.set(func() { f.delay = d }) }

// Status answers with a code and a JSON body, and does not process the
// request. An empty body is sent without a Content-Type.
func (f *Fault) Status(code int, body string) *Fault {
	return f.answer(faultAnswer, code, body, jsonUnlessEmpty(body))
}

// StatusAfter processes the request and throws the true answer away: the
// "502 after commit".
func (f *Fault) StatusAfter(code int, body string) *Fault {
	return f.answer(faultAnswerAfter, code, body, jsonUnlessEmpty(body))
}

// Answer is Status with a body of any kind: the HTML page of a proxy, say.
func (f *Fault) Answer(code int, body, contentType string) *Fault {
	return f.answer(faultAnswer, code, body, contentType)
}

// Garbage answers 200 with a body of any kind, without processing.
func (f *Fault) Garbage(body, contentType string) *Fault {
	return f.Answer(http.StatusOK, body, contentType)
}

// ContentType processes the request and sends the true answer under another
// type.
func (f *Fault) ContentType(contentType string) *Fault {
	return f.set(func() { f.kind, f.contentType = faultContentType, contentType })
}

// Drip processes the request and sends the body n bytes at a time, with a
// pause of real time before each.
func (f *Fault) Drip(n int, pause time.Duration) *Fault {
	return f.set(func() { f.kind, f.bytes, f.interval = faultDrip, max(1, n), pause })
}

// Redirect answers 307, which asks the client to send method and body again,
// to url. For a 302: f.Header("Location", url).Status(302, "").
func (f *Fault) Redirect(url string) *Fault {
	return f.Header("Location", url).answer(faultAnswer, http.StatusTemporaryRedirect, "", "")
}

// Hang reads the request and never answers, until the client gives up or the
// server closes.
func (f *Fault) Hang() *Fault { return f.set(func() { f.kind = faultHang }) }

// Truncate processes the request, sends the headers and n bytes of the body,
// and cuts the connection.
func (f *Fault) Truncate(n int) *Fault {
	return f.set(func() { f.kind, f.bytes = faultTruncate, n })
}

// CutBefore cuts the connection without processing the request.
func (f *Fault) CutBefore() *Fault { return f.set(func() { f.kind = faultCutBefore }) }

// CutAfter processes the request and cuts the connection without an answer.
func (f *Fault) CutAfter() *Fault { return f.set(func() { f.kind = faultCutAfter }) }

// Late processes the request once arrival is closed, even if its client has
// given up by then: a request that was still on its way. The connection is
// cut without an answer.
func (f *Fault) Late(arrival <-chan struct{}) *Fault {
	return f.set(func() { f.kind, f.arrival = faultLate, arrival })
}

func (f *Fault) answer(kind faultKind, code int, body, contentType string) *Fault {
	return f.set(func() {
		f.kind, f.status, f.body, f.contentType = kind, code, body, contentType
	})
}

func jsonUnlessEmpty(body string) string {
	if body == "" {
		return ""
	}
	return "application/json; charset=utf-8"
}

// String names what the fault waits for, as Unused lists it.
func (f *Fault) String() string { return "fault on " + f.method + " " + f.pattern }

func (p *faultPlan) armed() bool { return p.kind != faultNone || p.delay > 0 || p.header != nil }

// Unused lists the scripted faults that never acted and the scripted outcomes
// that no task took.
func (s *Server) Unused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unused []string
	for _, f := range s.faults {
		if f.fired == 0 {
			unused = append(unused, f.String())
		}
	}
	for _, o := range s.outcomes {
		unused = append(unused, "outcome of a task "+o.kind)
	}
	return unused
}

// takeFault picks the fault whose turn it is with a request.
func (s *Server) takeFault(c *call) faultPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if !f.armed() || f.left == 0 || f.method != "" && f.method != c.request.Method || !matchPattern(f.pattern, c.path) {
			continue
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		f.left = max(f.left-1, -1)
		f.fired++
		c.entry.Fault = f.String()
		plan := f.faultPlan
		plan.header = f.header.Clone()
		return plan
	}
	return faultPlan{}
}

// serveFaulty answers a request as the scripted fault wants, or truly.
func (s *Server) serveFaulty(ctx context.Context, w http.ResponseWriter, c *call) {
	plan := s.takeFault(c)
	if !s.pause(ctx, plan.delay) {
		cut(w)
		return
	}
	for key, values := range plan.header {
		w.Header()[key] = values
	}
	scripted := reply{status: plan.status, raw: []byte(plan.body), contentType: plan.contentType}
	switch plan.kind {
	case faultNone:
		s.send(w, c, s.process(c))
	case faultAnswer:
		s.send(w, c, scripted)
	case faultAnswerAfter:
		_ = s.process(c)
		s.send(w, c, scripted)
	case faultContentType:
		s.send(&retypingWriter{w, plan.contentType}, c, s.process(c))
	case faultDrip:
		s.send(&drippingWriter{w, s, ctx, plan}, c, s.process(c))
	case faultTruncate:
		s.send(&truncatingWriter{w, plan.bytes}, c, s.process(c))
		// The bytes that were written have to leave before the cut.
		_ = http.NewResponseController(w).Flush()
		cut(w)
	case faultCutAfter:
		_ = s.process(c)
		cut(w)
	case faultLate:
		select {
		case <-plan.arrival:
			_ = s.process(c)
		case <-s.stopped:
		}
		cut(w)
	case faultCutBefore:
		cut(w)
	case faultHang:
		select {
		case <-ctx.Done():
		case <-s.stopped:
		}
		cut(w)
	}
}

func (s *Server) send(w http.ResponseWriter, c *call, rep reply) {
	if rep.stream != nil {
		rep.stream(w, c.request)
		return
	}
	s.writeReply(w, rep)
}

// pause waits for d of real time and reports whether the request goes on.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.stopped:
		return false
	}
}

// cut ends the connection under a response: no TLS farewell, so that no
// client can take what it got for the whole.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close()
}
