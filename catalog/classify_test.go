package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func build(t testing.TB, entries ...catalog.Entry) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(entries...)
	if err != nil {
		t.Fatalf("New:\n%v", err)
	}
	return c
}

func TestNamesThatHostsRewriteAreOneName(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	for _, name := range []catalog.Name{
		{Server: "ProxmoxMCP-Plus", Tool: "get_vms"},
		{Server: "proxmoxmcp_plus", Tool: "GET_VMS"},
		{Server: "proxmox", Tool: "get-vms"},
		{Server: "Proxmox MCP", Tool: "get_vms"},
		{Server: "ssh.mcp", Tool: "read_command"},
	} {
		if got := c.Classify(name); got.Class != readOnly {
			t.Errorf("%s: %+v, want read_only", name, got)
		}
	}
	for _, name := range []catalog.Name{
		{Server: "proxmox", Tool: "get_vmſ"},       // long s, which folds to s
		{Server: "pro\u200bxmox", Tool: "get_vms"}, // invisible
		{Server: "proxmox\n", Tool: "get_vms"},
		{Server: "proxmox", Tool: "get_vms "},
		{Server: "proxmox2", Tool: "get_vms"},
		{Server: "", Tool: "get_vms"},
		{Server: "proxmox", Tool: ""},
		{Server: "proxmox", Tool: strings.Repeat("get_vms", 10)},
		{Server: "proxmox\x00get_vms", Tool: ""},
		{Tool: "stop_vm", BuiltIn: true},
		{Tool: "web-fetch", BuiltIn: true},
		{},
	} {
		if got := c.Classify(name); got.Safe() {
			t.Errorf("%q/%q is safe: %+v", name.Server, name.Tool, got)
		}
	}
}

