package zvmtest

import (
	"context"
	"crypto/tls"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"
)

// link is a download link of an FLR session.
type link struct {
	id    string
	mount *flrSession
	paths []string
	zip   bool
	name  string    // the file name that the answer suggests
	until time.Time // zero: as long as the session
	used  bool
}

// handleDownload answers a link to the chosen paths (zvm-wire 6.5).
func handleDownload(s *Server, c *call) reply {
	m, refusal := s.readyMount(c)
	if m == nil {
		return refusal
	}
	var body struct{ PathList []string }
	if err := c.decode(&body); err != nil || len(body.PathList) == 0 {
		return fail(http.StatusBadRequest, "pathList is an array with one path at least")
	}
	l := &link{id: newSecret("link"), mount: m, paths: body.PathList}
	if s.cfg.linkTTL > 0 {
		l.until = c.now.Add(s.cfg.linkTTL)
	}
	return reply{later: func() reply {
		if refusal, refused := s.planDownload(l); refused {
			return refusal
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.links[l.id] = l
		return s.answerLink(l)
	}}
}

// planDownload checks the paths of a link and decides between raw and zip.
func (s *Server) planDownload(l *link) (reply, bool) {
	var only node
	for _, path := range l.paths {
		self, _, err := l.mount.tree.browse(path)
		if err != nil {
			return guestFailure(err, path), true
		}
		if !self.downloadable {
			return fail(http.StatusInternalServerError, "path "+path+" cannot be downloaded: "+self.reason), true
		}
		only = self
	}
	l.name = "files.zip"
	l.zip = len(l.paths) > 1 || only.kind != kindFile || s.cfg.has(DownloadZipped)
	if !l.zip {
		l.name = only.path[lastSlash(only.path)+1:]
	}
	if l.zip && s.cfg.has(DownloadSeveralRefused) && !s.cfg.has(DownloadZipped) {
		return fail(http.StatusInternalServerError, "one file at a time"), true
	}
	return reply{}, false
}

func lastSlash(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return i
		}
	}
	return -1
}

// answerLink is the form in which the link is handed out. The caller holds
// the mutex.
func (s *Server) answerLink(l *link) reply {
	path := "/v1/downloads/" + l.id
	switch {
	case s.cfg.has(DownloadBytes):
		return s.streamLink(l)
	case s.cfg.has(DownloadNotALink):
		return ok("the files are being prepared")
	case s.cfg.has(DownloadLinkUnquoted):
		return reply{status: http.StatusOK, raw: []byte(s.cfg.prefix + path), contentType: "text/plain"}
	case s.cfg.has(DownloadLinkAbsolute):
		return ok(s.url + path)
	case s.cfg.has(DownloadLinkForeign):
		origin, err := s.foreignURL()
		if err != nil {
			return fail(http.StatusInternalServerError, err.Error())
		}
		return ok(origin + path)
	}
	return ok(s.cfg.prefix + path)
}

func handleLink(s *Server, c *call) reply {
	if !s.cfg.has(DownloadWithoutBearer) && s.bearer(c) == nil {
		return s.unauthorized()
	}
	return s.follow(c.params["link"], c.now)
}

// follow serves a link if it still lives. The caller holds the mutex.
func (s *Server) follow(id string, now time.Time) reply {
	l, known := s.links[id]
	alive := known && slices.Contains(s.mounts, l.mount) && (l.until.IsZero() || now.Before(l.until))
	if !alive || l.used && s.cfg.has(DownloadLinkSingleUse) {
		return fail(http.StatusNotFound, "the download link is not valid")
	}
	l.used = true
	if s.cfg.has(DownloadLoginPage) {
		return reply{
			status:      http.StatusOK,
			raw:         []byte("<!DOCTYPE html><html><head><title>Sign in</title></head><body><form></form></body></html>"),
			contentType: "text/html; charset=utf-8",
		}
	}
	return s.streamLink(l)
}

// streamLink sends the data of a link. The session counts it as a running
// task meanwhile.
func (s *Server) streamLink(l *link) reply {
	return reply{stream: func(w http.ResponseWriter, r *http.Request) {
		s.countDownload(l.mount, 1)
		defer s.countDownload(l.mount, -1)
		h := w.Header()
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": l.name}))
		if l.zip {
			h.Set("Content-Type", "application/zip")
			// What was sent cannot be taken back: a failure has to cut.
			if err := l.mount.tree.archive(w, l.paths); err != nil {
				cut(w)
			}
			return
		}
		content, _, err := l.mount.tree.open(l.paths[0])
		if err != nil {
			s.writeReply(w, guestFailure(err, l.paths[0]))
			return
		}
		if closer, ok := content.(io.Closer); ok {
			defer func() { _ = closer.Close() }()
		}
		h.Set("Content-Type", "application/octet-stream")
		if s.cfg.has(DownloadChunked) {
			// Once the headers are gone, no length can be added to them.
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(w, content)
			return
		}
		// ServeContent reads any method but HEAD as a GET.
		http.ServeContent(w, r, "", time.Time{}, content)
	}}
}

func (s *Server) countDownload(m *flrSession, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.downloads += by
}

// ForeignRequest is a request to the other origin of DownloadLinkForeign.
type ForeignRequest struct {
	Method        string
	Authorization bool // whether it carried an Authorization header
}

// foreignOrigin is a second listener that serves download links.
type foreignOrigin struct {
	s        *Server
	url      string
	http     *http.Server
	served   chan struct{}
	requests []ForeignRequest // guarded by the server's mutex
}

// foreignURL starts the other origin when it is first needed. The caller
// holds the mutex.
func (s *Server) foreignURL() (string, error) {
	switch {
	case s.foreign != nil:
		return s.foreign.url, nil
	case s.closed:
		return "", http.ErrServerClosed
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	f := &foreignOrigin{s: s, url: "https://" + listener.Addr().String(), served: make(chan struct{})}
	f.http = newHTTPServer(f)
	s.foreign = f
	go func() {
		defer close(f.served)
		_ = f.http.Serve(tls.NewListener(listener, s.tls.serverConfig()))
	}()
	return f.url, nil
}

// ServeHTTP serves a download link to anybody.
func (f *foreignOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.s.enter() {
		cut(w)
		return
	}
	defer func() {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		f.s.leave()
	}()
	f.s.mu.Lock()
	f.requests = append(f.requests, ForeignRequest{r.Method, r.Header.Get("Authorization") != ""})
	rep := fail(http.StatusNotFound, "not here")
	if segments, err := splitPath(r.URL.EscapedPath()); err == nil && len(segments) == 3 {
		rep = f.s.follow(segments[2], f.s.Now())
	}
	f.s.mu.Unlock()
	if rep.stream != nil {
		rep.stream(w, r)
		return
	}
	f.s.writeReply(w, rep)
}

// ForeignRequests lists what the other origin was sent.
func (s *Server) ForeignRequests() []ForeignRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign == nil {
		return nil
	}
	return slices.Clone(s.foreign.requests)
}
