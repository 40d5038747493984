package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func TestLoadRefusesWithPlace(t *testing.T) {
	t.Parallel()
	tools := func(text string) string {
		return `{"version": 1, "servers": [{"server": "s", "tools": [` + "\n" + text + "\n]}]}"
	}
	for _, tt := range []struct{ behaviour, text, want string }{
		{"an empty file", "", `1:1: the catalogue is empty; an empty one is {"version": 1}`},
		{"a file of blanks", " \n\t\n", `1:1: the catalogue is empty; an empty one is {"version": 1}`},
		{"a comment", "// nothing\n{}", `1:1: invalid character '/' looking for beginning of value`},
		{"a file that ends too early", "{\"version\": 1,\n", `1:15: unexpected end of JSON input`},
		{"a comma too many", "{\"version\": 1,\n}", `2:1: invalid character '}' looking for beginning of object key string`},
		{"a second document", "{\"version\": 1}\n{\"version\": 1}", `2:1: invalid character '{' after top-level value`},
		{"trailing garbage", "{\"version\": 1} x", `1:16: invalid character 'x' after top-level value`},
		{"UTF-16 without mark", string([]byte{'{', 0, '}', 0}), `1:1: the file is UTF-16; save it as UTF-8`},
		{"UTF-16 with mark", utf16LE("{}"), `1:1: the file is UTF-16; save it as UTF-8`},
		{"a byte that is not UTF-8", "{\"version\": 1,\n \"\xff\": 2}", `2:3: the file is not UTF-8`},
		{"a list at the top", "[]", "1:1: expected an object"},
		{"no version", "{}", `1:1: "version": 1 is missing`},
		{"a version to come", `{"version": 2}`, `1:13: version must be 1`},
		{"a version as text", `{"version": "1"}`, "1:13: version must be 1"},
		{"a version spelled as a fraction", `{"version": 1.0}`, `1:13: version must be 1`},
		{"an unknown key", "{\"version\": 1,\n \"servrs\": []}", `2:2: unknown key "servrs"; known here are aliases, policy, serverDefaults, servers, version, vmAliases`},
		{"a key in another case", `{"version": 1, "Servers": []}`, `1:16: unknown key "Servers"; known here are aliases, policy, serverDefaults, servers, version, vmAliases`},
		{"a key twice", "{\"version\": 1,\n\"version\": 1}", `2:1: key "version" is given twice; the first is in line 1`},
		{"a key twice, once escaped", `{"version": 1, "vers\u0069on": 1}`, `1:16: key "version" is given twice; the first is in line 1`},
		{"a key twice in two cases", "{\"version\": 1,\n  \"servers\": [], \"SERVERS\": []}", "2:18: keys \"servers\" and \"SERVERS\" differ only in case"},
		{"a column counts characters", `{"version": 1, "é": 1, "x": 1}`, "1:16: unknown key \"é\"; known here are aliases, policy, serverDefaults, servers, version, vmAliases\n1:24: unknown key \"x\"; known here are aliases, policy, serverDefaults, servers, version, vmAliases"},
		{"deep nesting", `{"version": 1, "servers": ` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "}", `1:38: nested too deep for a catalogue`},
		{"no tools", `{"version": 1, "servers": [{"server": "s"}]}`, `1:28: "tools" is missing`},
		{"tools that are no list", `{"version": 1, "servers": [{"server": "s", "tools": {}}]}`, `1:53: expected a list`},
		{"no class", tools(`{"names": ["a"]}`), `2:1: "class" is missing`},
		{"no names", tools(`{"class": "mutating"}`), `2:1: "names" must list at least one tool`},
		{"a class of our own making", tools(`{"names": ["a"], "class": "safe"}`), `2:27: class "safe" is not one of ["unknown" "read_only" "mutating"]`},
		{"a class in another case", tools(`{"names": ["a"], "class": "Mutating"}`), `2:27: class "Mutating" is not one of ["unknown" "read_only" "mutating"]`},
		{"a class that is no text", tools(`{"names": ["a"], "class": 2}`), `2:27: expected text in quotes`},
		{"a class of null", tools(`{"names": ["a"], "class": null}`), `2:27: expected text in quotes`},
		{"a flag that is text", tools(`{"names": ["a"], "class": "mutating", "serverDefault": "no"}`), `2:56: expected true or false`},
		{"a target that is no list", tools(`{"names": ["a"], "class": "mutating", "target": "vm"}`), `2:49: expected a list`},
		{"a name with a dot", tools(`{"names": ["flr.browse"], "class": "mutating"}`), `2:12: s/flr.browse: tool name "flr.browse" has a character that hosts refuse: only letters, digits and "_-" are taken`},
		{"a name with a space", tools(`{"names": ["a b"], "class": "mutating"}`), `2:12: s/a b: tool name "a b" has a character that hosts refuse: only letters, digits and "_-" are taken`},
		{"a name beyond ASCII", tools(`{"names": ["ünï"], "class": "mutating"}`), `2:12: s/ünï: tool name "ünï" has a character that hosts refuse: only letters, digits and "_-" are taken`},
		{"a name too long", tools(`{"names": ["` + strings.Repeat("a", 65) + `"], "class": "mutating"}`), `2:12: s/` + strings.Repeat("a", 65) + `: tool name has 65 bytes; hosts take at most 64`},
		{"an empty name", tools(`{"names": [""], "class": "mutating"}`), `2:12: s/: tool name is empty`},
		{"a tool twice", tools("{\"names\": [\"a\"], \"class\": \"mutating\"},\n{\"names\": [\"a\"], \"class\": \"read_only\"}"), `3:12: s/a: described before, as s/a in line 2; names that a host may spell alike are one name`},
		{"a tool twice in two cases", tools(`{"names": ["get_vm", "Get-VM"], "class": "mutating"}`), `2:22: s/Get-VM: described before, as s/get_vm in line 2; names that a host may spell alike are one name`},
		{"a server without name", `{"version": 1, "servers": [{"tools": [{"names": ["a"], "class": "mutating"}]}]}`, `1:50: ?/a: server name is empty`},
		{"a name of lines", tools(`{"names": ["a\n\nb\u001b"], "class": "mutating"}`), `2:12: "s/a\n\nb\x1b": tool name "a\n\nb\x1b" has a character that hosts refuse: only letters, digits and "_-" are taken`},
		{"a server of lines", `{"version": 1, "servers": [{"server": "\n\n", "tools": [{"names": ["a"], "class": "mutating"}]}]}`, `1:68: "\n\n/a": server name "\n\n" has a character that hosts refuse: only letters, digits and "_-." are taken`},
		{"an alias that hosts refuse of a server without tools", `{"version": 1, "servers": [{"server": "s", "aliases": ["a b"], "tools": []}]}`, `1:28: server alias name "a b" has a character that hosts refuse: only letters, digits and "_-." are taken`},
		{"a server without name or tools", `{"version": 1, "servers": [{"tools": []}]}`, `1:28: server name is empty`},
		{"aliases of a built-in without tools", `{"version": 1, "servers": [{"builtIn": true, "aliases": ["a"], "tools": []}]}`, `1:28: a built-in tool has no server and no aliases`},
		{"an endless list of aliases", `{"version": 1, "servers": [{"server": "s", "aliases": ["a"` + strings.Repeat(`, "a"`, 32) + `], "tools": [{"names": ["a"], "class": "mutating"}]}]}`, `1:28: more than 32 aliases, conditions or arguments of a kind`},
		{"an endless list of arguments", tools(`{"names": ["a"], "class": "mutating", "command": ["a"` + strings.Repeat(`, "a"`, 32) + `]}`), `2:12: s/a: more than 32 aliases, conditions or arguments of a kind`},
		{"a built-in with a server", `{"version": 1, "servers": [{"server": "s", "builtIn": true, "tools": [{"names": ["a"], "class": "mutating"}]}]}`, `1:82: a: a built-in tool has no server and no aliases`},
		{"a built-in that looks like a server's tool", `{"version": 1, "servers": [{"builtIn": true, "tools": [{"names": ["a-b"], "class": "mutating"}]}]}`, `1:67: a-b: tool name "a-b" has a character that hosts refuse: only letters, digits and "_" are taken`},
		{"a read-only tool with conditions", tools(`{"names": ["a"], "class": "read_only", "when": [{"arg": "x", "absent": true, "class": "mutating"}]}`), `2:12: s/a: an entry with conditions cannot be read_only by itself`},
		{"a checkpoint that is read-only", tools(`{"names": ["a"], "class": "read_only", "kind": "checkpoint"}`), `2:12: s/a: kind checkpoint needs class mutating and no conditions`},
		{"a condition with two tests", tools(`{"names": ["a"], "class": "unknown", "when": [{"arg": "x", "is": true, "absent": true, "class": "read_only"}]}`), `2:12: s/a: condition on "x" needs exactly one of in, is and absent`},
		{"a condition without test", tools(`{"names": ["a"], "class": "unknown", "when": [{"arg": "x", "class": "read_only"}]}`), `2:12: s/a: condition on "x" needs exactly one of in, is and absent`},
		{"a condition without class", tools(`{"names": ["a"], "class": "unknown", "when": [{"arg": "x", "absent": true}]}`), `2:12: s/a: condition on "x" needs class read_only or mutating`},
		{"a target that is the container too", tools(`{"names": ["a"], "class": "mutating", "target": ["host"], "container": ["Host"]}`), `2:12: s/a: argument "Host" is listed twice`},
		{"a server's machine that is a pattern", `{"version": 1, "serverDefaults": {"my-ssh": "web*"}}`, `1:35: default machine of server "my-ssh": holds a pattern, or something that is not the name of one machine`},
		{"aliases that are no object", `{"version": 1, "aliases": []}`, `1:27: expected an object`},
		{"an argument without name", tools(`{"names": ["a"], "class": "mutating", "target": [""]}`), `2:12: s/a: argument name is empty`},
		{"a condition on nothing", tools(`{"names": ["a"], "class": "unknown", "when": [{"absent": true, "class": "read_only"}]}`), `2:12: s/a: argument name is empty`},
		{"an alias for nothing", `{"version": 1, "aliases": {"my-pve": ""}}`, `1:28: server name is empty`},
		{"a policy of our own making", `{"version": 1, "policy": {"onMutating": "allow"}}`, `1:41: onMutating "allow" is not one of ["require" "guard"]`},
		{"an age without unit", `{"version": 1, "policy": {"maxAge": "30"}}`, `1:37: maxAge is whole hours, minutes or seconds above zero, such as "30m" or "1h30m"`},
		{"an age of nothing", `{"version": 1, "policy": {"maxAge": "0m"}}`, `1:37: maxAge is whole hours, minutes or seconds above zero, such as "30m" or "1h30m"`},
		{"an age below nothing", `{"version": 1, "policy": {"maxAge": "-1m"}}`, `1:37: maxAge is whole hours, minutes or seconds above zero, such as "30m" or "1h30m"`},
		{"an age past counting", `{"version": 1, "policy": {"maxAge": "99999999h"}}`, `1:37: maxAge is whole hours, minutes or seconds above zero, such as "30m" or "1h30m"`},
		{"an age as number", `{"version": 1, "policy": {"maxAge": 30}}`, `1:37: expected text in quotes`},
		{"a local VM that is a pattern", `{"version": 1, "policy": {"localVM": "web*"}}`, `1:38: localVM holds a pattern, or something that is not the name of one machine`},
		{"an alias of a VM that is a group", `{"version": 1, "vmAliases": {"all": "web01"}}`, `1:30: alias of a VM holds the name of a group of machines`},
		{"an alias of a VM for nothing", `{"version": 1, "vmAliases": {"web": ""}}`, `1:30: alias of a VM holds a pattern, or something that is not the name of one machine`},
		{"an alias of an alias", `{"version": 1, "vmAliases": {"www": "WEB", "web": "web01"}}`, `1:30: the alias stands for another, "web", and not for a VM`},
		{"VM aliases that are no object", `{"version": 1, "vmAliases": []}`, `1:29: expected an object`},
		{"a ruling by nobody", tools(`{"names": ["a"], "class": "mutating", "ruling": {"at": "2026-11-29T10:00:00Z", "basis": "agent"}}`), `2:12: s/a: a ruling needs "by": one line of at most 128 bytes`},
		{"a ruling on nothing", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-11-29T10:00:00Z"}}`), `2:12: s/a: a ruling needs "basis": one of ["operator-proven" "operator-claimed" "agent"]`},
		{"a ruling on the empty basis", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-11-29T10:00:00Z", "basis": ""}}`), `2:12: s/a: a ruling needs "basis": one of ["operator-proven" "operator-claimed" "agent"]`},
		{"a ruling of no time", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-11-29 10:00:00", "basis": "agent"}}`), `2:12: s/a: a ruling needs "at": a moment in UTC such as 2026-11-29T10:00:00Z`},
		{"a ruling of the 13th month", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-13-29T10:00:00Z", "basis": "agent"}}`), `2:12: s/a: a ruling needs "at": a moment in UTC such as 2026-11-29T10:00:00Z`},
		{"a ruling that ends before it begins", tools(`{"names": ["a"], "class": "read_only", "ruling": {"by": "jane", "at": "2026-11-29T10:00:00Z", "until": "2026-11-29T10:00:00Z", "basis": "operator-proven"}}`), `2:12: s/a: "until" of a ruling is a moment in UTC after "at", such as 2026-12-29T10:00:00Z`},
		{"a strict ruling that expires", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-11-29T10:00:00Z", "until": "2026-12-29T10:00:00Z", "basis": "operator-proven"}}`), `2:12: s/a: only a ruling of read_only expires: else a tool would become laxer by itself`},
		{"a lax ruling of an agent", tools(`{"names": ["a"], "class": "read_only", "ruling": {"by": "bot", "at": "2026-11-29T10:00:00Z", "basis": "agent"}}`), `2:12: s/a: an agent may rule mutating alone`},
		{"a fingerprint that is cut short", tools(`{"names": ["a"], "class": "mutating", "ruling": {"by": "jane", "at": "2026-11-29T10:00:00Z", "basis": "agent", "fingerprint": {"name": "00"}}}`), `2:127: each part of a fingerprint is a SHA-256 in lower-case hex, and all five are needed`},
		{"a void entry", tools(`{"names": ["a"], "class": "unknown", "void": "x"}`), `2:38: unknown key "void"; known here are class, command, container, form, indirect, kind, names, note, ruling, scope, serverDefault, target, when`},
		{"a server twice", `{"version": 1, "aliases": {"my-pve": "a", "my.pve": "b"}}`, `1:43: server "my.pve" is given twice: a host may spell the two names alike`},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			c, err := catalog.Load([]byte(tt.text))
			if err == nil || c != nil {
				t.Fatalf("Load gave a catalogue and error %v", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var place *catalog.LoadError
			if !errors.As(err, &place) || place.Line < 1 || place.Column < 1 {
				t.Errorf("error %v has no place", err)
			}
		})
	}
}

func TestLoadAccepts(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{
		"an empty catalogue":      `{"version": 1}`,
		"a byte order mark":       "\xef\xbb\xbf{\"version\": 1}",
		"carriage returns":        "{\r\n\"version\": 1\r\n}\r\n",
		"words of YAML as names":  `{"version": 1, "servers": [{"server": "no", "tools": [{"names": ["on", "null", "1e3", "010"], "class": "mutating"}]}]}`,
		"a name of 64 characters": `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["` + strings.Repeat("a", 64) + `"], "class": "mutating"}]}]}`,
	} {
		if _, err := catalog.Load([]byte(text)); err != nil {
			t.Errorf("%s: %v", behaviour, err)
		}
	}
}

func TestPlaceAfterByteOrderMarkIsThatOfTheEditor(t *testing.T) {
	t.Parallel()
	_, err := catalog.Load([]byte("\xef\xbb\xbf{\"x\": 1, \"version\": 1}"))
	if err == nil || !strings.HasPrefix(err.Error(), "1:2: ") {
		t.Errorf("error %v, want one at 1:2", err)
	}
}

func TestLoadReportsAllProblemsUpToALimit(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf(`"bad.%d"`, i))
	}
	_, err := catalog.Load([]byte(`{"version": 1, "servers": [{"server": "s", "tools": [{"names": [` + strings.Join(names, ",") + `], "class": "mutating"}]}]}`))
	if lines := strings.Count(fmt.Sprint(err), "\n") + 1; lines != 20 {
		t.Errorf("%d problems reported, want the first 20:\n%v", lines, err)
	}
}

func TestLoadReadsEveryField(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load([]byte(`{"version": 1, "servers": [{
		"server": "S", "aliases": ["one", "two"], "source": "o/r@1",
		"tools": [{"names": ["a", "b"], "class": "unknown", "scope": "local", "form": "pattern",
			"when": [{"arg": "x", "in": ["1"], "class": "read_only"}, {"arg": "y", "is": false, "class": "mutating"}, {"arg": "z", "absent": true, "class": "mutating"}],
			"target": ["vm"], "container": ["host"], "indirect": ["pid"], "command": ["cmd"], "serverDefault": true, "note": "n"},
			{"names": ["c"], "class": "mutating", "kind": "undo"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	no := false
	a := catalog.Entry{
		Server: "S", Aliases: []string{"one", "two"}, Tool: "a", Scope: catalog.Local, Form: catalog.PatternForm,
		When: []catalog.Condition{
			{Arg: "x", In: []string{"1"}, Class: readOnly}, {Arg: "y", Is: &no, Class: mutating}, {Arg: "z", Absent: true, Class: mutating},
		},
		Target: []string{"vm"}, Container: []string{"host"}, Indirect: []string{"pid"}, Command: []string{"cmd"},
		ServerDefault: true, Note: "n", Source: "o/r@1",
	}
	b := a
	b.Tool = "b"
	want := []*catalog.Entry{&a, &b, {Server: "S", Aliases: []string{"one", "two"}, Tool: "c", Class: mutating, Kind: undoes, Source: "o/r@1"}}
	if diff := cmp.Diff(want, slices.Collect(c.Entries())); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// A hook reads the file before each tool call, and an agent can write to it. What takes the square of these lengths takes
// longer than a test may.
func TestLoadTakesNoLongerThanTheFileIsLong(t *testing.T) {
	t.Parallel()
	list := func(n int, member string) string {
		members := make([]string, n)
		for i := range members {
			members[i] = strings.ReplaceAll(member, "%", strconv.Itoa(i))
		}
		return strings.Join(members, ",")
	}
	const many = 10_000
	tool := `{"version": 1, "servers": [{"server": "s", "aliases": ["t"], "tools": [{"names": [` + list(many, `"a%"`) + `], "class": "unknown"`
	for _, tt := range []struct {
		behaviour, text string
		valid           bool
	}{
		{"a list for each name", tool + `, "target": [` + list(many, `"v%"`) + `]}]}]}`, false},
		{"conditions", tool + `, "when": [` + list(many, `{"arg": "x", "is": true, "class": "mutating"}`) + `]}]}]}`, false},
		{"a condition of lists", tool + `, "when": [{"arg": "x", "in": [` + list(many, `"v%"`) + `], "class": "mutating"}]}]}]}`, true},
		{"keys of one server", tool + `}]}], "aliases": {` + list(many, `"k%": "s"`) + `}}`, true},
		{"aliases of VMs", `{"version": 1, "vmAliases": {` + list(many, `"a%": "vm"`) + `}}`, true},
		{"one name again", `{"version": 1, "servers": [{"server": "s", "tools": [{"names": [` + list(many, "\n\"a\"") + `], "class": "unknown"}]}]}`, false},
		{"one key again", `{"version": 1` + strings.Repeat(",\n\"version\": 1", many) + `}`, false},
		{"aliases for each name", strings.Replace(tool, `"t"`, list(many, `"t%"`), 1) + `}]}]}`, false},
		{"wrong tools of a group", `{"version": 1, "servers": [{"server": "s", "tools": [` + list(many, "1") + `]}]}`, false},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			if _, err := catalog.Load([]byte(tt.text)); (err == nil) != tt.valid {
				t.Errorf("%d bytes: %v", len(tt.text), err)
			}
		})
	}
}

// FuzzLoad checks that no text breaks the loader, and that what it accepts is found again under its own name.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"version": 1}`))
	f.Add([]byte(`{"version": 1, "servers": [{"server": "s", "aliases": ["t"], "tools": [{"names": ["a"], "class": "mutating", "target": ["vm"]}]}]}`))
	f.Add([]byte(`{"version": 1, "servers": [{"builtIn": true, "tools": [{"names": ["a"], "class": "unknown", "when": [{"arg": "x", "is": true, "class": "read_only"}]}]}]}`))
	f.Add([]byte(`{"version": 1, "aliases": {"a": "b"}, "serverDefaults": {"a": "web01"}}`))
	f.Add([]byte("\xef\xbb\xbf{\"version\": 1}\n{}"))
	f.Add([]byte(`[[[[[[[[[[[[[[[[`))
	f.Add([]byte(`{"version": 1, "servers": [{"server": "\n\n", "tools": [{"names": ["a", "\n\n", "a"], "class": "mutating"}]}]}`))
	f.Add([]byte(`{"version": 1, "servers": [{"server": "s", "aliases": ["a b"], "tools": []}, {"server": "t", "tools": [{"names": ["a"], "class": "unknown"}]}], "aliases": {"s": "t", "t": "t"}}`))
	f.Add([]byte(`{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}}}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := catalog.Load(data)
		if (c == nil) == (err == nil) {
			t.Fatalf("catalogue %v with error %v", c, err)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if line == "" {
					t.Errorf("empty problem in %q", err)
				}
			}
			return
		}
		for e := range c.Entries() {
			want := catalog.Verdict{Class: e.Class, Kind: e.Kind, Scope: e.Scope}
			if got := c.Classify(catalog.Name{Server: e.Server, Tool: e.Tool, BuiltIn: e.BuiltIn}); got != want {
				t.Errorf("%s/%s: %+v, want %+v", e.Server, e.Tool, got, want)
			}
		}
	})
}

func utf16LE(text string) string {
	data := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		data = append(data, byte(unit), byte(unit>>8))
	}
	return string(data)
}
