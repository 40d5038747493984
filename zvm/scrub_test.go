package zvm

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
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
			if got := newScrubber(secret).text(echoed); strings.Trim(got, `"\`) != redacted {
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

func TestSecretThatOverlapsItselfIsScrubbedWhole(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{
		{"abcab", "abcabcab", ""},
		{"]\n0ed]", "]\n0ed]\n0ed]", ""},
		{`"abc"`, `\"abc&#34;abc%22`, ""},
		{";\vx;", ";\vx;\vx; ;", " ;"},
		{"ab\xffab", "ab%ffab\\xffab", ""},
		{"ab+c", "ab+cab%2bc", ""},
	} {
		want := tc[2]
		if got := strings.ReplaceAll(newScrubber(tc[0]).text(tc[1]), redacted, ""); got != want {
			t.Errorf("%q in %q left %q, want %q", tc[0], tc[1], got, want)
		}
	}
}

// An expression of such a secret took longer than a test may, or was too long to be compiled.
func TestLongSecretsOfEscapedCharactersAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []string{`"`, `\`, "€", " a", "\xff", "+"} {
		secret := "x" + strings.Repeat(c, 8_000/len(c)) + "x"
		got := newScrubber(secret).text(secret[1:] + strings.Repeat(secret[:len(secret)-1], 4) + secret)
		if !strings.HasSuffix(got, redacted) {
			t.Errorf("a secret of %q: the text ends with %q", c, got[max(0, len(got)-20):])
		}
	}
}

// A run that is read again from each of its places takes longer than a test may.
func TestLongRunsInATextAreReadOnce(t *testing.T) {
	t.Parallel()
	const n = 1 << 19
	slashes := strings.Repeat(`\`, n)
	for name, run := range map[string]string{"backslashes": slashes, "zeros": slashes + "u0026#x" + strings.Repeat("0", n)} {
		if got := newScrubber("/abc").text("/abc" + run); got != redacted+run {
			t.Errorf("%s behind the secret became %d bytes, %.40q", name, len(got), got)
		}
	}
}

// Every byte of every occurrence as it is goes. What the mark then makes with its neighbors is no secret, even if it reads like one.
func FuzzScrubber(f *testing.F) {
	f.Add("MARKER", "a", "b", 3)
	f.Add("mark\"\\ \xff", "%22", "\\u0022", 0)
	f.Add("\xad000", "\xc6", "0", 12)
	f.Add("00\v0", "0", "0", 15)
	f.Add("]\n0ed]", "]\n0ed", "]", 99)
	f.Add("ed][", "ed%5D%5B", "", 99)
	f.Fuzz(func(t *testing.T, secret, before, after string, limit int) {
		trimmed := strings.TrimSpace(secret)
		if len(trimmed) < shortestScrubbed {
			return
		}
		text := before + secret + after
		s := newScrubber(secret)
		found := make([]bool, len(text))
		for _, at := range s.find(text) {
			for i := at[0]; i < at[1]; i++ {
				found[i] = true
			}
		}
		for from := 0; strings.Contains(text[from:], trimmed); from++ {
			from += strings.Index(text[from:], trimmed)
			if slices.Contains(found[from:from+len(trimmed)], false) {
				t.Fatalf("%q is left in %q at %d", trimmed, text, from)
			}
		}
		kept := 0
		limit = min(max(limit, 0), len(text))
		for _, gone := range found[:limit] {
			if !gone {
				kept++
			}
		}
		if got := s.head(text, limit); len(strings.ReplaceAll(got, redacted, "")) > kept {
			t.Errorf("the first %d of %q became %q", limit, text, got)
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
