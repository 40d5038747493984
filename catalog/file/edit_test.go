package catalogfile_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An edit changes what it has to and leaves every other byte.
func TestPutKeepsCommentsOrderAndIndentation(t *testing.T) {
	t.Parallel()
	mutates := catalog.Entry{Server: "s", Tool: "new", Class: catalog.Mutating}
	for _, tt := range []struct {
		behaviour, before string
		entry             catalog.Entry
		comments          []string
		after             string
	}{
		{
			behaviour: "a file without servers",
			before:    "// mine\n{\n\t\"version\": 1 // the only one\n}\n",
			entry:     mutates,
			after: "// mine\n{\n\t\"version\": 1, // the only one\n\t\"servers\": [\n\t\t{\n\t\t\t\"server\": \"s\",\n\t\t\t\"tools\": [\n" +
				"\t\t\t\t{\"names\": [\"new\"], \"class\": \"mutating\"}\n\t\t\t]\n\t\t}\n\t]\n}\n",
		},
		{
			behaviour: "a file in one line",
			before:    `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a"], "class": "mutating"}]}]}`,
			entry:     mutates,
			after:     `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a"], "class": "mutating"}, {"names": ["new"], "class": "mutating"}]}]}`,
		},
		{
			behaviour: "a comment behind the last tool stays behind it",
			before:    "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n    {\"names\": [\"a\"], \"class\": \"mutating\"} // why\n    // and more\n  ]}]}",
			entry:     mutates,
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n    {\"names\": [\"a\"], \"class\": \"mutating\"}, // why\n    // and more\n    {\"names\": [\"new\"], \"class\": \"mutating\"}\n  ]}]}",
		},
		{
			behaviour: "a trailing comma stays one",
			before:    "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n    {\"names\": [\"a\"], \"class\": \"mutating\"}, // why\n  ],}]}",
			entry:     mutates,
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n    {\"names\": [\"a\"], \"class\": \"mutating\"}, // why\n    {\"names\": [\"new\"], \"class\": \"mutating\"},\n  ],}]}",
		},
		{
			behaviour: "comments of one line in front of what is new",
			before:    "{\n  \"version\": 1,\n  \"servers\": [\n    {\"server\": \"s\", \"tools\": []}\n  ]\n}",
			entry:     mutates,
			comments:  []string{"one", "two"},
			after:     "{\n  \"version\": 1,\n  \"servers\": [\n    {\"server\": \"s\", \"tools\": [\n        // one\n        // two\n        {\"names\": [\"new\"], \"class\": \"mutating\"}\n      ]}\n  ]\n}",
		},
		{
			behaviour: "the line endings of Windows, and no mark",
			before:    "\xef\xbb\xbf{\r\n  \"version\": 1,\r\n  \"servers\": []\r\n}\r\n",
			entry:     mutates,
			after:     "{\r\n  \"version\": 1,\r\n  \"servers\": [\r\n    {\r\n      \"server\": \"s\",\r\n      \"tools\": [\r\n        {\"names\": [\"new\"], \"class\": \"mutating\"}\r\n      ]\r\n    }\r\n  ]\r\n}\r\n",
		},
		{
			behaviour: "a tool that stands alone is rewritten in its place",
			before:    "{\"version\": 1, \"servers\": [{\"server\": \"S\", \"tools\": [\n  {\"names\": [/* it */ \"New\"], /* c */ \"class\": \"unknown\" /* d */, \"target\": [\"vm\"], // gone\n   \"note\": \"kept\"}, // e\n  {\"names\": [\"b\"], \"class\": \"mutating\"}]}]}",
			entry:     mutates,
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"S\", \"tools\": [\n  {\"names\": [/* it */ \"New\"], /* c */ \"class\": \"mutating\" /* d */, // gone\n   \"note\": \"kept\"}, // e\n  {\"names\": [\"b\"], \"class\": \"mutating\"}]}]}",
		},
		{
			behaviour: "a tool among others is taken out of their list",
			before:    "{\"version\": 1, \"servers\": [{\"server\": \"x\", \"aliases\": [\"S\"], \"tools\": [\n  {\"names\": [\"a\", /* it */ \"new\", // b\n    \"b\"], \"class\": \"read_only\"}\n]}]}",
			entry:     mutates,
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"x\", \"aliases\": [\"S\"], \"tools\": [\n  {\"names\": [\"a\", /* it */  // b\n    \"b\"], \"class\": \"read_only\"},\n  {\"names\": [\"new\"], \"class\": \"mutating\"}\n]}]}",
		},
		{
			behaviour: "the last of a list with a trailing comma",
			before:    `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a", "new",], "class": "read_only",},],},],}`,
			entry:     mutates,
			after:     `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a",], "class": "read_only",}, {"names": ["new"], "class": "mutating"},],},],}`,
		},
		{
			behaviour: "comments inside what a tool no longer says, or says otherwise",
			before:    "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n  {\"names\": [\"new\"], \"class\": \"unknown\", \"target\": [/* a */ \"vm\" // b\n  ], \"container\": [\"host\" /* c */, // d\n  ],\n   \"when\": [/* e */ {\"arg\" /* f */: /* g */ \"x\" /* h */, \"is\": true, \"class\": \"mutating\" /* i */} /* j */]}]}]}",
			entry:     catalog.Entry{Server: "s", Tool: "new", Class: catalog.Mutating, Target: []string{"vm"}, Container: []string{"node"}},
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"s\", \"tools\": [\n  {\"names\": [\"new\"], \"class\": \"mutating\", \"target\": [/* a */ \"vm\" // b\n  ], \"container\":  /* c */ // d\n  [\"node\"]/* e */  /* f */ /* g */  /* h */ /* i */ /* j */}]}]}",
		},
		{
			behaviour: "a tool that another server of the group has elsewhere",
			before:    `{"version": 1, "servers": [{"server": "S", "aliases": ["t"], "tools": []}, {"server": "x", "aliases": ["T"], "tools": [{"names": ["NEW"], "class": "unknown"}]}]}`,
			entry:     mutates,
			after:     "{\"version\": 1, \"servers\": [{\"server\": \"S\", \"aliases\": [\"t\"], \"tools\": []}, {\"server\": \"x\", \"aliases\": [\"T\"], \"tools\": [{\"names\": [\"NEW\"], \"class\": \"unknown\"}]}, {\n      \"server\": \"s\",\n      \"tools\": [\n        {\"names\": [\"new\"], \"class\": \"mutating\"}\n      ]\n    }]}",
		},
		{
			behaviour: "a tool of the host itself",
			before:    `{"version": 1, "servers": []}`,
			entry:     catalog.Entry{Tool: "Teleport", BuiltIn: true, Class: catalog.Mutating},
			after:     "{\"version\": 1, \"servers\": [\n    {\n      \"builtIn\": true,\n      \"tools\": [\n        {\"names\": [\"Teleport\"], \"class\": \"mutating\"}\n      ]\n    }\n  ]}",
		},
		{
			behaviour: "everything that an entry may say",
			before:    "{\n  \"version\": 1,\n  \"servers\": [\n    {\n      \"server\": \"s\",\n      \"tools\": [\n        {\"names\": [\"a\"], \"class\": \"mutating\"}\n      ]\n    }\n  ]\n}\n",
			entry: catalog.Entry{
				Server: "s", Tool: "new", Class: catalog.Mutating, Kind: catalog.Undo, Target: []string{"vm"}, Container: []string{"host", "node"},
				Form: catalog.PatternForm, Indirect: []string{"pid"}, Command: []string{"cmd"}, ServerDefault: true, Note: "a \"note\" <&>",
				Ruling: &catalog.Ruling{By: "jane", At: "2026-11-29T10:00:00Z", Basis: catalog.OperatorProven},
			},
			after: "{\n  \"version\": 1,\n  \"servers\": [\n    {\n      \"server\": \"s\",\n      \"tools\": [\n        {\"names\": [\"a\"], \"class\": \"mutating\"},\n" +
				"        {\"names\": [\"new\"], \"class\": \"mutating\", \"kind\": \"undo\", \"target\": [\"vm\"], \"container\": [\"host\", \"node\"], \"form\": \"pattern\", \"indirect\": [\"pid\"], \"command\": [\"cmd\"], \"serverDefault\": true,\n" +
				"         \"note\": \"a \\\"note\\\" <&>\",\n" +
				"         \"ruling\": {\"by\": \"jane\", \"at\": \"2026-11-29T10:00:00Z\", \"basis\": \"operator-proven\"}}\n      ]\n    }\n  ]\n}\n",
		},
	} {
		path := write(t, tt.before)
		err := catalogfile.Update(t.Context(), path, func(e *catalogfile.Edit) error { return e.Put(tt.entry, tt.comments...) })
		if err != nil {
			t.Errorf("%s: %v", tt.behaviour, err)
		}
		if diff := cmp.Diff(tt.after, content(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.behaviour, diff)
		}
	}
}

func TestPutTwiceIsPutOnce(t *testing.T) {
	t.Parallel()
	path := write(t, "{\"version\": 1}")
	entry := catalog.Entry{
		Server: "s", Tool: "a", Class: catalog.ReadOnly,
		Ruling: &catalog.Ruling{By: "jane", At: "2026-11-29T10:00:00Z", Basis: catalog.OperatorProven},
	}
	var texts []string
	for range 2 {
		if err := catalogfile.Update(t.Context(), path, func(e *catalogfile.Edit) error { return e.Put(entry) }); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, content(t, path))
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("the second time changed something (-first +second):\n%s", diff)
	}
}

func TestNothingIsWrittenThatWouldNotBeRead(t *testing.T) {
	t.Parallel()
	before := "{\"version\": 1} // mine"
	stop := errors.New("stop")
	for behaviour, edit := range map[string]func(*catalogfile.Edit) error{
		"an edit that fails": func(e *catalogfile.Edit) error {
			return errors.Join(e.Put(catalog.Entry{Server: "s", Tool: "a"}), stop)
		},
		"a name that hosts refuse":  func(e *catalogfile.Edit) error { return e.Put(catalog.Entry{Server: "s", Tool: "a b"}) },
		"a server without name":     func(e *catalogfile.Edit) error { return e.Put(catalog.Entry{Tool: "a"}) },
		"a comment of two lines":    func(e *catalogfile.Edit) error { return e.Put(catalog.Entry{Server: "s", Tool: "a"}, "x\n}") },
		"a comment with escapes":    func(e *catalogfile.Edit) error { return e.Put(catalog.Entry{Server: "s", Tool: "a"}, "x\x1b[2J") },
		"a comment beyond encoding": func(e *catalogfile.Edit) error { return e.Put(catalog.Entry{Server: "s", Tool: "a"}, "x\xff") },
		"an endless note": func(e *catalogfile.Edit) error {
			return e.Put(catalog.Entry{Server: "s", Tool: "a", Note: strings.Repeat("x", catalogfile.MaxSize)})
		},
	} {
		path := write(t, before)
		if err := catalogfile.Update(t.Context(), path, edit); err == nil {
			t.Errorf("%s: no error", behaviour)
		}
		if got := content(t, path); got != before {
			t.Errorf("%s: the file is now\n%s", behaviour, got)
		}
	}
}

// FuzzPut checks that any edit of any valid file gives a valid file that says the same of every other tool and has all of
// its comments.
// flush takes the blanks around each line of a comment away: those before it are the file's layout, and those behind it are
// dropped when it is laid out.
func flush(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func FuzzPut(f *testing.F) {
	for _, seed := range []string{
		`{"version": 1}`,
		"// c\n{\"version\": 1, // c\n\"servers\": [ // c\n],}",
		`{"version":1,"servers":[{"server":"s","aliases":["t"],"tools":[{"names":["a","b"],"class":"read_only"},{"names":["c"],"class":"unknown","note":"n"}]}]}`,
		"{\"version\":1,\"servers\":[{\"builtIn\":true,\"tools\":[{\"names\":[\"a\"/**/,/**/\"b\",//\n],\"class\":\"mutating\",\"scope\":\"local\"//\n,},/**/]/**/,},]}",
		"{\"version\":1,\"servers\":[{\"server\":\"s\",\"tools\":[{\"names\":[\"a\"],\"class\":\"unknown\",\"when\":[{\"arg\":\"x\",\"is\":true,\"class\":\"read_only\"}]/*x*/}/*y*/]}]//\r\n}",
		"{\"version\":1,\"servers\":[//0 \n/* a \n\t\tb\u00a0\n */]}",
		"{\"version\":1,\"servers\":[{\"server\":\"s\",\"tools\":[{\"names\":[\"a\"],\"class\":\"unknown\",\"target\":[/*x*/\"y\"//z\n]}]}]}",
		`{"version":1,"servers":[{"server":"s","aliases":["t"],"tools":[]},{"server":"t","aliases":["u"],"tools":[{"names":["A"],"class":"unknown"}]}]}`,
		`{"version":1,"servers":[{"builtIn":true,"aliases":["t"],"tools":[]},{"server":"s","aliases":["a b"],"tools":[]}]}`,
		`{"version": 1, "aliases": {"a": "b"}, "policy": {"maxAge": "5m"}, "vmAliases": {"x": "y"}}`,
	} {
		f.Add(seed, "s", "a", uint8(1))
		f.Add(seed, "T", "B", uint8(6))
		f.Add(seed, "", "a", uint8(10))
	}
	f.Fuzz(func(t *testing.T, text, server, tool string, choice uint8) {
		if _, err := catalogfile.Parse("x", []byte(text), now); err != nil {
			return
		}
		entry := catalog.Entry{Server: server, Tool: tool, BuiltIn: choice&8 > 0, Class: catalog.Class(choice & 1 << 1)}
		if choice&4 > 0 {
			entry.Ruling = &catalog.Ruling{By: "jane", At: "2026-11-29T10:00:00Z", Basis: catalog.OperatorProven}
		}
		if choice&2 > 0 {
			entry.Target, entry.Command = []string{"vm"}, []string{"cmd"}
		}
		if _, err := catalog.New(entry); err != nil {
			return
		}
		after, err := catalogfile.Edited([]byte(text), func(e *catalogfile.Edit) error { return e.Put(entry, "why") })
		if err != nil {
			t.Fatalf("%v\n%s\n%+v", err, text, entry)
		}
		got, err := catalogfile.Parse("x", after, now)
		if err != nil {
			t.Fatalf("%v\n%s", err, after)
		}
		left := flush(strings.Join(catalogfile.Comments(after), "\n"))
		for _, comment := range catalogfile.Comments([]byte(text)) {
			if !strings.Contains(left, flush(comment)) {
				t.Errorf("comment %q is lost:\n%s", comment, after)
			}
		}
		name := catalog.Name{Server: server, Tool: tool, BuiltIn: entry.BuiltIn}
		if class := got.Catalog.Classify(name).Class; class != entry.Class {
			t.Errorf("%s is %s, want %s\n%s", name, class, entry.Class, after)
		}
	})
}
