package zvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// echoToken is long enough for its halves to be secrets.
const echoToken = "MARKER-0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"

// shownBy is all that an error shows to somebody who takes it apart.
func shownBy(err error) string {
	var all strings.Builder
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		fmt.Fprintf(&all, "%v\n%+v\n%#v\n", err, err, err)
		var e *Error
		if errors.As(err, &e) {
			fmt.Fprintln(&all, e.Message, e.Code, e.ContentType, string(e.Body))
		}
		switch inner := err.(type) { //nolint:errorlint // each error of the chain shows itself
		case interface{ Unwrap() error }:
			walk(inner.Unwrap())
		case interface{ Unwrap() []error }:
			for _, one := range inner.Unwrap() {
				walk(one)
			}
		}
	}
	walk(err)
	return all.String()
}

// wantNoneOf fails if what err or the log shows holds one of the secrets.
func wantNoneOf(t *testing.T, err error, log *bytes.Buffer, secrets ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{shownBy(err), log.String()} {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%q is shown: …%s…", secret, text[max(0, at-80):min(len(text), at+len(secret)+20)])
			}
		}
	}
}

func debugLog() (Option, *bytes.Buffer) {
	var out bytes.Buffer
	return WithLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))), &out
}

// echoed is an Authorization header that comes back in another place.
func echoed(req *http.Request, status int, before, after string, header ...string) (*http.Response, error) {
	return reply(req, status, before+req.Header.Get("Authorization")+after, header...), nil
}

func TestEchoedTokenIsInNoErrorAndNoLogLine(t *testing.T) {
	t.Parallel()
	insert := func(ctx context.Context, c *Client) error {
		_, err := c.InsertCheckpoint(ctx, "vpg", "tag")
		return err
	}
	listVMs := func(ctx context.Context, c *Client) error {
		_, err := c.ListVMs(ctx, VMFilter{})
		return err
	}
	getVPG := func(ctx context.Context, c *Client) error {
		_, err := c.GetVPG(ctx, "vpg")
		return err
	}
	getTask := func(ctx context.Context, c *Client) error {
		_, err := c.GetTask(ctx, "task")
		return err
	}
	bearer := func(req *http.Request) string { return req.Header.Get("Authorization") }
	for name, tt := range map[string]struct {
		api  responder
		call func(context.Context, *Client) error
	}{
		"in an answer without a task id": {func(r *http.Request) (*http.Response, error) { return echoed(r, 200, `{"debug":"`, `"}`) }, insert},
		"cut off at the end of a message": {func(r *http.Request) (*http.Response, error) {
			return echoed(r, 403, strings.Repeat("x", 150), "")
		}, listVMs},
		"cut off at the end of a page": {func(r *http.Request) (*http.Response, error) {
			return echoed(r, 403, "<p>"+strings.Repeat("x", 150)+"<b>", "")
		}, listVMs},
		"cut off at the end of the body": {func(r *http.Request) (*http.Response, error) {
			return echoed(r, 403, strings.Repeat("x", maxErrorBody-40), strings.Repeat("y", 2*scrubMargin))
		}, listVMs},
		"cut off at the end of a list's head": {func(r *http.Request) (*http.Response, error) {
			return echoed(r, 200, strings.Repeat("x", shownHead-40), strings.Repeat("y", 2*scrubMargin))
		}, listVMs},
		"as an identifier of a row": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, `[{"VmIdentifier":"`+bearer(r)+`","Link":{"identifier":"other"}}]`), nil
		}, listVMs},
		"as an identifier of a VPG": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, `{"VpgIdentifier":"`+bearer(r)+`","Link":{"identifier":"other"}}`), nil
		}, getVPG},
		"as an identifier of a task": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, `{"TaskIdentifier":"`+bearer(r)+`","Link":{"identifier":"other"}}`), nil
		}, getTask},
		"as the content type of an answer": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, "<html>", "Content-Type", "text/html; x="+bearer(r)), nil
		}, insert},
		"as the content type of a refusal": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 403, "", "Content-Type", "x="+bearer(r)), nil
		}, insert},
		"in the host of a redirect": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 302, "", "Location", "https://"+strings.TrimPrefix(bearer(r), "Bearer ")+".example.com/"), nil
		}, listVMs},
		"in the chain of a network's error": {func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("connection: %w", fmt.Errorf("malformed HTTP response %q", bearer(r)))
		}, insert},
		"cut off at the end of a network's error": {func(r *http.Request) (*http.Response, error) {
			return nil, errors.New(strings.Repeat("x", shownPart-40) + bearer(r))
		}, listVMs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logger, log := debugLog()
			s := &script{api: tt.api}
			c, err := New("https://zvm.example.com", Tokens(&staticSource{echoToken}), WithTransport(s), quickRetry, logger)
			if err != nil {
				t.Fatal(err)
			}
			wantNoneOf(t, tt.call(t.Context(), c), log, echoToken[:20], strings.ToLower(echoToken[:20]))
		})
	}
}

