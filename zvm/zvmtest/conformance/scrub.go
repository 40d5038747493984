package conformance

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scrubber takes out of a text what does not belong in a report. Pseudonyms
// are keyed by the run: within a report one name has one pseudonym, and
// nobody can find the name by trying.
type scrubber struct {
	key   []byte
	omit  bool
	names map[string]string
}

func newScrubber(omit bool) *scrubber {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &scrubber{key: key, omit: omit, names: map[string]string{}}
}

// name registers a name of a kind of thing.
func (s *scrubber) name(kind, name string) {
	if name == "" {
		return
	}
	pseudonym := kind + "#" + s.hash(strings.ToLower(name))
	if s.omit {
		pseudonym = "(" + kind + ")"
	}
	s.names[strings.ToLower(name)] = pseudonym
}

// host registers the host of a base URL.
func (s *scrubber) host(base string) {
	if u, err := url.Parse(base); err == nil {
		s.name("host", u.Host)
		s.name("host", u.Hostname())
	}
}

func (s *scrubber) hash(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

var (
	guids     = regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	morefs    = regexp.MustCompile(`(?i)\b(vm|host|datastore|group|network)-\d+\b`)
	addresses = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b|(?i)\b[0-9a-f]{1,4}(:[0-9a-f]{0,4}){3,7}\b`)
	bearers   = regexp.MustCompile(`(?i)bearer\s+[^\s"]{8,}|\beyJ[\w-]{8,}\S*`)
)

// text returns the text without names, ids, addresses and tokens. Longer
// names go first, so that no name leaves the rest of another one behind.
func (s *scrubber) text(text string) string {
	text = bearers.ReplaceAllString(text, "(token)")
	names := make([]string, 0, len(s.names))
	for name := range s.names {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var alternatives []string
	for _, name := range names {
		alternatives = append(alternatives, regexp.QuoteMeta(name))
	}
	if len(alternatives) > 0 {
		known := regexp.MustCompile(`(?i)` + strings.Join(alternatives, "|"))
		text = known.ReplaceAllStringFunc(text, func(found string) string { return s.names[strings.ToLower(found)] })
	}
	text = guids.ReplaceAllString(text, "(id)")
	text = morefs.ReplaceAllString(text, "(id)")
	return addresses.ReplaceAllString(text, "(address)")
}
