// Package install puts the pre-tool-use hook and the MCP server into the settings of agent hosts, takes them out again, and
// tells what is installed.
//
// A settings file is edited as a document: foreign members, their order, comments, line endings and indentation stay, a
// second installation changes no byte, and an uninstallation gives back the bytes that the first one found if nobody
// else has changed the file. A file that cannot be understood, or whose members have other shapes than the host expects, is
// refused and left as it is. Files are written whole or not at all, through symbolic links, with the mode they have.
//
// Where a host takes a program with its arguments, it gets them so, and no shell comes between. The path is absolute. Where a
// host can block when the hook itself fails, it is told to (hooks 1.6, 2.2).
package install

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Scope says whose settings are meant.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Place says where settings are looked for.
type Place struct {
	// Home is the person's folder, Dir the project's. Both are absolute.
	Home, Dir string
	// OS is a GOOS; empty means this system's. It decides paths and how a shell is spoken to.
	OS string
	// Env looks up a variable by which a host moves its settings. Nil means none is set.
	Env func(name string) string
}

func (p Place) system() string {
	if p.OS == "" {
		return runtime.GOOS
	}
	return p.OS
}

func (p Place) env(name string) string {
	if p.Env == nil {
		return ""
	}
	return p.Env(name)
}

// homeOr returns what a variable names, else a folder below the home.
func (p Place) homeOr(variable string, below ...string) string {
	if dir := p.env(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(append([]string{p.Home}, below...)...)
}

// config returns the folder in which programs of this system keep the settings of a person.
func (p Place) config() string {
	switch p.system() {
	case "windows":
		return p.homeOr("APPDATA", "AppData", "Roaming")
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	}
	return p.homeOr("XDG_CONFIG_HOME", ".config")
}

// Hook says which hook is meant.
type Hook struct {
	Host  string // one of [Hosts]
	Scope Scope
	// Binary is the absolute path of zerto-rewind.
	Binary string
}

// Hosts returns the hosts whose settings can hold the hook.
func Hosts() []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.name
	}
	return names
}

// Title returns how a host calls itself, or the name for one that is not known.
func Title(host string) string {
	if h := hostNamed(host); h != nil {
		return h.title
	}
	return host
}

func hostNamed(name string) *host {
	i := slices.IndexFunc(hosts, func(h host) bool { return h.name == name })
	if i < 0 {
		return nil
	}
	return &hosts[i]
}

// locate returns the host and the file of a hook.
func locate(k Hook, p Place) (*host, string, error) {
	h := hostNamed(k.Host)
	if h == nil {
		return nil, "", fmt.Errorf("the agent host %q is not known: want %s", k.Host, strings.Join(Hosts(), ", "))
	}
	switch k.Scope {
	case User:
		return h, h.user(p), nil
	case Project:
		return h, h.project(p), nil
	}
	return nil, "", fmt.Errorf("the scope %q is not known: want %s or %s", k.Scope, User, Project)
}

// Plan returns what an installation would change. It writes nothing.
func Plan(k Hook, p Place) (*Change, error) {
	h, path, err := locate(k, p)
	if err != nil {
		return nil, err
	}
	c, err := openChange(path, h.mode(k.Scope))
	if err != nil {
		return nil, err
	}
	after, err := h.installed(path, c.Before, k, p)
	if err != nil {
		return nil, err
	}
	c.After = after
	c.Notes = h.notes(k.Scope, path, after, p)
	if c.Changed() && c.Before != nil && !h.holdsOurs(path, c.Before, k.Binary, p) {
		c.Backup = c.target + backupSuffix
	}
	return c, nil
}

// PlanRemoval returns what an uninstallation would change. Whichever binary the hook names, it is taken out.
func PlanRemoval(k Hook, p Place) (*Change, error) {
	h, path, err := locate(k, p)
	if err != nil {
		return nil, err
	}
	c, err := openChange(path, h.mode(k.Scope))
	if err != nil || c.Before == nil {
		return c, err
	}
	found, err := h.entries(path, c.Before, k.Binary, p)
	if err != nil || len(found) == 0 {
		return c, err
	}
	c.Notes = h.sharing()
	if k.Binary = found[0].Binary; h.undo(c, k, p) {
		return c, nil
	}
	c.After, err = h.removed(path, c.Before, k.Binary, p)
	return c, err
}

// undo gives back what the file held before it was installed into, if an installation would lead from there to here.
func (h *host) undo(c *Change, k Hook, p Place) bool {
	leadsHere := func(from []byte) bool {
		after, err := h.installed(c.Path, from, k, p)
		return err == nil && string(after) == string(c.Before)
	}
	backup := c.target + backupSuffix
	before, err := readFile(backup)
	if err != nil {
		return false
	}
	if before != nil && !h.holdsOurs(c.Path, before, k.Binary, p) && leadsHere(before) {
		c.After, c.stale = before, backup
		return true
	}
	if before == nil && leadsHere(nil) {
		c.After = nil
		return true
	}
	return false
}

func (h *host) holdsOurs(path string, data []byte, binary string, p Place) bool {
	found, err := h.entries(path, data, binary, p)
	return err == nil && len(found) > 0
}

// Path returns the file that holds a hook, whether it exists or not. The error says that the host or the scope is not known.
func Path(k Hook, p Place) (string, error) {
	_, path, err := locate(k, p)
	return path, err
}