func TestUnrecognisedServerGetsOnlyBadNews(t *testing.T) {
	t.Parallel()
	c := build(t,
		catalog.Entry{Server: "a", Tool: "read", Class: readOnly},
		catalog.Entry{Server: "a", Tool: "write", Class: mutating, Target: []string{"vm"}},
		catalog.Entry{Server: "b", Tool: "write", Class: mutating},
		catalog.Entry{Server: "a", Tool: "mixed", Class: mutating},
		catalog.Entry{Server: "b", Tool: "mixed", Class: readOnly},
		catalog.Entry{Server: "a", Tool: "dexim", Class: readOnly},
		catalog.Entry{Server: "b", Tool: "dexim", Class: mutating},
		catalog.Entry{Server: "a", Tool: "snap", Class: mutating, Kind: makes},
		catalog.Entry{Server: "a", Tool: "unsnap", Class: mutating, Kind: undoes},
		catalog.Entry{Server: "a", Tool: "note", Class: mutating, Scope: catalog.Local},
		catalog.Entry{Server: "a", Tool: "scale", Class: mutating, When: []catalog.Condition{{Arg: "n", Absent: true, Class: readOnly}}},
		catalog.Entry{Tool: "screen", BuiltIn: true, Class: mutating, Scope: catalog.Local},
	)
	for tool, want := range map[string]catalog.Verdict{
		"read":   {},
		"write":  {Class: mutating},
		"mixed":  {},
		"dexim":  {},
		"snap":   {},
		"unsnap": {Class: mutating, Kind: undoes},
		"note":   {Class: mutating},
		"scale":  {Class: mutating},
		"screen": {},
		"other":  {},
	} {
		for _, server := range []string{"", "someones"} {
			if got := c.Classify(catalog.Name{Tool: tool, BuiltIn: true}); tool != "screen" && got != (catalog.Verdict{}) {
				t.Errorf("a host's own %s: %+v, want unknown", tool, got)
			}
			name := catalog.Name{Server: server, Tool: tool}
			if got := c.Classify(name); got != want {
				t.Errorf("Classify(%s) = %+v, want %+v", name, got, want)
			}
			r := c.ClassifyCall(name, map[string]any{"vm": "web01"})
			if r.Verdict != want || r.TargetKnown || len(r.Targets) > 0 || r.Entry != nil {
				t.Errorf("ClassifyCall(%s) = %+v, want %+v and no target", name, r, want)
			}
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	yes := true
	c := build(t,
		catalog.Entry{Server: "s", Tool: "action", When: []catalog.Condition{
			{Arg: "action", In: []string{"list", "status"}, Class: readOnly},
			{Arg: "action", In: []string{"remove"}, Class: mutating},
		}},
		catalog.Entry{Server: "s", Tool: "check", Class: mutating, When: []catalog.Condition{
			{Arg: "dry_run", Is: &yes, Class: readOnly},
		}},
		catalog.Entry{Server: "s", Tool: "absent", Class: mutating, When: []catalog.Condition{
			{Arg: "scale", Absent: true, Class: readOnly},
		}},
		catalog.Entry{Server: "s", Tool: "reversed", When: []catalog.Condition{
			{Arg: "check", Is: &yes, Class: readOnly},
			{Arg: "force", Is: &yes, Class: mutating},
		}},
		catalog.Entry{Server: "s", Tool: "lists", When: []catalog.Condition{
			{Arg: "mode", In: []string{"rm"}, Class: mutating},
			{Arg: "check", Is: &yes, Class: readOnly},
		}},
		catalog.Entry{Server: "s", Tool: "wants", When: []catalog.Condition{
			{Arg: "scope", Absent: true, Class: mutating},
			{Arg: "check", Is: &yes, Class: readOnly},
		}},
		catalog.Entry{Server: "s", Tool: "both", When: []catalog.Condition{
			{Arg: "force", Is: &yes, Class: mutating},
			{Arg: "check", Is: &yes, Class: readOnly},
		}},
	)
	for _, tt := range []struct {
		behaviour, tool, args string
		want                  catalog.Class
	}{
		{"listed value", "action", `{"action":"status"}`, readOnly},
		{"other listed value", "action", `{"action":"remove"}`, mutating},
		{"value of no list", "action", `{"action":"frobnicate"}`, unknown},
		{"value in another case", "action", `{"action":"LIST"}`, unknown},
		{"value with a tail", "action", `{"action":"list; rm"}`, unknown},
		{"value in an array", "action", `{"action":["list"]}`, unknown},
		{"number for text", "action", `{"action":1}`, unknown},
		{"no such argument", "action", `{}`, unknown},
		{"argument in two spellings", "action", `{"action":"list","Action":"remove"}`, unknown},
		{"argument in another spelling", "action", `{"Action":"list"}`, unknown},
		{"true", "check", `{"dry_run":true}`, readOnly},
		{"false", "check", `{"dry_run":false}`, mutating},
		{"text for a boolean", "check", `{"dry_run":"true"}`, mutating},
		{"one for a boolean", "check", `{"dry_run":1}`, mutating},
		{"camel case beside snake case", "check", `{"dry_run":true,"dryRun":false}`, mutating},
		{"absent", "absent", `{"name":"x"}`, readOnly},
		{"null is not absent", "absent", `{"scale":null}`, mutating},
		{"another spelling is not absent", "absent", `{"Scale":3}`, mutating},
		{"a spelling of Go's decoder is not absent", "absent", `{"\u017fcale":3}`, mutating},
		{"the strictest of two wins when it is last", "reversed", `{"force":true,"check":true}`, mutating},
		{"an odd value of a strict condition relaxes nothing", "both", `{"force":"true","check":true}`, unknown},
		{"null of a strict condition relaxes nothing", "both", `{"force":null,"check":true}`, unknown},
		{"another spelling of a strict condition relaxes nothing", "reversed", `{"Force":true,"check":true}`, unknown},
		{"an odd value of a strict list relaxes nothing", "lists", `{"mode":["rm"],"check":true}`, unknown},
		{"another value than those of a strict list", "lists", `{"mode":"ls","check":true}`, readOnly},
		{"a strict absence in another spelling relaxes nothing", "wants", `{"check":true,"Scope":1}`, unknown},
		{"null for a strict absence relaxes nothing", "wants", `{"check":true,"scope":null}`, unknown},
		{"no strict absence", "wants", `{"check":true,"scope":[1]}`, readOnly},
		{"a strict absence", "wants", `{"check":true}`, mutating},
		{"the other value of a strict condition", "both", `{"force":false,"check":true}`, readOnly},
		{"the strictest of two wins", "both", `{"force":true,"check":true}`, mutating},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			r := c.ClassifyCall(catalog.Name{Server: "s", Tool: tt.tool}, decode(t, tt.args))
			if r.Class != tt.want {
				t.Errorf("%s%s: class %s, want %s (%s)", tt.tool, tt.args, r.Class, tt.want, r.Reason)
			}
		})
	}
	for _, tool := range []string{"action", "check", "absent", "both"} {
		if r := c.ClassifyCall(catalog.Name{Server: "s", Tool: tool}, nil); r.Safe() || r.TargetKnown {
			t.Errorf("%s with arguments that are not known: %+v", tool, r)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	c := build(t,
		catalog.Entry{Server: "s", Tool: "name", Class: mutating, Target: []string{"vm"}, Container: []string{"host"}, Indirect: []string{"session"}},
		catalog.Entry{Server: "s", Tool: "pattern", Class: mutating, Target: []string{"limit"}, Form: catalog.PatternForm},
		catalog.Entry{Server: "s", Tool: "selector", Class: mutating, Target: []string{"sel"}, Form: catalog.SelectorForm},
		catalog.Entry{Server: "s", Tool: "two", Class: mutating, Target: []string{"from", "to"}},
	)
	for _, tt := range []struct{ behaviour, tool, args, want string }{
		{"a name", "name", `{"vm":"web01"}`, "vm=web01"},
		{"a name with spaces and brackets", "name", `{"vm":"Web server (old) #2"}`, "vm=Web server (old) #2"},
		{"a name beyond ASCII", "name", `{"vm":"büro-01"}`, "vm=büro-01"},
		{"a whole number", "name", `{"vm":100}`, "vm=100"},
		{"an address", "name", `{"vm":"10.0.0.9"}`, "vm=10.0.0.9"},
		{"an address of version 6", "name", `{"vm":"2001:db8::9"}`, "vm=2001:db8::9"},
		{"a comma list", "name", `{"vm":"web01, db01"}`, "vm=web01 vm=db01"},
		{"an array", "name", `{"vm":["web01",7]}`, "vm=web01 vm=7"},
		{"two arguments", "two", `{"from":"web01","to":"db01"}`, "from=web01 to=db01"},
		{"one of two arguments", "two", `{"to":"db01"}`, "to=db01"},

		{"nothing", "name", `{}`, "?"},
		{"null", "name", `{"vm":null}`, "?"},
		{"empty text", "name", `{"vm":""}`, "?"},
		{"blank text", "name", `{"vm":"  "}`, "?"},
		{"a space in front", "name", `{"vm":" web01"}`, "?"},
		{"an empty array", "name", `{"vm":[]}`, "?"},
		{"an array in an array", "name", `{"vm":[["web01"]]}`, "?"},
		{"an object", "name", `{"vm":{"name":"web01"}}`, "?"},
		{"a boolean", "name", `{"vm":true}`, "?"},
		{"a fraction", "name", `{"vm":1.5}`, "?"},
		{"a negative number", "name", `{"vm":-1}`, "?"},
		{"a number with an exponent", "name", `{"vm":1e2}`, "?"},
		{"a wildcard", "name", `{"vm":"web*"}`, "?"},
		{"everything", "name", `{"vm":"All"}`, "?"},
		{"the server's own machine", "name", `{"vm":"localhost"}`, "?"},
		{"a loopback address", "name", `{"vm":"127.0.0.1"}`, "?"},
		{"an address with a zone", "name", `{"vm":"fe80::1%eth0"}`, "?"},
		{"an address of a group", "name", `{"vm":"224.0.0.1"}`, "?"},
		{"a short option", "name", `{"vm":"-v"}`, "?"},
		{"a comma list with odd spaces", "name", `{"vm":"web01,  db01"}`, "vm=web01?"},
		{"any address", "name", `{"vm":"0.0.0.0"}`, "?"},
		{"an option", "name", `{"vm":"-oProxyCommand=x"}`, "?"},
		{"a user", "name", `{"vm":"root@web01"}`, "?"},
		{"a port", "name", `{"vm":"web01:22"}`, "?"},
		{"a path", "name", `{"vm":"/dc/vm/web01"}`, "?"},
		{"a variable", "name", `{"vm":"$H"}`, "?"},
		{"a line break", "name", `{"vm":"web01\ndb01"}`, "?"},
		{"an invisible character", "name", `{"vm":"web\u200b01"}`, "?"},
		{"a lone surrogate", "name", `{"vm":"web\ud80001"}`, "?"},
		{"only punctuation", "name", `{"vm":"..."}`, "?"},
		{"a comma too many", "name", `{"vm":"web01,"}`, "vm=web01?"},
		{"a pattern among names", "name", `{"vm":["web01","db*"]}`, "vm=web01?"},
		{"two spellings", "name", `{"vm":"web01","VM":"db01"}`, "?"},
		{"another spelling", "name", `{"Vm":"db01"}`, "?"},
		{"a session", "name", `{"vm":"web01","session":"s1"}`, "vm=web01?"},
		{"a session of null", "name", `{"vm":"web01","session":null}`, "vm=web01?"},
		{"a session in another spelling", "name", `{"vm":"web01","SESSION":"s1"}`, "vm=web01?"},
		{"an odd container", "name", `{"vm":"web01","host":["*"]}`, "vm=web01?"},
		{"only a container", "name", `{"host":"hv1"}`, "?"},

		{"a full host name in a pattern", "pattern", `{"limit":"web01.example.com"}`, "limit=web01.example.com"},
		{"a bare word in a pattern", "pattern", `{"limit":"web"}`, "?"},
		{"a bare word with a dot behind", "pattern", `{"limit":"web."}`, "?"},
		{"a union of patterns", "pattern", `{"limit":"a.example.com:b.example.com"}`, "?"},
		{"an exclusion", "pattern", `{"limit":"a.example.com,!b.example.com"}`, "limit=a.example.com?"},
		{"two patterns with a space", "pattern", `{"limit":"a.example.com b.example.com"}`, "?"},
		{"a file of patterns", "pattern", `{"limit":"@retry.limit"}`, "?"},

		{"a node and a number", "selector", `{"sel":"pve1:123"}`, "sel=pve1/123"},
		{"a node and a name", "selector", `{"sel":"pve1/web"}`, "sel=pve1/web"},
		{"a node without a number", "selector", `{"sel":"pve1:"}`, "?"},
		{"a number without a node", "selector", `{"sel":":123"}`, "?"},
		{"a selector in a selector", "selector", `{"sel":"a/b/c"}`, "?"},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			r := c.ClassifyCall(catalog.Name{Server: "s", Tool: tt.tool}, decode(t, tt.args))
			if got := spell(r); got != tt.want {
				t.Errorf("%s%s: targets %q, want %q (%s)", tt.tool, tt.args, got, tt.want, r.TargetProblem)
			}
		})
	}
}