// What is taken out of an error leaves it what it is.
func TestScrubbedErrorMatchesWhatItMatched(t *testing.T) {
	t.Parallel()
	x := &exchange{}
	x.hide(echoToken)
	plain := &sendError{cause: io.ErrUnexpectedEOF}
	if got := x.clean(plain); got != plain { //nolint:errorlint // the same error, not one like it
		t.Errorf("an error without a secret became %v", got)
	}
	got := x.clean(&sendError{cause: fmt.Errorf("%s: %w", echoToken, io.ErrUnexpectedEOF), unsent: true})
	if !errors.Is(got, io.ErrUnexpectedEOF) || !unsent(got) || !connectionFailed(got) || strings.Contains(shownBy(got), echoToken) {
		t.Errorf("got %v", shownBy(got))
	}
}

func TestEchoedPasswordIsInNoErrorHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for name, password := range map[string]string{
		"quote": `MARKER-pass"word-long`, "backslash": `MARKER-pass\word-long`, "ampersand": `MARKER-pass&word-long`,
		"blanks": "MARKER-pass  word-long", "tag": "MARKER-pass<br>word-long", "line": " MARKER-pass\nword-long ",
	} {
		for form, write := range map[string]func(string) string{
			"JSON": func(s string) string {
				return `{"error":"invalid_grant","error_description":` + asJSON("refused: "+s) + `}`
			},
			"plain": func(s string) string { return "refused: " + s },
			"page":  func(s string) string { return "<html><p>refused: " + s + "</p></html>" },
		} {
			t.Run(name+" in "+form, func(t *testing.T) {
				t.Parallel()
				logger, log := debugLog()
				s := &script{login: func(req *http.Request) (*http.Response, error) {
					if err := req.ParseForm(); err != nil {
						return nil, err
					}
					return reply(req, 401, write(req.PostForm.Get("password"))), nil
				}}
				c, err := New("https://zvm.example.com", Password(testUser, password), WithTransport(s), logger)
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.ListVMs(t.Context(), VMFilter{})
				wantNoneOf(t, err, log, "word-long", "MARKER")
			})
		}
	}
}

func TestDownloadLinkIsInNoError(t *testing.T) {
	t.Parallel()
	link := func(body string) responder { return replies(body, 200) }
	first := link(`"/dl/MARKER-first"`)
	redirect := func(target string) responder {
		return func(req *http.Request) (*http.Response, error) { return reply(req, 302, "", "Location", target), nil }
	}
	notFound := func(req *http.Request) (*http.Response, error) {
		body, _ := json.Marshal(map[string]string{"Message": "no resource " + req.URL.Path + " for " + req.URL.RawQuery})
		return reply(req, 404, string(body)), nil
	}
	for name, tt := range map[string]struct {
		ask    responder
		follow map[string]responder // by path
	}{
		"echoed by the server":                      {first, map[string]responder{"/dl/MARKER-first": notFound}},
		"a ticket before the file's name":           {link(`"/dl/MARKER-long-ticket/nginx.conf"`), map[string]responder{"/dl/MARKER-long-ticket/nginx.conf": notFound}},
		"a redirect that is no URL":                 {first, map[string]responder{"/dl/MARKER-first": redirect("https://%zz/download?token=MARKER-second")}},
		"a redirect elsewhere":                      {first, map[string]responder{"/dl/MARKER-first": redirect("https://evil.example.com/MARKER-second")}},
		"a redirect whose target the server echoes": {first, map[string]responder{"/dl/MARKER-first": redirect("/dl/MARKER-second"), "/dl/MARKER-second": notFound}},
		"a redirect's query that the server echoes": {first, map[string]responder{"/dl/MARKER-first": redirect("/dl/x?t=MARKER-second"), "/dl/x": notFound}},
		"a link in XML": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, `<string>/dl/MARKER-x</string>`, "Content-Type", "application/xml"), nil
		}, nil},
		"a link in HTML": {func(r *http.Request) (*http.Response, error) {
			return reply(r, 200, `<a href="/dl/MARKER-x">/dl/MARKER-x</a>`, "Content-Type", "text/html"), nil
		}, nil},
		"a link in an object": {link(`{"url":"/dl/MARKER-x"}`), nil},
		"a link in the refusal's place of a content": {first, map[string]responder{"/dl/MARKER-first": func(r *http.Request) (*http.Response, error) {
			return reply(r, 410, r.URL.Path, "Content-Type", r.URL.Path), nil
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logger, log := debugLog()
			s := &script{api: func(req *http.Request) (*http.Response, error) {
				if follow := tt.follow[req.URL.Path]; follow != nil {
					return follow(req)
				}
				return tt.ask(req)
			}}
			_, err := s.client(t, logger).DownloadFLR(t.Context(), "session", "C/file")
			wantNoneOf(t, err, log, "MARKER")
		})
	}
}

// A part of a file looks like a file.
func TestPartOfAFileIsNoDownload(t *testing.T) {
	t.Parallel()
	for name, linked := range map[string]bool{"behind a link": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{api: func(req *http.Request) (*http.Response, error) {
				if linked && req.Method == http.MethodPost {
					return reply(req, 200, `"/dl/MARKER-link"`), nil
				}
				return reply(req, 206, "part", "Content-Type", "application/octet-stream", "Content-Range", "bytes 0-3/4000"), nil
			}}
			d, err := s.client(t).DownloadFLR(t.Context(), "session", "C/file")
			if e := asError(t, err); d != nil || e.Status != 206 || !errors.Is(err, errPart) || errors.Is(err, ErrUnavailable) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
