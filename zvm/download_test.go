package zvm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestLinksAreResolved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base, link, want string
		foreign          bool
	}{
		"from the root":                {"https://zvm.example.com", "/v1/downloads/x.y", "https://zvm.example.com/v1/downloads/x.y", false},
		"relative":                     {"https://zvm.example.com", "v1/downloads/x", "https://zvm.example.com/v1/downloads/x", false},
		"relative below a prefix":      {"https://p.example.com/zvm", "v1/downloads/x", "https://p.example.com/zvm/v1/downloads/x", false},
		"root of a server in a prefix": {"https://p.example.com/zvm", "/v1/downloads/x?a=b", "https://p.example.com/zvm/v1/downloads/x?a=b", false},
		"root with the prefix":         {"https://p.example.com/zvm", "/zvm/v1/downloads/x", "https://p.example.com/zvm/v1/downloads/x", false},
		"absolute":                     {"https://zvm.example.com", "https://zvm.example.com/v1/downloads/x#f", "https://zvm.example.com/v1/downloads/x", false},
		"absolute, default port":       {"https://zvm.example.com", "https://ZVM.example.com:443/x", "https://ZVM.example.com:443/x", false},
		"escaped":                      {"https://zvm.example.com", "/v1/downloads/a%2Fb%20c", "https://zvm.example.com/v1/downloads/a%2Fb%20c", false},
		"blank around":                 {"https://zvm.example.com", " /x\r\n", "https://zvm.example.com/x", false},
		"other host":                   {"https://zvm.example.com", "https://evil.example.com/x", "", true},
		"other port":                   {"https://zvm.example.com", "https://zvm.example.com:8443/x", "", true},
		"weaker scheme":                {"https://zvm.example.com", "http://zvm.example.com/x", "", true},
		"host without scheme":          {"https://zvm.example.com", "//evil.example.com/x", "", true},
		"host that ends alike":         {"https://zvm.example.com", "https://zvm.example.com.evil.example/x", "", true},
		"user that looks like a host":  {"https://zvm.example.com", "https://zvm.example.com@evil.example.com/x", "", true},
		"user":                         {"https://zvm.example.com", "https://u:p@zvm.example.com/x", "", true},
		"other scheme":                 {"https://zvm.example.com", "file:///etc/passwd", "", true},
		"opaque":                       {"https://zvm.example.com", "mailto:a@b", "", true},
		"empty":                        {"https://zvm.example.com", " ", "", false},
		"broken":                       {"https://zvm.example.com", "https://[MARKER", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{api: replies(`file`, 200)}
			var got string
			s.api = func(req *http.Request) (*http.Response, error) {
				got = req.URL.String()
				return reply(req, 200, "file", "Content-Type", "application/octet-stream"), nil
			}
			c := newTestClient(t, tc.base, WithTransport(s))
			resp, err := c.open(t.Context(), call{op: "Download"}, tc.link)
			if err == nil {
				defer closeBody(resp.Body)
			}
			if (err == nil) != (tc.want != "") || got != tc.want || errors.Is(err, ErrForeignOrigin) != tc.foreign {
				t.Errorf("requested %q, %v", got, err)
			}
			if err != nil && (len(s.requests) != 0 || strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "MARKER")) {
				t.Errorf("%d requests, error is %v", len(s.requests), err)
			}
		})
	}
}

// download reads a whole download.
func download(t *testing.T, c *Client, link string) (string, error) {
	t.Helper()
	resp, err := c.open(t.Context(), call{op: "Download"}, link)
	if err != nil {
		return "", err
	}
	defer closeBody(resp.Body)
	if resp.Request != nil {
		t.Error("the answer carries the request with token and link")
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestDownloadCarriesTheTokenAndHidesTheLink(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	link := "/v1/downloads/MARKER-guid?sig=MARKER-sig%2B"
	s := &script{}
	s.api = func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Authorization") != "Bearer "+tokenNumber(1) || req.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("headers are %v", req.Header)
		}
		switch len(s.calls()) {
		case 1:
			return reply(req, 404, `<html>Cannot GET `+req.URL.String()+` (`+req.URL.Path+`)</html>`), nil
		case 2:
			return nil, errors.New("read: connection reset by MARKER-guid")
		}
		return reply(req, 200, "file", "Content-Type", "application/octet-stream"), nil
	}
	c := s.client(t, WithLogger(logger), WithRetry(RetryPolicy{}))
	for range 2 {
		_, err := download(t, c, link)
		e := asError(t, err)
		if e.Path != downloadPath {
			t.Errorf("path is %q", e.Path)
		}
		wantNoMarker(t, "the error", err.Error()+e.Message+string(e.Body))
	}
	if body, err := download(t, c, link); body != "file" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	wantNoMarker(t, "the log", out.String())
}

