package install

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Entry is one place at which a host's settings run our hook.
type Entry struct {
	Event string
	// After says that the event comes after a tool: what runs there notes something, and blocks nothing.
	After bool
	// Binary is the program as the settings name it.
	Binary string
	// Argv is how the host starts it without a shell, Line how it does with one. One of them is set.
	Argv []string
	Line string
	// Drift tells what is otherwise than an installation would write it.
	Drift []string

	at    position
	alone bool // nothing else is in its group
}

// position is where an entry stands: hooks.EVENT[group], and .hooks[handler] of that where entries are nested.
type position struct{ group, handler int }

// group is what surrounds handlers where they are nested.
type group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

// ShapeError says that a settings file holds something where the host's format has something else. Line and Column count
// from 1.
type ShapeError struct {
	Path         string
	Line, Column int
	Reason       string
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; the file was left as it is", e.Path, e.Line, e.Column, e.Reason)
}

func (d *document) misshapen(v *hujson.Value, format string, args ...any) error {
	at := v.StartOffset
	line := 1 + strings.Count(string(d.text[:at]), "\n")
	return &ShapeError{d.file, line, at - strings.LastIndex(string(d.text[:at]), "\n"), fmt.Sprintf(format, args...)}
}

// hooks returns the "hooks" object, nil when there is none, after all that a host might void the whole file for is checked
// (hooks 3, pitfall 23).
func (h *host) hooks(d *document) (*hujson.Value, error) {
	if h.versioned {
		version, err := d.member(&d.root, "version")
		if err != nil {
			return nil, err
		}
		if version != nil && string(d.text[version.StartOffset:version.EndOffset]) != "1" {
			return nil, d.misshapen(version, "%q is not 1, and no other version is known", "version")
		}
	}
	hooks, err := d.member(&d.root, "hooks")
	if err != nil || hooks == nil {
		return nil, err
	}
	if hooks.Value.Kind() != '{' {
		return nil, d.misshapen(hooks, "%q is not an object", "hooks")
	}
	if err := d.distinct(hooks); err != nil {
		return nil, err
	}
	for name, event := range members(hooks) {
		if err := h.checkEvent(d, name, event); err != nil {
			return nil, err
		}
	}
	return hooks, nil
}

func (h *host) checkEvent(d *document, name string, event *hujson.Value) error {
	if event.Value.Kind() != '[' {
		return d.misshapen(event, "hooks.%s is not a list", name)
	}
	for i, element := range elements(event) {
		if element.Value.Kind() != '{' {
			return d.misshapen(element, "hooks.%s[%d] is not an object", name, i)
		}
		if h.form != nested {
			continue
		}
		handlers, err := d.member(element, "hooks")
		if err != nil {
			return err
		}
		if handlers == nil || handlers.Value.Kind() != '[' {
			return d.misshapen(element, "hooks.%s[%d] has no list %q, for which %s may drop every hook of the file", name, i, "hooks", h.title)
		}
		matcher, err := d.member(element, "matcher")
		if err != nil {
			return err
		}
		if matcher != nil && matcher.Value.Kind() != '"' {
			return d.misshapen(matcher, "the matcher of hooks.%s[%d] is not text, for which %s may drop every hook of the file", name, i, h.title)
		}
	}
	return nil
}

// entries returns where a file runs our hook. The binary counts as ours whatever its name is.
func (h *host) entries(file string, data []byte, binary string, p Place) ([]Entry, error) {
	if h.form == script {
		return h.scriptEntries(file, data, binary, p), nil
	}
	d, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	return h.find(d, binary, p)
}

