package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

const (
	ruledAt = "2026-11-29T10:00:00Z"
	until   = "2026-12-29T10:00:00Z"
)

// ruled is an entry that a person made read_only.
func ruled(server, tool string, f *catalog.Fingerprint) catalog.Entry {
	return catalog.Entry{
		Server: server, Tool: tool, Class: readOnly,
		Ruling: &catalog.Ruling{By: "jane", At: ruledAt, Until: until, Basis: catalog.OperatorProven, Fingerprint: f},
	}
}

func TestARulingLastsUntilItExpires(t *testing.T) {
	t.Parallel()
	c := build(t, ruled("s", "look", nil))
	name := catalog.Name{Server: "s", Tool: "look"}
	for moment, want := range map[string]catalog.Class{
		"2020-01-01T00:00:00Z": readOnly, ruledAt: readOnly, "2026-12-29T09:59:59Z": readOnly,
		until: unknown, "2026-12-29T10:00:01Z": unknown, "2030-01-01T00:00:00Z": unknown,
	} {
		then, err := c.AsOf(moment)
		if err != nil {
			t.Fatal(err)
		}
		r := then.ClassifyCall(name, map[string]any{})
		if r.Class != want || then.Classify(name).Class != want {
			t.Errorf("at %s the tool is %s, want %s", moment, r.Class, want)
		}
		if want == unknown && r.Reason != "the ruling of 2026-11-29 by jane expired on 2026-12-29T10:00:00Z" {
			t.Errorf("at %s: reason %q", moment, r.Reason)
		}
	}
	if got := c.Classify(name); got.Class != readOnly {
		t.Errorf("AsOf changed the catalogue it was called on: %+v", got)
	}
	for _, moment := range []string{"", "2026-12-29", "2026-12-29T10:00:00+01:00", "2026-12-29T10:00:00.5Z", "2026-12-29 10:00:00Z"} {
		if _, err := c.AsOf(moment); err == nil {
			t.Errorf("AsOf(%q) is accepted", moment)
		}
	}
}

// What a void ruling leaves behind is what was there before only where that is mutating: a tool that a person ruled on
// for a time is not read_only for longer because the built-in data say so too.
func TestAVoidRulingNeverMakesLaxer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		behaviour, server, tool string
		alias                   bool
		want                    catalog.Verdict
	}{
		{"over nothing", "home", "look", false, catalog.Verdict{}},
		{"over read_only", "ssh-mcp", "list-sessions", false, catalog.Verdict{}},
		{"over mutating", "ssh-mcp", "run-command", false, catalog.Verdict{Class: mutating}},
		{"over undo", "proxmox", "delete_snapshot", false, catalog.Verdict{Class: mutating, Kind: undoes}},
		{"over mutating, under a key of the user", "lab", "stop_vm", true, catalog.Verdict{Class: mutating}},
		{"over read_only, under a key of the user", "lab", "get_vms", true, catalog.Verdict{}},
	} {
		base := builtInData(t)
		if tt.alias {
			var err error
			if base, err = base.WithAlias(tt.server, "proxmox"); err != nil {
				t.Fatal(err)
			}
		}
		c, err := base.With(ruled(tt.server, tt.tool, nil))
		if err != nil {
			t.Fatal(err)
		}
		name := catalog.Name{Server: tt.server, Tool: tt.tool}
		if got := c.Classify(name); got.Class != readOnly {
			t.Errorf("%s: %+v before it expires, want read_only", tt.behaviour, got)
		}
		if c, err = c.AsOf(until); err != nil {
			t.Fatal(err)
		}
		if got := c.Classify(name); got != tt.want {
			t.Errorf("%s: %+v after it expired, want %+v", tt.behaviour, got, tt.want)
		}
	}
}

func definition(t *testing.T, change func(*catalog.Definition)) (catalog.Definition, catalog.Fingerprint) {
	t.Helper()
	d := catalog.Definition{
		Name: "look", Description: "Looks at a VM.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"vm":{"type":"string"}},"required":["vm"]}`),
		Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}
	if change != nil {
		change(&d)
	}
	f, err := d.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}

