package zvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReasonIsFoundInEveryShape(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want reason
	}{
		"ZVM":                   {`{"Message":"Valid License is not provided "}`, reason{"Valid License is not provided", "", true}},
		"lower case":            {`{"message":"no"}`, reason{"no", "", true}},
		"framed":                {`{"Message":"Exception occurred in API : Invalid session"}`, reason{"Invalid session", "", true}},
		"framed with semicolon": {`{"Message":"Exception occurred in API:The VPG is busy;"}`, reason{"The VPG is busy", "", true}},
		"empty frame":           {`{"Message":"Exception occurred in API:"}`, reason{"Exception occurred in API:", "", true}},
		"analytics":             {`{"errorCode":50,"errorMessage":"General authorization error"}`, reason{"General authorization error", "50", true}},
		"problem details":       {`{"type":"t","title":"Bad Request","status":400,"detail":"bad id"}`, reason{"bad id", "", true}},
		"problem with fields":   {`{"title":"Invalid.","errors":{"b":["two","three"],"a":["one"]}}`, reason{"Invalid.; a: one; b: two, three", "", true}},
		"Keycloak":              {`{"error":"invalid_grant","error_description":"Session not active"}`, reason{"Session not active", "invalid_grant", true}},
		"Keycloak, short":       {`{"error":"unknown_error"}`, reason{"unknown_error", "", true}},
		"old UI":                {`{"faultString":"broken","faultCode":"F7","HttpErroCode":500}`, reason{"broken", "F7", true}},
		"nested":                {`{"error":{"message":"inside","code":1}}`, reason{"inside", "", true}},
		"order":                 {`{"title":"t","detail":"d","Message":"m"}`, reason{"m", "", true}},
		"empty before full":     {`{"Message":"","detail":"d"}`, reason{"d", "", true}},
		"null":                  {`{"Message":null,"errorMessage":null,"title":"t"}`, reason{"t", "", true}},
		"string":                {`"not today"`, reason{"not today", "", true}},
		"BOM":                   {"\xef\xbb\xbf" + `{"Message":"m"}`, reason{"m", "", true}},
		"HTML":                  {"<html><head><title>x</title><style>b{}</style></head><body><h1>502</h1>\n<p>Bad &amp; <b>broken</b></body></html>", reason{"502 Bad & broken", "", false}},
		"XML":                   {`<?xml version="1.0"?><Error><Text>no</Text></Error>`, reason{"no", "", false}},
		"plain text":            {"service\tunavailable\x1b", reason{`service unavailable\u001b`, "", false}},
		"empty":                 {"", reason{}},
		"object without reason": {`{"a":1}`, reason{`{"a":1}`, "", false}},
		"list":                  {`[1]`, reason{`[1]`, "", false}},
		"long":                  {strings.Repeat("x", 500), reason{strings.Repeat("x", 200) + "…", "", false}},
	} {
		if diff := cmp.Diff(tc.want, readReason([]byte(tc.body), nil), cmp.AllowUnexported(reason{})); diff != "" {
			t.Errorf("%s: reason mismatch (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnusableAnswersAreDescribed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		contentType, body string
		mentions          []string
	}{
		"login page":       {"text/html; charset=utf-8", "<html><title>t</title><body>Sign in to Zerto</body></html>", []string{"text/html", "Sign in to Zerto", "page for humans"}},
		"page called JSON": {"application/json", "\xef\xbb\xbf <html>Sign in</html>", []string{"Sign in"}},
		"XML":              {"application/xml", "<ArrayOfVmApi/>", []string{"application/xml"}},
		"empty":            {"", "", []string{"no content type", "empty"}},
		"cut":              {"application/json", `{"Name":"we`, []string{"unexpected end"}},
		"tail":             {"application/json", `{"Name":"web01"} x`, []string{"after top-level value"}},
		"other type":       {"application/json", `{"Name":7}`, []string{"Name"}},
		"text":             {"text/plain", "All is \x07 well", []string{"text/plain", `All is \\u0007 well`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{api: func(req *http.Request) (*http.Response, error) {
				return reply(req, 200, tc.body, "Content-Type", tc.contentType), nil
			}}
			err := s.client(t).read(t.Context(), getCall(), &struct{ Name string }{})
			e := asError(t, err)
			if e.Status != 200 || e.ContentType != tc.contentType || e.Temporary() || len(s.calls()) != 1 {
				t.Errorf("error is %+v after %d calls", e, len(s.calls()))
			}
			for _, text := range append(tc.mentions, "GET /v1/things", "200") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not mention %q", err, text)
				}
			}
		})
	}
}

func streamOf(t *testing.T, body string, opts ...Option) ([]string, error) {
	t.Helper()
	s := &script{api: func(req *http.Request) (*http.Response, error) {
		resp := reply(req, 200, "")
		resp.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))
		return resp, nil
	}}
	var got []string
	err := s.client(t, opts...).stream(t.Context(), getCall(), func(dec *json.Decoder) error {
		var v *string
		if err := dec.Decode(&v); err != nil {
			return err
		}
		if v == nil {
			got = append(got, "null")
			return nil
		}
		got = append(got, *v)
		return nil
	})
	return got, err
}

