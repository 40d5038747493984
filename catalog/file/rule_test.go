package catalogfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

func base(t testing.TB) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// onDisk returns the built-in catalogue with the file laid over it.
func onDisk(t testing.TB, path string, at time.Time) *catalog.Catalog {
	t.Helper()
	f, err := catalogfile.Open(path, at)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Merge(base(t), f.Catalog)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestARulingIsOnDiskWithAllThatItRestsOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.json")
	f, err := catalog.Definition{Name: "look"}.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	name := catalog.Name{Server: "home-made", Tool: "look"}
	got, err := catalogfile.Rule(t.Context(), path, base(t), catalogfile.Order{
		Name: name, Class: catalog.ReadOnly, By: "jane", At: now, Basis: catalog.OperatorProven, For: 30 * 24 * time.Hour, Fingerprint: &f,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &catalogfile.Ruled{
		Path: path, Before: catalog.Verdict{}, After: catalog.Verdict{Class: catalog.ReadOnly}, Changed: true,
		Entry: catalog.Entry{Server: "home-made", Tool: "look", Class: catalog.ReadOnly, Ruling: &catalog.Ruling{
			By: "jane", At: "2026-11-29T10:00:00Z", Until: "2026-12-29T10:00:00Z", Basis: catalog.OperatorProven, Fingerprint: &f,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ruling (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&want.Entry, onDisk(t, path, now).ClassifyCall(name, nil).Entry); diff != "" {
		t.Errorf("on disk (-want +got):\n%s", diff)
	}
	if got := onDisk(t, path, now.AddDate(0, 0, 30)).Classify(name); got.Class != catalog.Unknown {
		t.Errorf("after it expired: %+v", got)
	}
}

func TestARulingReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.json")
	name := catalog.Name{Server: "ssh-mcp", Tool: "run-command"}
	for _, class := range []catalog.Class{catalog.ReadOnly, catalog.Unknown, catalog.Mutating} {
		if _, err := catalogfile.Rule(t.Context(), path, base(t), catalogfile.Order{Name: name, Class: class, By: "jane", At: now, Basis: catalog.OperatorClaimed}); err != nil {
			t.Fatal(err)
		}
		r := onDisk(t, path, now).ClassifyCall(name, map[string]any{"profile": "web01"})
		if r.Class != class || len(r.Targets) != 1 || r.Entry.Ruling.Basis != catalog.OperatorClaimed {
			t.Errorf("ruled %s, got %+v", class, r)
		}
	}
	if n := strings.Count(content(t, path), "run-command"); n != 1 {
		t.Errorf("the tool is described %d times:\n%s", n, content(t, path))
	}
}

func TestRulingsThatNobodyCanMake(t *testing.T) {
	t.Parallel()
	for behaviour, o := range map[string]catalogfile.Order{
		"an undo tool that is read_only":     {Name: catalog.Name{Server: "proxmox", Tool: "delete_snapshot"}, Class: catalog.ReadOnly},
		"a shell that is read_only":          {Name: catalog.Name{Tool: "Bash", BuiltIn: true}, Class: catalog.ReadOnly},
		"nobody's ruling":                    {Name: catalog.Name{Server: "s", Tool: "a"}, Class: catalog.ReadOnly, By: "-"},
		"a strict ruling for a time":         {Name: catalog.Name{Server: "s", Tool: "a"}, Class: catalog.Mutating, For: time.Hour},
		"an agent's ruling as a person's":    {Name: catalog.Name{Server: "s", Tool: "a"}, Class: catalog.Mutating, Basis: catalog.AgentsOwn},
		"a tool of a name that hosts refuse": {Name: catalog.Name{Server: "s", Tool: "a b"}, Class: catalog.ReadOnly},
	} {
		path := filepath.Join(t.TempDir(), "catalog.json")
		if o.Basis == 0 {
			o.Basis = catalog.OperatorProven
		}
		if o.By = map[string]string{"": "jane", "-": ""}[o.By]; o.By == "" {
			o.By = "\n"
		}
		o.At = now
		if _, err := catalogfile.Rule(t.Context(), path, base(t), o); err == nil {
			t.Errorf("%s: no error", behaviour)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was written:\n%s", behaviour, content(t, path))
		}
	}
}

// strictness orders what a gate does: it lets a call run, lets it run with a guard, or asks a person each time.
func strictness(r catalog.Result) int {
	switch {
	case r.Safe():
		return 0
	case r.Class == catalog.Mutating && r.Kind == catalog.Ordinary && r.TargetKnown:
		return 1
	}
	return 2
}

// An agent's ruling makes no call of any tool laxer, whatever the catalogue said of the tool before.
func TestAddMutatingOnlyEverMakesStricter(t *testing.T) {
	t.Parallel()
	mine := `{"version": 1, "servers": [{"server": "home", "tools": [
		{"names": ["read"], "class": "read_only", "target": ["vm"]},
		{"names": ["guess"], "class": "unknown", "target": ["vm"]},
		{"names": ["mostly"], "class": "mutating", "target": ["vm"], "when": [{"arg": "x", "absent": true, "class": "read_only"}]},
		{"names": ["local"], "class": "mutating", "scope": "local"},
		{"names": ["ruled"], "class": "read_only", "target": ["vm"], "ruling": {"by": "jane", "at": "2026-11-01T00:00:00Z", "until": "2026-11-02T00:00:00Z", "basis": "operator-proven"}}]}]}`
	names := []catalog.Name{{Server: "nobody", Tool: "nothing"}, {Server: "nobody", Tool: "stop_vm"}}
	kinds := map[string]bool{} // one tool stands for all of its kind
	for e := range onDisk(t, write(t, mine), now).Entries() {
		kind := fmt.Sprint(e.Server == "home", e.BuiltIn, e.Class, e.Kind, e.Scope, len(e.When) > 0, len(e.Target) > 0, len(e.Command) > 0, e.Void)
		if e.Server == "home" || !kinds[kind] {
			names = append(names, e.Name())
		}
		kinds[kind] = true
	}
	path := write(t, mine)
	before := onDisk(t, path, now)
	for _, name := range names {
		r, err := catalogfile.AddMutating(t.Context(), path, base(t), name, "patch-bot", now)
		was := before.ClassifyCall(name, nil)
		var refused *catalogfile.RefusedError
		if was.Kind == catalog.Checkpoint {
			if !errors.As(err, &refused) {
				t.Errorf("%s: error %v, want it refused", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if asStrict := was.Entry != nil && was.Class == catalog.Mutating && len(was.Entry.When) == 0 && was.Scope == catalog.Anywhere; r.Changed == asStrict {
			t.Errorf("%s: changed is %t for %+v", name, r.Changed, was)
		}
	}
	after := onDisk(t, path, now)
	for _, name := range names {
		for _, args := range []map[string]any{
			nil,
			{},
			{"vm": "web01"},
			{"vmid": "100"},
			{"x": "y", "vm": "web01"},
			{"host_pattern": "web01.example.com", "check": true},
			{"host_pattern": "web01.example.com", "action": "restart"},
			{"command": "ls"},
		} {
			was, is := before.ClassifyCall(name, args), after.ClassifyCall(name, args)
			if strictness(is) < strictness(was) {
				t.Errorf("%s%v was %s with targets %v, and is %s with targets %v", name, args, was.Verdict, was.Targets, is.Verdict, is.Targets)
			}
		}
	}
	if got := after.Classify(catalog.Name{Server: "home", Tool: "read"}); got.Class != catalog.Mutating {
		t.Errorf("home/read is %+v, want mutating", got)
	}
}

func TestRulingsReadAsIfAPersonWroteThem(t *testing.T) {
	t.Parallel()
	path := write(t, "{\"version\": 1} // ours\n")
	for _, tool := range []string{"one", "two"} {
		if _, err := catalogfile.AddMutating(t.Context(), path, base(t), catalog.Name{Server: "s", Tool: tool}, "patch-bot", now); err != nil {
			t.Fatal(err)
		}
	}
	want := "{\"version\": 1, \"servers\": [\n    {\n      \"server\": \"s\",\n      \"tools\": [\n" +
		"        {\"names\": [\"one\"], \"class\": \"mutating\",\n         \"ruling\": {\"by\": \"patch-bot\", \"at\": \"2026-11-29T10:00:00Z\", \"basis\": \"agent\"}},\n" +
		"        {\"names\": [\"two\"], \"class\": \"mutating\",\n         \"ruling\": {\"by\": \"patch-bot\", \"at\": \"2026-11-29T10:00:00Z\", \"basis\": \"agent\"}}\n" +
		"      ]\n    }\n  ]} // ours\n"
	if diff := cmp.Diff(want, content(t, path)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}