// A ruling on a tool whose server gave it another meaning since is no ruling on that tool.
func TestARulingHoldsForItsDefinitionAlone(t *testing.T) {
	t.Parallel()
	_, bound := definition(t, nil)
	c := build(t, ruled("s", "look", &bound), ruled("s", "unbound", nil))
	for _, tt := range []struct {
		behaviour string
		change    func(*catalog.Definition)
		reason    string // that it is void for; empty if it holds
	}{
		{"the same definition", nil, ""},
		{"the same, spelled otherwise", func(d *catalog.Definition) {
			d.InputSchema = json.RawMessage("{ \"required\": [\"v\\u006d\"],\n\"properties\": {\"vm\":{\"type\":\"string\"}}, \"type\":\"object\" }")
			d.OutputSchema = json.RawMessage(` null`)
		}, ""},
		{"another name", func(d *catalog.Definition) { d.Name = "Look" }, "name"},
		{"another description", func(d *catalog.Definition) { d.Description += " " }, "description"},
		{"another schema", func(d *catalog.Definition) { d.InputSchema = json.RawMessage(`{"type":"object"}`) }, "input schema"},
		{"arguments in another order", func(d *catalog.Definition) {
			d.InputSchema = json.RawMessage(strings.Replace(string(d.InputSchema), `["vm"]`, `["vm","vm"]`, 1))
		}, "input schema"},
		{"a result that was not there", func(d *catalog.Definition) { d.OutputSchema = json.RawMessage(`{}`) }, "output schema"},
		{"annotations that are gone", func(d *catalog.Definition) { d.Annotations = nil }, "annotations"},
		{"all at once", func(d *catalog.Definition) { *d = catalog.Definition{Name: "x", OutputSchema: json.RawMessage(`1`)} }, "name, description, input schema, output schema, annotations"},
	} {
		_, now := definition(t, tt.change)
		current := c.WithFingerprints(map[catalog.Name]catalog.Fingerprint{
			{Server: "S", Tool: "Look"}: now, {Server: "s", Tool: "unbound"}: now, {Server: "s", Tool: "nowhere"}: now,
		})
		r := current.ClassifyCall(catalog.Name{Server: "s", Tool: "look"}, nil)
		want := "the catalogue lists the tool as read_only"
		if tt.reason != "" {
			want = "the ruling of 2026-11-29 by jane was on another definition of the tool, which has a new " + tt.reason + " now"
		}
		if r.Reason != want || r.Safe() != (tt.reason == "") {
			t.Errorf("%s: class %s, reason %q, want %q", tt.behaviour, r.Class, r.Reason, want)
		}
		if got := current.Classify(catalog.Name{Server: "s", Tool: "unbound"}); got.Class != readOnly {
			t.Errorf("%s: a ruling bound to nothing became void: %+v", tt.behaviour, got)
		}
		if (now.String() == bound.String()) != (tt.reason == "") {
			t.Errorf("%s: fingerprints %s and %s", tt.behaviour, now, bound)
		}
	}
	if got := c.WithFingerprints(nil).Classify(catalog.Name{Server: "s", Tool: "look"}); got.Class != readOnly {
		t.Errorf("a definition that is not known voids the ruling: %+v", got)
	}
}

func TestNoFingerprintOfWhatCanBeReadInTwoWays(t *testing.T) {
	t.Parallel()
	for behaviour, d := range map[string]catalog.Definition{
		"a key twice":                 {InputSchema: json.RawMessage(`{"type":"object","type":"string"}`)},
		"a key twice, further inside": {OutputSchema: json.RawMessage(`[{"a":{"b":1,"\u0062":2}}]`)},
		"no JSON":                     {Annotations: json.RawMessage(`{`)},
		"two documents":               {Annotations: json.RawMessage(`{} {}`)},
		"a broken tail":               {Annotations: json.RawMessage(`{}]`)},
		"bytes that are no UTF-8":     {InputSchema: json.RawMessage("\"\xff\"")},
		"a name that is no UTF-8":     {Name: "\xff"},
		"bottomless nesting":          {InputSchema: json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))},
	} {
		if f, err := d.Fingerprint(); err == nil || f != (catalog.Fingerprint{}) {
			t.Errorf("%s: fingerprint %+v, error %v", behaviour, f, err)
		}
		if _, err := builtInData(t).WithDefinitions(map[catalog.Name]catalog.Definition{{Server: "s", Tool: "a"}: d}); err == nil {
			t.Errorf("%s: is accepted", behaviour)
		}
	}
}