func TestGoValuesOfArguments(t *testing.T) {
	t.Parallel()
	c := build(t, catalog.Entry{Server: "s", Tool: "t", Class: mutating, Target: []string{"vm"}})
	for _, tt := range []struct {
		value any
		want  string
	}{
		{100, "vm=100"},
		{int64(100), "vm=100"},
		{100.0, "vm=100"},
		{json.Number("100"), "vm=100"},
		{[]string{"a", "b,c"}, "vm=a vm=b vm=c"},
		{-100, "?"},
		{100.5, "?"},
		{float64(1 << 60), "?"},
		{json.Number("1e2"), "?"},
		{json.Number(""), "?"},
		{[]string{}, "?"},
		{[]byte("a"), "?"},
		{"a\xff", "?"},
		{struct{}{}, "?"},
	} {
		r := c.ClassifyCall(catalog.Name{Server: "s", Tool: "t"}, map[string]any{"vm": tt.value})
		if got := spell(r); got != tt.want {
			t.Errorf("%T %v: targets %q, want %q", tt.value, tt.value, got, tt.want)
		}
	}
}

func TestReasonsQuoteNoValueOfTheCall(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	for e := range c.Entries() {
		args := map[string]any{"other": "MARKER-other"}
		for _, list := range [][]string{e.Target, e.Container, e.Indirect, e.Command} {
			for _, arg := range list {
				args[arg] = "root:MARKER-secret@web01"
			}
		}
		for _, condition := range e.When {
			args[condition.Arg] = "MARKER-condition"
		}
		r := c.ClassifyCall(catalog.Name{Server: e.Server, Tool: e.Tool, BuiltIn: e.BuiltIn}, args)
		if text := fmt.Sprintf("%+v", r); strings.Contains(text, "MARKER-") {
			t.Errorf("%s: the result quotes the call: %s", e.Tool, text)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	e := &catalog.Entry{Command: []string{"command", "CommandLine"}}
	for _, tt := range []struct {
		args, want string
		ok         bool
	}{
		{`{"command":"ls"}`, "ls", true},
		{`{"CommandLine":"ls","cwd":"/"}`, "ls", true},
		{`{"command":"ls","CommandLine":"rm"}`, "", false},
		{`{"command":"ls","Command":"rm"}`, "", false},
		{`{"command":["ls"]}`, "", false},
		{`{"command":""}`, "", false},
		{`{}`, "", false},
	} {
		if got, ok := e.CommandLine(decode(t, tt.args)); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v; want %q, %v", tt.args, got, ok, tt.want, tt.ok)
		}
	}
}

func TestResultIsACopy(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	name := catalog.Name{Server: "mcp-ansible", Tool: "ansible-auto-heal"}
	call := map[string]any{"host_pattern": "10.0.0.9", "dry_run": false}
	r := c.ClassifyCall(name, call)
	r.Entry.Class, r.Entry.Target[0], *r.Entry.When[1].Is = readOnly, "x", true
	again := c.ClassifyCall(name, call)
	if again.Class != mutating || !again.TargetKnown {
		t.Errorf("a change of one result reached the next: %+v", again)
	}
}

func TestResultAsJSON(t *testing.T) {
	t.Parallel()
	r := builtInData(t).ClassifyCall(catalog.Name{Server: "esxi", Tool: "powerOff"}, map[string]any{"name": "web01"})
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"class":"mutating","entry":{"server":"esxi-mcp-server","aliases":["esxi"],"tool":"powerOff","class":"mutating",` +
		`"target":["name"],"source":"bright8192/esxi-mcp-server@7b12024"},"targets":[{"arg":"name","value":"web01"}],` +
		`"targetKnown":true,"reason":"the catalogue lists the tool as mutating"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	var back catalog.Result
	if err := json.Unmarshal(got, &back); err != nil || back.Class != mutating {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// FuzzGarbledArgument spoils one argument of a call that an entry reads and checks that nothing gets laxer.
func FuzzGarbledArgument(f *testing.F) {
	for i := range survey {
		f.Add(uint16(i), uint8(i), survey[i].args)
	}
	c := builtInData(f)
	f.Fuzz(func(t *testing.T, rowNumber uint16, spoil uint8, text string) {
		r := survey[int(rowNumber)%len(survey)]
		name := catalog.Name{Server: r.server, Tool: strings.Fields(r.tools)[0], BuiltIn: r.server == ""}
		var args map[string]any
		if json.Unmarshal([]byte(text), &args) != nil {
			args = nil
		}
		before := c.ClassifyCall(name, args)
		e := before.Entry
		reads := append(append(append([]string{}, e.Target...), e.Container...), e.Indirect...)
		for _, condition := range e.When {
			reads = append(reads, condition.Arg)
		}
		if len(reads) == 0 {
			return
		}
		arg := reads[int(spoil)%len(reads)]
		spoilt := maps.Clone(args)
		if spoilt == nil {
			spoilt = map[string]any{}
		}
		switch value := spoilt[arg]; spoil / 64 {
		case 0:
			spoilt[arg] = nil
		case 1:
			spoilt[arg] = map[string]any{"value": value}
		case 2:
			spoilt[strings.ToUpper(arg)+"_"] = value
		default:
			delete(spoilt, arg)
			spoilt[strings.ToUpper(arg)+"_"] = value
		}
		after := c.ClassifyCall(name, spoilt)
		if after.Safe() && !before.Safe() {
			t.Errorf("%s: safe only after %q was spoilt:\n%v\n%v", name, arg, args, spoilt)
		}
		if isTarget := int(spoil)%len(reads) < len(reads)-len(e.When); isTarget && after.TargetKnown {
			t.Errorf("%s: target known although %q is spoilt: %v", name, arg, spoilt)
		}
		if after.TargetKnown && !before.TargetKnown {
			t.Errorf("%s: target known only after %q was spoilt:\n%v\n%v", name, arg, args, spoilt)
		}
	})
}

// FuzzClassifyCall feeds any name and any arguments.
func FuzzClassifyCall(f *testing.F) {
	f.Add("proxmox", "stop_vm", false, `{"node":"pve1","vmid":"100"}`)
	f.Add("mcp-ansible", "ansible-role", false, `{"hosts":"a,b,,c"}`)
	f.Add("", "Bash", true, `{"command":"ls"}`)
	f.Add("", "get_vms", false, `null`)
	c := builtInData(f)
	f.Fuzz(func(t *testing.T, server, tool string, builtIn bool, text string) {
		var args map[string]any
		if json.Unmarshal([]byte(text), &args) != nil {
			args = nil
		}
		name := catalog.Name{Server: server, Tool: tool, BuiltIn: builtIn}
		byName, byCall := c.Classify(name), c.ClassifyCall(name, args)
		if byName.Safe() && !byCall.Safe() || byCall.Kind != byName.Kind || byCall.Scope != byName.Scope {
			t.Errorf("%v: %+v by name, %+v with %s", name, byName, byCall.Verdict, text)
		}
		if byCall.TargetKnown && len(byCall.Targets) == 0 || byCall.TargetKnown == (byCall.TargetProblem != "") {
			t.Errorf("%v with %s: %+v", name, text, byCall)
		}
		if byCall.Safe() && byCall.Entry == nil {
			t.Errorf("%v is safe without an entry that says so", name)
		}
	})
}