func (h *host) find(d *document, binary string, p Place) ([]Entry, error) {
	hooks, err := h.hooks(d)
	if err != nil || hooks == nil {
		return nil, err
	}
	var found []Entry
	for event, list := range members(hooks) {
		for i, element := range elements(list) {
			if h.form == flat {
				if e, ok := h.entryOf(element, event, binary, p); ok {
					e.at, e.alone = position{group: i}, true
					found = append(found, e)
				}
				continue
			}
			handlers, err := d.member(element, "hooks")
			if err != nil {
				return nil, err
			}
			all, _ := items(handlers)
			for j, handler := range elements(handlers) {
				e, ok := h.entryOf(handler, event, binary, p)
				if !ok {
					continue
				}
				e.at, e.alone = position{i, j}, len(all) == 1
				e.Drift = append(e.Drift, h.groupDrift(element, event)...)
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// entryOf returns the entry that a handler is, and false if it is not ours.
func (h *host) entryOf(v *hujson.Value, event, binary string, p Place) (Entry, bool) {
	var raw map[string]any
	if decode(v, &raw) != nil {
		return Entry{}, false
	}
	e := Entry{Event: event, After: event == h.after}
	command, _ := raw["command"].(string)
	argv := []string{command}
	if args, ok := raw["args"].([]any); ok {
		for _, arg := range args {
			text, _ := arg.(string)
			argv = append(argv, text)
		}
		e.Argv = argv
	} else {
		var err error
		if argv, err = words(p.system(), command); err != nil {
			return Entry{}, false
		}
		e.Line = command
	}
	if !isOurs(argv, binary) {
		return Entry{}, false
	}
	e.Binary = argv[0]
	if slices.Contains(h.events, event) {
		e.Drift = h.drift(event, raw, e.Binary, p)
	}
	return e, true
}

// isOurs reports whether a command is zerto-rewind as a hook.
func isOurs(argv []string, binary string) bool {
	if len(argv) < 3 || argv[1] != "hook" || !slices.ContainsFunc(argv[2:], func(arg string) bool { return strings.HasPrefix(arg, "--host") }) {
		return false
	}
	name := path.Base(strings.ReplaceAll(argv[0], `\`, "/"))
	return binary != "" && samePath(argv[0], binary) || strings.HasPrefix(name, "zerto-rewind")
}

// samePath compares paths as they are written, with whichever slashes.
func samePath(a, b string) bool {
	return strings.ReplaceAll(a, `\`, "/") == strings.ReplaceAll(b, `\`, "/")
}

// drift tells in which members a handler differs from the one that an installation would write for the same binary.
func (h *host) drift(event string, raw map[string]any, binary string, p Place) []string {
	want, err := h.entryFor(event, binary, p.system())
	if err != nil {
		return []string{err.Error()}
	}
	expected := asMap(want)
	var drift []string
	for _, name := range slices.Sorted(keys(expected, raw)) {
		got, has := raw[name]
		wanted, wants := expected[name]
		switch {
		case !wants:
			drift = append(drift, fmt.Sprintf("%q is set", name))
		case !has:
			drift = append(drift, fmt.Sprintf("%q is missing", name))
		case !reflect.DeepEqual(got, wanted):
			drift = append(drift, fmt.Sprintf("%q is not %s", name, compact(wanted)))
		}
	}
	return drift
}

func (h *host) groupDrift(v *hujson.Value, event string) []string {
	var raw map[string]any
	if !slices.Contains(h.events, event) || decode(v, &raw) != nil || raw["matcher"] == h.matcherFor(event) {
		return nil
	}
	return []string{fmt.Sprintf("the matcher is not %q", h.matcherFor(event))}
}

func keys(maps ...map[string]any) func(yield func(string) bool) {
	all := map[string]bool{}
	for _, m := range maps {
		for name := range m {
			all[name] = true
		}
	}
	return func(yield func(string) bool) {
		for name := range all {
			if !yield(name) {
				return
			}
		}
	}
}

// asMap returns a value as JSON reads it.
func asMap(v any) map[string]any {
	var m map[string]any
	_ = json.Unmarshal([]byte(compact(v)), &m) // it was written the line before
	return m
}

func compact(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // plain data
	return strings.TrimSuffix(b.String(), "\n")
}
