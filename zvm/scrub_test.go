package zvm

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

func asJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

var encodings = map[string]func(string) string{
	"as it is":     func(s string) string { return s },
	"query":        url.QueryEscape,
	"path":         url.PathEscape,
	"lower query":  func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"query twice":  func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"JSON":         asJSON,
	"JSON twice":   func(s string) string { return asJSON(asJSON(s)) },
	"slashes":      func(s string) string { return strings.ReplaceAll(asJSON(s), "/", `\/`) },
	"all JSON":     func(s string) string { return strings.ReplaceAll(strconv.QuoteToASCII(s), `\"`, `\u0022`) },
	"Go":           strconv.Quote,
	"HTML":         html.EscapeString,
	"HTML in JSON": func(s string) string { return asJSON(html.EscapeString(s)) },
	"XML": func(s string) string {
		return strings.NewReplacer(`&`, "&amp;", `"`, "&quot;", `'`, "&apos;").Replace(s)
	},
	"folded":       func(s string) string { return strings.Join(strings.Fields(s), " ") },
	"base64":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64url":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
}

func TestSecretsAreFoundInEveryEncoding(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"marker-plain.word_1", `marker"quote`, `marker\back\\slash`, "marker&amp<tag>'s", "marker/slash+plus=", "marker  two\tblanks\nline",
		"märker€𝄞", "????", `"'\&`,
	} {
		for name, encode := range encodings {
			echoed := encode(secret)
			if name == "lower query" {
				secret, echoed = strings.ToLower(secret), strings.ToLower(echoed)
			}
			want := strings.Replace(echoed, strings.Trim(echoed, `"=`), redacted, 1)
			got := newScrubber(secret).text("before " + echoed + " after")
			if left := strings.TrimRight(strings.Trim(got[len("before "):len(got)-len(" after")], `"=\`), "%3D"); left != redacted {
				t.Errorf("%s of %q: got %q, want like %q", name, secret, got, want)
			}
		}
	}
}

func TestEveryWhiteSpaceInASecretIsFound(t *testing.T) {
	t.Parallel()
	for r := range unicode.MaxRune {
		if !unicode.IsSpace(r) {
			continue
		}
		secret := "marker" + string(r) + "word"
		for name, encode := range encodings {
			if strings.HasPrefix(name, "base64") {
				continue // found as bytes, whatever they are
			}
			echoed := encode(secret)
			if got := newScrubber(secret).text(echoed); strings.Trim(got, `"\\`) != redacted {
				t.Errorf("%s of %q: %q became %q", name, secret, echoed, got)
			}
		}
	}
}

func TestOrdinaryTextIsNotScrubbed(t *testing.T) {
	t.Parallel()
	const text = `the VPG "web" is busy (100 %), see /v1/vpgs`
	for _, secret := range []string{"", "VPG", "MARKER-other", "   ", "vpg \" web"} {
		if got := newScrubber(secret).text(text); got != text {
			t.Errorf("without %q it reads %q", secret, got)
		}
	}
}

func TestSecretsThatTouchOrOverlapAreScrubbedWhole(t *testing.T) {
	t.Parallel()
	s := newScrubber("abcdef", "defghi", "cdef")
	for text, want := range map[string]string{
		"abcdefghi": redacted, "abcdefabcdef": redacted + redacted, "xcdefx": "x" + redacted + "x",
	} {
		if got := s.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestSecretAtTheCutIsScrubbedWhole(t *testing.T) {
	t.Parallel()
	const secret = "MARKER-secret"
	for at := range 40 {
		text := strings.Repeat("x", at) + secret + strings.Repeat("y", 40)
		got := newScrubber(secret).head(text, 20)
		want := strings.Repeat("x", min(at, 20))
		if at < 20 {
			want += redacted + strings.Repeat("y", max(20-at-len(secret), 0))
		}
		if got != want {
			t.Errorf("secret at %d: %q, want %q", at, got, want)
		}
	}
}

func FuzzScrubber(f *testing.F) {
	f.Add("MARKER", "a", "b", 3)
	f.Add("mark\"\\ \xff", "%22", "\\u0022", 0)
	f.Add("\xad000", "\xc6", "0", 12)
	f.Add("00\v0", "0", "0", 15)
	f.Fuzz(func(t *testing.T, secret, before, after string, limit int) {
		trimmed := strings.TrimSpace(secret)
		if len(trimmed) < shortestScrubbed || strings.Contains(redacted, trimmed) {
			return
		}
		text := before + secret + after
		got := newScrubber(secret).head(text, max(limit, 0))
		if strings.Contains(got, trimmed) && !strings.Contains(before+redacted+after, trimmed) {
			t.Errorf("%q is in %q", trimmed, got)
		}
	})
}

// A refusal of full size, after a call with a token of usual size and a link.
func BenchmarkScrubberPage(b *testing.B) {
	token, link := strings.Repeat("aB3-_.", 300), "/v1/downloads/"+strings.Repeat("f00d", 9)+"/etc/nginx.conf?t=a+b"
	page := strings.Repeat("no secret in here, ", maxErrorBody/19) + token
	for b.Loop() {
		newScrubber(token, link).text(page)
	}
}
