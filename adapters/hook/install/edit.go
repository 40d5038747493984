package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// installed returns what a file holds after an installation.
func (h *host) installed(file string, data []byte, k Hook, p Place) ([]byte, error) {
	if h.form == script {
		entry, err := h.entry(k.Binary, p.system())
		if err != nil {
			return nil, err
		}
		return h.writeScript(file, data, entry, k.Binary, p)
	}
	d, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	for _, event := range h.events {
		entry, err := h.entryFor(event, k.Binary, p.system())
		if err != nil {
			return nil, err
		}
		if err := h.put(d, event, entry, k.Binary, p); err != nil {
			return nil, err
		}
	}
	if err := h.verify(d, k.Binary, p); err != nil {
		return nil, err
	}
	if len(data) > 0 && string(d.bytes()) == string(data) {
		return data, nil
	}
	return d.bytes(), nil
}

// put makes an event run the hook once, as it should.
func (h *host) put(d *document, event string, entry handler, binary string, p Place) error {
	var content any = entry
	if h.form == nested {
		content = group{Matcher: h.matcherFor(event), Hooks: []handler{entry}}
	}
	found, err := h.find(d, binary, p)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(e Entry) bool { return e.Event != event })
	kept := -1
	for i := len(found) - 1; i >= 0; i-- { // from the last, so that the positions of the others stay
		e := found[i]
		right := samePath(e.Binary, binary) && len(e.Drift) == 0
		if kept < 0 && i == 0 && right {
			kept = i
			continue
		}
		if i == 0 && e.alone {
			element, err := d.path("hooks", event, e.at.group)
			if err != nil {
				return err
			}
			if h.form == flat || h.isPlainGroup(element) {
				return d.replace(element, content)
			}
		}
		if err := h.take(d, e); err != nil {
			return err
		}
	}
	if kept >= 0 {
		return nil
	}
	return h.append(d, event, content)
}

// isPlainGroup reports whether a group has no member that somebody else has put there.
func (h *host) isPlainGroup(v *hujson.Value) bool {
	var raw map[string]any
	if decode(v, &raw) != nil {
		return false
	}
	delete(raw, "matcher")
	delete(raw, "hooks")
	return len(raw) == 0
}

// append adds an entry behind those of an event, and what is missing above it.
func (h *host) append(d *document, event string, content any) error {
	if h.versioned {
		version, err := d.member(&d.root, "version")
		if err != nil {
			return err
		}
		if version == nil {
			if err := d.add(&d.root, "version", 1); err != nil {
				return err
			}
		}
	}
	hooks, err := d.member(&d.root, "hooks")
	if err != nil {
		return err
	}
	if hooks == nil {
		return d.add(&d.root, "hooks", map[string]any{event: []any{content}})
	}
	list, err := d.member(hooks, event)
	if err != nil {
		return err
	}
	if list == nil {
		return d.add(hooks, event, []any{content})
	}
	return d.add(list, "", content)
}

// removed returns what a file holds after an uninstallation.
func (h *host) removed(file string, data []byte, binary string, p Place) ([]byte, error) {
	if h.form == script {
		return nil, nil
	}
	d, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	found, err := h.find(d, binary, p)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(found) {
		if err := h.take(d, e); err != nil {
			return nil, err
		}
	}
	return d.bytes(), nil
}

// take removes an entry, and the containers that it leaves empty.
func (h *host) take(d *document, e Entry) error {
	steps := []any{"hooks", e.Event, e.at.group}
	if h.form == nested {
		steps = append(steps, "hooks", e.at.handler)
	}
	for {
		container, index, err := d.parent(steps)
		if err != nil {
			return err
		}
		if err := d.remove(container, index); err != nil {
			return err
		}
		if container, err = d.path(steps[:len(steps)-1]...); err != nil {
			return err
		}
		if !d.isEmpty(container) {
			return nil
		}
		if steps = steps[:len(steps)-1]; len(steps) == 0 {
			return nil
		}
		if len(steps) == 4 {
			steps = steps[:3] // a group goes whole
		}
	}
}

// path returns the value to which names and indexes lead.
func (d *document) path(steps ...any) (*hujson.Value, error) {
	v := &d.root
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			next, err := d.member(v, step)
			if err != nil {
				return nil, err
			}
			if next == nil {
				return nil, fmt.Errorf("%s: %q is gone", d.file, step)
			}
			v = next
		case int:
			list, ok := v.Value.(*hujson.Array)
			if !ok || step >= len(list.Elements) {
				return nil, errors.New("no such element")
			}
			v = &list.Elements[step]
		}
	}
	return v, nil
}

