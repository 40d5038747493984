package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// FuzzSettings installs into any text and takes out again. What somebody else wrote means the same before and after.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":1}`, "{ // x\n \"hooks\": {\"PreToolUse\": [ ], }, }", `{"hooks":{"PreToolUse":[{"matcher":"x","hooks":[{"command":"y"}]}]}}`,
		"\ufeff{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": []\r\n\t}\r\n}", `{"hooks":{"beforeMCPExecution":[1]}}`, "{\"a\": [ // x\n ] /* y */, /* z */ }",
		`{"hooks":{"PreToolUse":[{"hooks":[{"command":"zerto-rewind hook --host codex"}],"x":1}]}}`, `{"version":1,"hooks":{}}`,
		`{"hooks":{"Stop":[{"command":"zerto\u002drewind hook --host codex"}]}}`, `{"hooks":{"Stop":[{"command":"'zerto'-rewind hook --host"}]}}`,
		`{"x":1e400,"hooks":{"PreToolUse":[{"hooks":[{"command":"zerto-rewind hook --host codex","timeout":1e400}]}]}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	place := Place{Home: "/h", Dir: "/d", OS: "linux"}
	f.Fuzz(func(t *testing.T, text string, nestedForm bool) {
		name := "windsurf"
		if nestedForm {
			name = "codex"
		}
		h, hook := hostNamed(name), Hook{Host: name, Scope: User, Binary: "/opt/zerto-rewind"}
		before := meaning(text)
		ours, _ := h.entries("f", []byte(text), hook.Binary, place)
		after, err := h.installed("f", []byte(text), hook, place)
		if err != nil {
			return
		}
		again, err := h.installed("f", after, hook, place)
		if err != nil || string(again) != string(after) {
			t.Fatalf("a second time: %v\n%q\n%q", err, after, again)
		}
		found, err := h.entries("f", after, hook.Binary, place)
		if err != nil || len(found) < len(h.events) {
			t.Fatalf("%d entries, %v, in %q", len(found), err, after)
		}
		cleared, err := h.removed("f", after, hook.Binary, place)
		if err != nil {
			t.Fatalf("taking out: %v\n%q", err, after)
		}
		if left, err := h.entries("f", cleared, hook.Binary, place); err != nil || len(left) > 0 {
			t.Fatalf("%d entries are left, %v, in %q", len(left), err, cleared)
		}
		if len(ours) > 0 {
			return // some of it was ours, and is rightly gone
		}
		if got := meaning(string(cleared)); !reflect.DeepEqual(got, before) {
			t.Fatalf("it meant %v, and means %v\n%q\n%q\n%q", before, got, text, after, cleared)
		}
	})
}

// meaning is what a settings file says, without empty containers of hooks.
func meaning(text string) any {
	text = strings.TrimPrefix(text, "\ufeff")
	standard, err := hujson.Standardize([]byte(text))
	if err != nil {
		return map[string]any{}
	}
	var settings map[string]any
	if json.Unmarshal(standard, &settings) != nil || settings == nil {
		return map[string]any{}
	}
	if hooks, ok := settings["hooks"].(map[string]any); ok {
		for event, list := range hooks {
			if entries, ok := list.([]any); ok && len(entries) == 0 {
				delete(hooks, event)
			}
		}
		if len(hooks) == 0 {
			delete(settings, "hooks")
		}
	}
	return settings
}

func TestSettingsOfOddShape(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&events, `"%d":[],`, i)
	}
	for name, tt := range map[string]struct {
		text  string
		taken bool
	}{
		"many events":           {`{"hooks":{` + events.String() + `}}`, true},
		"deep lists":            {`{"a":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`, false},
		"deep objects":          {strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_000), false},
		"as deep as is read":    {`{"a":` + strings.Repeat("[", maxNesting-1) + strings.Repeat("]", maxNesting-1) + `}`, true},
		"brackets in a text":    {`{"a":"\\\"` + strings.Repeat("[", 1000) + `"}`, true},
		"brackets in a comment": {"{//" + strings.Repeat("[", 1000) + "\n/*" + strings.Repeat("{", 1000) + "*/}", true},
	} {
		_, err := hostNamed("codex").installed("f", []byte(tt.text), Hook{Host: "codex", Scope: User, Binary: "/opt/zerto-rewind"}, Place{Home: "/h", OS: "linux"})
		var damaged *DamagedError
		if (err == nil) != tt.taken || err != nil && !errors.As(err, &damaged) {
			t.Errorf("%s: %v, want it taken: %t", name, err, tt.taken)
		}
	}
}

func TestUninstallationKeepsCommentsAtEveryPlace(t *testing.T) {
	t.Parallel()
	const ours = `{"hooks":[{"type":"command","command":"zerto-rewind hook --host codex"}]}`
	comments := []string{"/*x*/", "//x\n"}
	for _, settings := range []string{
		`{"hooks" X:{"PreToolUse":[OURS]}}`, `{"hooks": X{"PreToolUse":[OURS]}, "a":1}`, `{"a":1, "hooks":X {"PreToolUse":[OURS],},}`,
		`{"hooks":{X"PreToolUse":[OURS]}}`, `{"hooks":{"PreToolUse"X:[OURS]}}`, `{"hooks":{"PreToolUse":X[OURS],"Stop":[]}}`,
		`{"hooks":{"PreToolUse":[XOURS]}}`, `{"hooks":{"PreToolUse":[OURS X]}}`, `{"hooks":{"PreToolUse":[OURS X,]}}`,
		`{"hooks":{"PreToolUse":[OURS X, {"matcher":"m","hooks":[]}]}}`, `{"hooks":{"PreToolUse":[{"matcher":"m","hooks":[]} X, OURS]}}`,
		`{"hooks":{"PreToolUse":[OURS]X}}`, `{"hooks":{"PreToolUse":[OURS]X,},}`, `{"hooks":{"PreToolUse":[OURS]}X}`,
	} {
		for _, comment := range comments {
			text := strings.NewReplacer("X", comment, "OURS", ours).Replace(settings)
			h := hostNamed("codex")
			cleared, err := h.removed("f", []byte(text), "/opt/zerto-rewind", Place{Home: "/h", OS: "linux"})
			if err != nil || !strings.Contains(string(cleared), comment) || strings.Contains(string(cleared), "zerto-rewind") {
				t.Errorf("%q became %q, %v", text, cleared, err)
			}
		}
	}
}
