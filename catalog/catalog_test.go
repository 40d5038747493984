package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func builtInData(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Default()
	if err != nil {
		t.Fatalf("Default:\n%v", err)
	}
	return c
}

func TestToolInNeitherListIsUnknownAndNotSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []*catalog.Catalog{builtInData(t), build(t), {}} {
		name := catalog.Name{Server: "proxmox", Tool: "migrate_everything"}
		if got := c.Classify(name); got != (catalog.Verdict{}) || got.Safe() {
			t.Errorf("verdict %+v, want unknown and not safe", got)
		}
		if r := c.ClassifyCall(name, map[string]any{}); r.Safe() || r.TargetKnown || r.Reason == "" {
			t.Errorf("result %+v, want unknown and not safe", r)
		}
	}
}

func TestNewRefusesWhatTheLoaderRefuses(t *testing.T) {
	t.Parallel()
	valid := catalog.Entry{Server: "s", Tool: "a", Class: mutating}
	for _, tt := range []struct {
		behaviour string
		entry     catalog.Entry
		want      string
	}{
		{"a tool twice", valid, "described before, as s/a in entry 0"},
		{"a tool twice through an alias", catalog.Entry{Server: "x", Aliases: []string{"S"}, Tool: "A"}, "described before"},
		{"a checkpoint with conditions", catalog.Entry{
			Server: "s", Tool: "b", Class: mutating, Kind: makes, When: []catalog.Condition{{Arg: "x", Absent: true, Class: readOnly}},
		}, "kind checkpoint needs"},
		{"a class without meaning", catalog.Entry{Server: "s", Tool: "b", Class: 7}, "not one of the known"},
		{"a name that hosts refuse", catalog.Entry{Server: "s", Tool: "b.c"}, "hosts refuse"},
		{"an alias that hosts refuse", catalog.Entry{Server: "s", Aliases: []string{"a b"}, Tool: "b"}, "hosts refuse"},
		{"an argument without name", catalog.Entry{Server: "s", Tool: "b", Command: []string{""}}, "argument name is empty"},
	} {
		if _, err := catalog.New(valid, tt.entry); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "entry 1: ") {
			t.Errorf("%s: error %v, want one of entry 1 with %q", tt.behaviour, err, tt.want)
		}
	}
}

func TestNewDoesNotKeepTheCallersEntries(t *testing.T) {
	t.Parallel()
	entries := []catalog.Entry{{Server: "s", Aliases: []string{"S", "t", "t"}, Tool: "a", Class: mutating, Target: []string{"vm"}}}
	c := build(t, entries...)
	entries[0].Class, entries[0].Target[0] = readOnly, "other"
	r := c.ClassifyCall(catalog.Name{Server: "s", Tool: "a"}, map[string]any{"vm": "web01"})
	if r.Class != mutating || !r.TargetKnown {
		t.Errorf("a change of the caller's entry reached the catalogue: %+v", r)
	}
}

func TestMergeReplacesEntriesThatGoByTheSameName(t *testing.T) {
	t.Parallel()
	user, err := catalog.Load([]byte(`{"version": 1,
		"servers": [
			{"server": "my-pve", "tools": [{"names": ["get_vms"], "class": "mutating"}]},
			{"server": "ssh-mcp", "tools": [{"names": ["read-command"], "class": "mutating"}]},
			{"server": "home-made", "tools": [{"names": ["look"], "class": "read_only"}]}],
		"aliases": {"my-pve": "ProxmoxMCP-Plus"},
		"serverDefaults": {"ssh-mcp": "web01"}}`))
	if err != nil {
		t.Fatal(err)
	}
	base := builtInData(t)
	c, err := catalog.Merge(base, user)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server, tool string
		base, merged catalog.Class
	}{
		{"home-made", "look", unknown, readOnly},
		{"ssh-mcp", "read-command", readOnly, mutating},
		{"my-pve", "get_vms", unknown, mutating},
		{"my-pve", "get_nodes", unknown, readOnly},
		{"my_pve", "stop_vm", mutating, mutating},
		{"proxmox", "get_vms", readOnly, readOnly},
		{"proxmox", "get_nodes", readOnly, readOnly},
	} {
		name := catalog.Name{Server: tt.server, Tool: tt.tool}
		if got := base.Classify(name).Class; got != tt.base {
			t.Errorf("%s in the base: %s, want %s", name, got, tt.base)
		}
		if got := c.Classify(name).Class; got != tt.merged {
			t.Errorf("%s merged: %s, want %s", name, got, tt.merged)
		}
	}
	if got, want := c.Len(), base.Len()+2; got != want {
		t.Errorf("%d entries in force, want %d: one is replaced, two are new", got, want)
	}
}