// A hint is a claim of the tool's own server: it can take trust away and never gives any.
func TestWhatAToolSaysOfItselfNeverMakesItLaxer(t *testing.T) {
	t.Parallel()
	_, bound := definition(t, func(d *catalog.Definition) { d.Annotations = json.RawMessage(`{"readOnlyHint":false}`) })
	c := build(t,
		catalog.Entry{Server: "s", Tool: "listed", Class: readOnly},
		catalog.Entry{Server: "s", Tool: "changes", Class: mutating},
		catalog.Entry{Server: "s", Tool: "either", When: []catalog.Condition{{Arg: "x", Absent: true, Class: readOnly}}},
		ruled("s", "look", &bound), ruled("s", "by-name", nil),
	)
	for annotations, denies := range map[string]bool{
		``: false, `{}`: false, `null`: false, `[]`: false, `{"readOnlyHint":"false"}`: false,
		`{"readOnlyHint":true}`: false, `{"destructiveHint":false}`: false,
		`{"readOnlyHint":false}`: true, `{"destructiveHint":true}`: true, `{"readOnlyHint":true,"destructiveHint":true}`: true,
	} {
		current := map[catalog.Name]catalog.Definition{}
		for _, tool := range []string{"listed", "changes", "either", "by-name", "nobody"} {
			current[catalog.Name{Server: "s", Tool: tool}] = catalog.Definition{Name: tool, Annotations: json.RawMessage(annotations)}
		}
		d, _ := definition(t, func(d *catalog.Definition) { d.Annotations = json.RawMessage(`{"readOnlyHint":false}`) })
		current[catalog.Name{Server: "s", Tool: "look"}] = d
		got, err := c.WithDefinitions(current)
		if err != nil {
			t.Fatal(err)
		}
		for tool, want := range map[string]catalog.Class{
			"listed": readOnly, "by-name": readOnly, "changes": mutating, "either": unknown, "nobody": unknown, "look": readOnly,
		} {
			if denies && (tool == "listed" || tool == "by-name") {
				want = unknown
			}
			if class := got.Classify(catalog.Name{Server: "s", Tool: tool}).Class; class != want {
				t.Errorf("annotations %s: %s is %s, want %s", annotations, tool, class, want)
			}
		}
	}
}

func TestLoadReadsTheRulingAndThePolicy(t *testing.T) {
	t.Parallel()
	_, f := definition(t, nil)
	fingerprint, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	d, err := catalog.LoadDocument([]byte(`{"version": 1,
		"servers": [{"server": "s", "tools": [{"names": ["look"], "class": "read_only", "ruling": {"by": "jane", "at": "` + ruledAt +
		`", "until": "` + until + `", "basis": "operator-proven", "fingerprint": ` + string(fingerprint) + `}}]}],
		"policy": {"onMutating": "guard", "maxAge": "1h30m5s", "localVM": "build 01"},
		"vmAliases": {"web": "web01", "www": "web01"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := ruled("s", "look", &f)
	for e := range d.Catalog.Entries() {
		if diff := cmp.Diff(&want, e); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
		e.Ruling.Fingerprint.Name = "changed"
	}
	for e := range d.Catalog.Entries() {
		if e.Ruling.Fingerprint.Name == "changed" {
			t.Error("an entry's ruling is shared with the catalogue")
		}
	}
	if diff := cmp.Diff(catalog.Policy{OnMutating: catalog.GuardFirst, MaxAgeSeconds: 5405, LocalVM: "build 01"}, d.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"web": "web01", "www": "web01"}, d.VMAliases); diff != "" {
		t.Errorf("aliases of VMs (-want +got):\n%s", diff)
	}
}