func TestStreamReadsLists(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`["a","b"]`:                 {"a", "b"},
		`[]`:                        nil,
		` null `:                    nil,
		"\xef\xbb\xbf[ \"a\" ]\r\n": {"a"},
		`["a",null,"b"]`:            {"a", "null", "b"},
	} {
		got, err := streamOf(t, body)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, list mismatch (-want +got):\n%s", body, err, diff)
		}
	}
}

func TestStreamRefusesWhatIsNoList(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty": "", "BOM alone": "\xef\xbb\xbf", "object": `{"a":1}`, "string": `"a"`, "number": `1`, "page": `<html>Sign in</html>`,
		"cut within an element": `["a","b`, "cut after an element": `["a"`, "cut after a comma": `["a",`, "cut at the start": `[`,
		"tail": `["a"]["b"]`, "tail of text": `["a"] x`, "tail after null": `null 1`, "other type": `["a",7]`, "missing comma": `["a" "b"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := streamOf(t, body)
			e := asError(t, err)
			if e.Temporary() || e.Op != "GetThing" || e.Status != 200 {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestStreamIsBounded(t *testing.T) {
	t.Parallel()
	body := `["` + strings.Repeat(`a","`, 1000) + `"]`
	if _, err := streamOf(t, body, WithMaxListBytes(int64(len(body)))); err != nil {
		t.Errorf("a list at the limit: %v", err)
	}
	if _, err := streamOf(t, body, WithMaxListBytes(int64(len(body)-1))); !errors.Is(err, errTooLarge) || asError(t, err).Temporary() {
		t.Errorf("a list beyond the limit: %v", err)
	}
}

func TestStreamReturnsTheCallersErrorUntouched(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	s := &script{api: replies(`["a","b"]`, 200)}
	calls := 0
	err := s.client(t).stream(t.Context(), getCall(), func(dec *json.Decoder) error {
		calls++
		_, _ = dec.Token()
		return enough
	})
	if err != enough || calls != 1 { //nolint:errorlint // untouched means identical
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestStreamNoticesAnElementThatIsNotRead(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`["a"]`, 200)}
	if err := s.client(t).stream(t.Context(), getCall(), func(*json.Decoder) error { return nil }); !errors.Is(err, errStuck) {
		t.Errorf("got %v", err)
	}
}

func TestStreamThatBreaksOffIsTemporary(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
		cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[\"a\",")
	})
	err := f.client(t).stream(t.Context(), getCall(), func(dec *json.Decoder) error {
		var s string
		return dec.Decode(&s)
	})
	if !errors.Is(err, ErrUnavailable) || !asError(t, err).Temporary() {
		t.Errorf("error is %v", err)
	}
}

func TestWriteRawReturnsWhatTheServerSent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `"id"`, `{"Id":"x"}`, `bare-id`, `null`} {
		s := &script{api: replies("\xef\xbb\xbf"+body, 200)}
		got, err := s.client(t).writeRaw(t.Context(), postCall())
		if err != nil || string(got.body) != body {
			t.Errorf("%q: got %+v, %v", body, got, err)
		}
	}
}

func TestAPIPath(t *testing.T) {
	t.Parallel()
	for want, segments := range map[string][]string{
		"/v1/vms/a.vm-38":           {"v1", "vms", "a.vm-38"},
		"/v1/R&D%20+%20Test/100%25": {"v1", "R&D + Test", "100%"},
		"/%C3%A9":                   {"é"},
		"/...":                      {"..."},
		"/%252e%252e":               {"%2e%2e"},
	} {
		if got, err := apiPath(segments...); err != nil || got != want {
			t.Errorf("apiPath(%q) = %q, %v, want %q", segments, got, err, want)
		}
	}
	for _, bad := range [][]string{
		nil, {""}, {"v1", ""}, {"."}, {".."}, {"../vpgs"}, {"a/b"}, {`a\b`}, {"x?y"}, {"x#y"}, {"a\x00"}, {"a\nb"}, {"a\u0085b"}, {"\xff"},
	} {
		if got, err := apiPath(bad...); err == nil {
			t.Errorf("apiPath(%q) = %q, want an error", bad, got)
		}
	}
}

func TestQueryIsEscapedOnce(t *testing.T) {
	t.Parallel()
	const name = "R&D + Test #1/é 100%;a=b"
	var got string
	s := &script{api: func(req *http.Request) (*http.Response, error) {
		got = req.URL.Query().Get("name")
		return reply(req, 200, `{}`), nil
	}}
	cl := getCall()
	cl.query = map[string][]string{"name": {name}}
	if err := s.client(t).read(t.Context(), cl, &struct{}{}); err != nil || got != name {
		t.Errorf("the server saw %q, %v", got, err)
	}
}

func TestBodyThatCannotBeEncodedIsNotSent(t *testing.T) {
	t.Parallel()
	s := &script{api: replies(`{}`, 200)}
	cl := postCall()
	cl.body = func() {}
	err := s.client(t).write(t.Context(), cl, nil)
	if err == nil || errors.Is(err, ErrOutcomeUnknown) || len(s.requests) != 0 {
		t.Errorf("error is %v", err)
	}
	_ = fmt.Sprint(err)
}