func TestUsersReplacementCountsForUnrecognisedServersToo(t *testing.T) {
	t.Parallel()
	base := build(t, catalog.Entry{Server: "s", Tool: "a", Class: mutating})
	c, err := base.With(catalog.Entry{Server: "s", Tool: "a", Class: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Classify(catalog.Name{Tool: "a"}); got.Class != unknown {
		t.Errorf("verdict %+v, want unknown: the entry that said mutating is replaced", got)
	}
	if _, err := base.With(catalog.Entry{Server: "s"}); err == nil {
		t.Error("With accepts an entry without tool")
	}
	if got := base.Classify(catalog.Name{Tool: "a"}); got.Class != mutating {
		t.Errorf("With changed the catalogue it was called on: %+v", got)
	}
}

func TestServerDefault(t *testing.T) {
	t.Parallel()
	c, err := builtInData(t).WithServerDefault("ssh-mcp", "web01")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ behaviour, server, tool, args, want string }{
		{"no target in the call", "SSH-MCP", "run-command", `{"command":"x"}`, "=web01"},
		{"a target in the call", "ssh-mcp", "run-command", `{"command":"x","profile":"db01"}`, "profile=db01"},
		{"a target that cannot be read", "ssh-mcp", "run-command", `{"command":"x","profile":null}`, "?"},
		{"a target in another spelling", "ssh-mcp", "run-command", `{"command":"x","Profile":"db01"}`, "?"},
		{"a session", "ssh-mcp", "run-command", `{"command":"x","session":"s1"}`, "?"},
		{"an empty array", "ssh-mcp", "run-command", `{"command":"x","profile":[]}`, "?"},
		{"a server without default", "ssh-mcp-server", "execute-command", `{"cmdString":"x"}`, "?"},
	} {
		r := c.ClassifyCall(catalog.Name{Server: tt.server, Tool: tt.tool}, decode(t, tt.args))
		if got := spell(r); got != tt.want {
			t.Errorf("%s: targets %q, want %q", tt.behaviour, got, tt.want)
		}
	}
	if c, err = c.WithServerDefault("docker", "web01"); err != nil {
		t.Fatal(err)
	}
	stop := catalog.Name{Server: "docker", Tool: "stop_container"}
	if got := spell(c.ClassifyCall(stop, map[string]any{})); got != "=web01" {
		t.Errorf("a tool without target argument: targets %q, want the server's default", got)
	}
	for _, name := range []catalog.Name{stop, {Server: "ssh-mcp", Tool: "run-command"}} {
		if r := c.ClassifyCall(name, nil); r.TargetKnown {
			t.Errorf("%s: target known although the arguments are not: %+v", name, r)
		}
	}
	for server, machine := range map[string]string{"": "web01", "a b": "web01", "ssh-mcp": "", "ssh": "web01,db01"} {
		if _, err := c.WithServerDefault(server, machine); err == nil {
			t.Errorf("WithServerDefault(%q, %q) is accepted", server, machine)
		}
	}
}

func TestAlias(t *testing.T) {
	t.Parallel()
	c, err := builtInData(t).WithAlias("lab", "proxmox")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Classify(catalog.Name{Server: "LAB", Tool: "get_vms"}); got.Class != readOnly {
		t.Errorf("verdict under the alias %+v, want read_only", got)
	}
	for alias, server := range map[string]string{"": "proxmox", "a b": "proxmox", "x": "nobody", "y": ""} {
		if c, err := c.WithAlias(alias, server); err == nil || c != nil {
			t.Errorf("WithAlias(%q, %q) is accepted", alias, server)
		}
	}
	user, err := catalog.Load([]byte(`{"version": 1, "aliases": {"x": "nobody"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Merge(builtInData(t), user); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("error %v, want one that names the server nobody knows", err)
	}
}

func TestWordsOfTheFile(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		catalog.Class(9).String(): "invalid(9)", unknown.String(): "unknown", ordinary.String(): "",
		catalog.Anywhere.String(): "anywhere", catalog.NameForm.String(): "name",
		catalog.Name{Server: "s", Tool: "t"}.String():     "s/t",
		catalog.Name{Tool: "u"}.String():                  "?/u",
		catalog.Name{Tool: "v", BuiltIn: true}.String():   "v",
		fmt.Sprint(makes, undoes, catalog.SelectorForm):   "checkpoint undo selector",
		fmt.Sprint(readOnly, mutating, catalog.Local):     "read_only mutating local",
		fmt.Sprint(new(catalog.Class).UnmarshalText(nil)): `class "" is not one of ["unknown" "read_only" "mutating"]`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEntryAsJSON(t *testing.T) {
	t.Parallel()
	want := catalog.Entry{
		Tool: "a", BuiltIn: true, Class: mutating, Kind: undoes, Scope: catalog.Local, Form: catalog.SelectorForm,
		Target: []string{"sel"}, ServerDefault: true,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if wantText := `{"tool":"a","builtIn":true,"class":"mutating","kind":"undo","scope":"local","target":["sel"],"form":"selector","serverDefault":true}`; string(text) != wantText {
		t.Errorf("got %s, want %s", text, wantText)
	}
	var got catalog.Entry
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			name, _ := c.ParseToolName("mcp__proxmox__stop_vm")
			c.Classify(name)
			c.ClassifyCall(name, map[string]any{"vmid": "100"})
			if _, err := c.With(catalog.Entry{Server: "s", Tool: "a"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestClassifyDoesNotAllocate(t *testing.T) {
	c := tenThousand(t)
	for _, name := range []catalog.Name{known, {Server: "someones", Tool: known.Tool}, {Tool: "Bash", BuiltIn: true}, {Server: strings.Repeat("s", 300), Tool: strings.Repeat("t", 300)}} {
		if n := testing.AllocsPerRun(100, func() { c.Classify(name) }); n != 0 {
			t.Errorf("Classify(%s) allocates %v times", name, n)
		}
	}
}

var known = catalog.Name{Server: "Server-77", Tool: "Tool_With_A_Usual_Name_42"}

func tenThousand(t testing.TB) *catalog.Catalog {
	t.Helper()
	entries := make([]catalog.Entry, 0, 10_000)
	for i := range cap(entries) {
		entries = append(entries, catalog.Entry{
			Server: fmt.Sprintf("server-%d", i/100), Tool: fmt.Sprintf("tool_with_a_usual_name_%d", i%100), Class: mutating,
		})
	}
	return build(t, entries...)
}

// BenchmarkClassify has a limit: 300 ns and no allocation with 10,000 entries (design 5).
func BenchmarkClassify(b *testing.B) {
	c := tenThousand(b)
	for _, bb := range []struct {
		behaviour string
		name      catalog.Name
	}{
		{"known", known},
		{"unrecognised server", catalog.Name{Server: "someones", Tool: known.Tool}},
		{"unknown tool", catalog.Name{Server: known.Server, Tool: "no_such_tool"}},
	} {
		b.Run(bb.behaviour, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(bb.name)
			}
		})
	}
}

// BenchmarkLoad reads the built-in data, which a process does once; a hook has 10 ms for all it does.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := catalog.Load(catalog.DefaultData); err != nil {
			b.Fatal(err)
		}
	}
}