func TestPageInsteadOfAFile(t *testing.T) {
	t.Parallel()
	page := func(header ...string) responder {
		return func(req *http.Request) (*http.Response, error) {
			return reply(req, 200, "<html>Sign in</html>", append(header, "Content-Type", "text/html")...), nil
		}
	}
	s := &script{api: page()}
	if _, err := download(t, s.client(t), "/x"); !errors.Is(err, errMarkup) {
		t.Errorf("a login page: %v", err)
	}
	s = &script{api: page("Content-Disposition", `attachment; filename="index.html"`)}
	if _, err := download(t, s.client(t), "/x"); err != nil {
		t.Errorf("an HTML file: %v", err)
	}
}

func TestDownloadObeysItsContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, "start")
		w.(http.Flusher).Flush()
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := f.client(t).open(ctx, call{op: "Download"}, "/v1/downloads/x")
	if err != nil {
		t.Fatal(err)
	}
	defer closeBody(resp.Body)
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestShortDownloadIsAnError(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 400),
		"chunked": "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) { cut(w, sent) })
			resp, err := f.client(t).open(t.Context(), call{op: "Download"}, "/v1/downloads/x")
			if err != nil {
				t.Fatal(err)
			}
			defer closeBody(resp.Body)
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A link to another origin is followed only when that one is allowed. No token goes there, and no redirect leads on from there.
func TestLaw7_AnAllowedDownloadOriginNeverSeesTheToken(t *testing.T) {
	t.Parallel()
	var home string
	files := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Authorization"))+len(r.Header.Values("Cookie")) != 0 {
			t.Error("it was shown a token")
		}
		switch r.URL.Path {
		case "/back":
			http.Redirect(w, r, home+"/v1/downloads/x", http.StatusFound)
		case "/refused":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "no MARKER-ticket")
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, "file")
		}
	})
	var asked atomic.Int64
	f := newFakeServer(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	home = f.URL
	trust := f.pool()
	trust.AddCert(files.Certificate())
	allowing := f.client(t, WithRootCAs(trust), WithDownloadOrigin("https://other.example.com"), WithDownloadOrigin(strings.ToUpper(files.URL)+"/"))
	if body, err := download(t, allowing, files.URL+"/x?t=MARKER-ticket"); body != "file" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	for path, want := range map[string]error{"/back": ErrForeignOrigin, "/refused": ErrUnauthorized} {
		_, err := download(t, allowing, files.URL+path+"?t=MARKER-ticket")
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		} else {
			wantNoMarker(t, "the error", err.Error())
		}
	}
	if asked.Load() != 0 || files.logins.Load() != 0 || f.logins.Load() != 0 {
		t.Errorf("%d requests came back, %d and %d logins", asked.Load(), files.logins.Load(), f.logins.Load())
	}
	for _, c := range []*Client{f.client(t), f.client(t, WithDownloadOrigin("https://127.0.0.1:1"))} {
		if _, err := download(t, c, files.URL+"/x"); !errors.Is(err, ErrForeignOrigin) {
			t.Errorf("got %v, want ErrForeignOrigin", err)
		}
	}
}

func TestADownloadOriginIsSchemeHostAndPort(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"", "files.example.com", "http://files.example.com", "https://u:MARKER-p@files.example.com", "https://files.example.com/x", "https://files.example.com?x"} {
		_, err := New("https://zvm.example.com", Password(testUser, testPassword), WithDownloadOrigin(origin))
		var refused *OptionError
		if !errors.As(err, &refused) || refused.Option != "WithDownloadOrigin" || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%q: got %v", origin, err)
		}
	}
}
