package catalogfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

var now = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenReadsWhatAPersonWrote(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{
		"comments and trailing commas":         "// ours\n{\"version\": 1, /* all */ \"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\",], \"class\": \"mutating\",},],},],}\n// end\n",
		"a comment at the very end":            "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\"], \"class\": \"mutating\"}]}]} // end",
		"a byte order mark":                    "\xef\xbb\xbf// ours\n{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\"], \"class\": \"mutating\"}]}]}",
		"carriage returns":                     "{\r\n\"version\": 1, // one\r\n\"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\"], \"class\": \"mutating\"}]}]\r\n}",
		"what looks like a comment in a text":  `{"version": 1, "servers": [{"server": "s", "source": "https://x /* y", "tools": [{"names": ["a"], "class": "mutating", "note": "[[[[\"{{"}]}]}`,
		"brackets without end in a comment":    "{\"version\": 1, // " + strings.Repeat("[", 100) + "\n/* " + strings.Repeat("{", 100) + "*/ \"servers\": [{\"server\": \"s\", \"tools\": [{\"names\": [\"a\"], \"class\": \"mutating\"}]}]}",
		"words of YAML that stay what is said": `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a"], "class": "mutating"}]}, {"server": "no", "tools": [{"names": ["on", "y", "null", "1e3", "010", "0x1F"], "class": "read_only"}]}]}`,
	} {
		f, err := catalogfile.Open(write(t, text), now)
		if err != nil {
			t.Errorf("%s: %v", behaviour, err)
			continue
		}
		if got := f.Catalog.Classify(catalog.Name{Server: "s", Tool: "a"}); got.Class != catalog.Mutating {
			t.Errorf("%s: s/a is %+v", behaviour, got)
		}
	}
}

// A fault is told with the line and the column of an editor, in a file with comments as in one without.
func TestOpenRefusesWithPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ behaviour, text, want string }{
		{"an empty file", "", `1:1: the catalogue is empty; an empty one is {"version": 1}`},
		{"nothing but comments", "// nothing\n/* here */\n", `1:1: the catalogue is empty; an empty one is {"version": 1}`},
		{"a comment without end", "{\"version\": 1 /* ", `1:15: parsing comment: unexpected EOF`},
		{"a file that ends too early", "{\"version\": 1,\n", `2:1: parsing value: unexpected EOF`},
		{"a file that ends in its first line", "{", `1:2: parsing value: unexpected EOF`},
		{"two commas", "{\"version\": 1,,}", `1:15: invalid character ',' at start of value`},
		{"a second document", "{\"version\": 1}\n// more\n{\"version\": 1}", `3:1: invalid character '{' after top-level value`},
		{"a YAML document mark", "{\"version\": 1}\n---\n{}", `2:1: invalid character '-' after top-level value`},
		{"trailing garbage", "{\"version\": 1} x", `1:16: invalid character 'x' after top-level value`},
		{"a fault behind letters beyond ASCII", "{\"vérsiön\" 1}", `1:12: invalid character '1' after object name`},
		{"a key twice", "{\"version\": 1, // é\n\"version\": 1}", `2:1: key "version" is given twice; the first is in line 1`},
		{"a key twice in two cases", "{\"version\": 1, \"aliases\": {}, \"Aliases\": {}}", `1:31: keys "aliases" and "Aliases" differ only in case`},
		{"a misspelt key", "{\"version\": 1, /* é */ \"servrs\": []}", `1:25: unknown key "servrs"; known here are aliases, policy, serverDefaults, servers, version, vmAliases`},
		{"a name that hosts refuse", "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n{\"names\": [\"flr.browse\"], \"class\": \"mutating\"}]}]}", `2:12: s/flr.browse: tool name "flr.browse" has a character that hosts refuse: only letters, digits and "_-" are taken`},
		{"UTF-16 with a mark", "\xff\xfe{\x00}\x00", `1:1: the file is UTF-16; save it as UTF-8`},
		{"UTF-16 without", "{\x00}\x00", `1:1: the file is UTF-16; save it as UTF-8`},
		{"Latin-1 in a comment", "{\"version\": 1} // \xe4", `1:19: the file is not UTF-8`},
		{"bottomless nesting", `{"version": 1, "servers": ` + strings.Repeat("[", 1<<20), `1:90: nested too deep for a catalogue`},
		{"bottomless nesting of comments and lists", strings.Repeat("[/**/\n", 1<<16), `65:1: nested too deep for a catalogue`},
	} {
		path := write(t, tt.text)
		f, err := catalogfile.Open(path, now)
		var damaged *catalogfile.DamagedError
		var place *catalog.LoadError
		if f != nil || !errors.As(err, &damaged) || !errors.As(err, &place) {
			t.Errorf("%s: file %v, error %v", tt.behaviour, f, err)
			continue
		}
		if diff := cmp.Diff(path+":"+tt.want, err.Error()); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tt.behaviour, diff)
		}
	}
}

func TestEveryProblemHasTheFilesName(t *testing.T) {
	t.Parallel()
	path := write(t, "{\"version\": 2,\n\"x\": 1}")
	_, err := catalogfile.Open(path, now)
	want := path + ":1:13: version must be 1\n" + path + `:2:1: unknown key "x"; known here are aliases, policy, serverDefaults, servers, version, vmAliases`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestOpenTakesNothingButAFileOfSomeSize(t *testing.T) {
	t.Parallel()
	if _, err := catalogfile.Open(filepath.Join(t.TempDir(), "none"), now); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := catalogfile.Open(t.TempDir(), now); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	text := `{"version": 1}`
	for size, ok := range map[int]bool{catalogfile.MaxSize: true, catalogfile.MaxSize + 1: false} {
		if _, err := catalogfile.Open(write(t, text+strings.Repeat(" ", size-len(text))), now); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestARulingThatExpiredCountsForNothing(t *testing.T) {
	t.Parallel()
	path := write(t, `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a"], "class": "read_only",
		"ruling": {"by": "jane", "at": "2026-11-01T00:00:00Z", "until": "2026-11-29T10:00:00Z", "basis": "operator-proven"}}]}]}`)
	name := catalog.Name{Server: "s", Tool: "a"}
	for moment, want := range map[time.Time]catalog.Class{
		now.Add(-time.Second): catalog.ReadOnly, now: catalog.Unknown,
		now.In(time.FixedZone("east", 3600)): catalog.Unknown,
	} {
		f, err := catalogfile.Open(path, moment)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Catalog.ClassifyCall(name, nil); got.Class != want {
			t.Errorf("at %s: %s, want %s (%s)", moment, got.Class, want, got.Reason)
		}
	}
}

func TestOpenReadsPolicyAndAliasesOfVMs(t *testing.T) {
	t.Parallel()
	f, err := catalogfile.Open(write(t, `{"version": 1, "policy": {"onMutating": "guard", "maxAge": "1h", "localVM": "build01"}, "vmAliases": {"web": "web01"}}`), now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalogfile.Policy{OnMutating: catalog.GuardFirst, MaxAge: time.Hour, LocalVM: "build01"}, f.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"web": "web01"}, f.VMAliases); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
}