// parent returns the container of the value to which steps lead, and the value's index in it.
func (d *document) parent(steps []any) (*hujson.Value, int, error) {
	container, err := d.path(steps[:len(steps)-1]...)
	if err != nil {
		return nil, 0, err
	}
	switch last := steps[len(steps)-1].(type) {
	case int:
		return container, last, nil
	case string:
		i := -1
		for name := range members(container) {
			if i++; name == last {
				return container, i, nil
			}
		}
	}
	return nil, 0, errors.New("no such member")
}

// verify reads the document that will be written as the host will: each event runs the hook once, as it should.
func (h *host) verify(d *document, binary string, p Place) error {
	again, err := parseDocument(d.file, d.bytes())
	if err != nil {
		return err
	}
	found, err := h.find(again, binary, p)
	if err != nil {
		return err
	}
	for _, event := range h.events {
		n := 0
		for _, e := range found {
			if e.Event == event && samePath(e.Binary, binary) && len(e.Drift) == 0 {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%s: the edited settings would run the hook %d times on %s; the file was left as it is", d.file, n, event)
		}
	}
	return nil
}

// notes tells a person what the host makes of the file.
func (h *host) notes(scope Scope, file string, data []byte, p Place) []string {
	notes := h.sharing()
	if scope == Project {
		notes = append(notes, "the file belongs to the project and names a path of this machine: on another one the hook does not start")
	}
	switch h.name {
	case "codex":
		notes = append(notes, "Codex skips a new or changed hook until a person has reviewed it in /hooks")
	case "gemini":
		if scope == Project {
			notes = append(notes, "Gemini CLI runs hooks of a project only in a trusted folder")
		}
	}
	if h.form == script {
		return notes
	}
	d, err := parseDocument(file, data)
	if err != nil {
		return notes
	}
	return append(notes, h.warnings(d)...)
}

// sharing tells who else reads the file.
func (h *host) sharing() []string {
	if h.name != "copilot" && h.name != "vscode" {
		return nil
	}
	return []string{"Copilot and VS Code both read this file: one entry serves both"}
}

// warnings tells what in the file keeps the host from running the hook.
func (h *host) warnings(d *document) []string {
	var notes []string
	if h.strict && d.hasComments() {
		notes = append(notes, h.title+" is not known to read comments: if it does not, no hook of this file runs")
	}
	var settings struct {
		DisableAllHooks any
		HooksConfig     struct{ Enabled any }
		Hooks           map[string]any
	}
	if decode(&d.root, &settings) != nil {
		return notes
	}
	if settings.DisableAllHooks == true && h.name != "gemini" {
		notes = append(notes, `"disableAllHooks" is true: no hook of this file runs`)
	}
	if settings.HooksConfig.Enabled == false && h.name == "gemini" {
		notes = append(notes, `"hooksConfig.enabled" is false: no hook runs`)
	}
	for _, event := range slices.Sorted(keys(settings.Hooks)) {
		if len(h.known) > 0 && !slices.Contains(h.known, event) {
			notes = append(notes, fmt.Sprintf("the event %q is not known: if %s does not know it either, it drops every hook of the file", event, h.title))
		}
	}
	return notes
}

const scriptHead = "#!/bin/sh\n# zerto-rewind judges each tool call before it runs. To take this out: zerto-rewind hook uninstall cline\nexec "

func (h *host) writeScript(file string, data []byte, entry handler, binary string, p Place) ([]byte, error) {
	if len(strings.TrimSpace(string(data))) > 0 && len(h.scriptEntries(file, data, binary, p)) == 0 {
		return nil, &ShapeError{file, 1, 1, fmt.Sprintf("it is somebody else's hook; let it start this at its end, with its own stdin: exec %s", entry.Command)}
	}
	return []byte(scriptHead + entry.Command + "\n"), nil
}

func (h *host) scriptEntries(file string, data []byte, binary string, p Place) []Entry {
	line, ok := strings.CutPrefix(string(data), scriptHead)
	if !ok {
		return nil
	}
	line = strings.TrimSuffix(line, "\n")
	argv, err := words(p.system(), line)
	if err != nil || !isOurs(argv, binary) {
		return nil
	}
	e := Entry{Event: h.events[0], Binary: argv[0], Argv: []string{file}}
	if want, err := h.entry(argv[0], p.system()); err != nil || want.Command != line {
		e.Drift = []string{"it is not what an installation writes"}
	}
	return []Entry{e}
}
