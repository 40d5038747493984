package zvm

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzReadReason(f *testing.F) {
	for _, seed := range []string{
		`{"Message":"no"}`, `{"errors":{"a":["b",null]}}`, `{"error":{"error":{"error":1}}}`, `"x"`, `<html><b>`, "\xef\xbb\xbf{", `{"Message":{}}`, "\xff\xfe",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := readReason(body, nil)
		e := &Error{Op: "Op", Status: 500, Message: r.message, Code: r.code, Body: body}
		if text := e.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", text)
		}
	})
}

func FuzzParseIssued(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"t","expires_in":"60"}`, `{"access_token":"t","expires_in":1e400}`, `{"access_token":7}`, `{"expires_in":-0}`, `{"access_token":"t","expires_in":1e-10}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseIssued(body)
		if err != nil {
			return
		}
		if checkBearer(got.value) != nil || got.life <= 0 || got.life > longestLife || got.refreshLife < 0 {
			t.Errorf("accepted life %s, refresh life %s", got.life, got.refreshLife)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"3", "0", "-5", "1.5", "99999999999", "1e308", "Inf", "NaN", "0x1p9", "Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, text string, attempt int) {
		asked := retryAfter(http.Header{"Retry-After": {text}})
		if asked < 0 || asked > maxRetryAfter {
			t.Errorf("asked for %s", asked)
		}
		p := RetryPolicy{Max: 5}
		low, high := p.bounds()
		if wait := p.wait(attempt&15+1, asked); wait < low || wait > high {
			t.Errorf("waits %s", wait)
		}
	})
}

func FuzzAPIPath(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "%2e%2e", "é", "a b", "x?y", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, segment string) {
		path, err := apiPath("v1", segment, "end")
		if err != nil {
			return
		}
		u, err := url.Parse("https://zvm.example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		if u.Path != "/v1/"+segment+"/end" || u.RawQuery != "" || u.Fragment != "" || u.JoinPath().Path != u.Path {
			t.Errorf("%q became %q", segment, u.Path)
		}
	})
}

func FuzzListReader(f *testing.F) {
	for _, seed := range []string{`["a"]`, `[]`, `null`, `[null,{"a":[1]}]`, `[`, `[1,]`, `[1] x`, `{"a":1}`, `<html>`, "\xef\xbb\xbf[]", ``} {
		f.Add(seed)
	}
	f.Add(strings.Repeat("[", 10001) + strings.Repeat("]", 10001))
	f.Fuzz(func(t *testing.T, body string) {
		count := 0
		err := newListReader(strings.NewReader(body), int64(len(body))).each(func(dec *json.Decoder) error {
			var v any
			count++
			return dec.Decode(&v)
		})
		var whole []any
		want := json.Unmarshal([]byte(strings.TrimPrefix(body, "\xef\xbb\xbf")), &whole)
		if want != nil && strings.Contains(want.Error(), "exceeded max depth") {
			return // an element may be as deep as the whole
		}
		if (err == nil) != (want == nil) {
			t.Errorf("streamed: %v, whole: %v", err, want)
		}
		if err == nil && count != len(whole) {
			t.Errorf("%d elements, want %d", count, len(whole))
		}
	})
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"/v1/downloads/x", "v1/x", "//evil/x", `https:\\evil`, `/\evil`, "https://zvm.example.com:443/x", "https://zvm.example.com@evil/", "x:y", "?a", "#", ".."} {
		f.Add(seed)
	}
	base, err := parseBaseURL("https://zvm.example.com/prefix")
	if err != nil {
		f.Fatal(err)
	}
	s := &sender{base: base}
	f.Fuzz(func(t *testing.T, link string) {
		target, err := s.resolve(link)
		if err != nil {
			return
		}
		// What matters is where the text of the target leads, not what this value claims.
		again, err := url.Parse(target.String())
		if err != nil {
			t.Fatalf("%q cannot be parsed", target)
		}
		if again.Scheme != "https" || !strings.EqualFold(again.Hostname(), "zvm.example.com") || again.User != nil {
			t.Errorf("%q leads to %q", link, again)
		}
	})
}

func FuzzBaseURL(f *testing.F) {
	for _, seed := range []string{"https://zvm.example.com", "http://localhost:1/x", "https://u:p@h", "https://h?q", "https://h/#", "https://h/a/../b", "https://[::1]:2/", "//h", "https://[::1%25E]é]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseBaseURL(text)
		if err != nil {
			return
		}
		again, err := parseBaseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q became %q, then %v, %v", text, u, again, err)
		}
	})
}
