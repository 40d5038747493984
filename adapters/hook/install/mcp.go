package install

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ServerName is the name of our MCP server in a host's settings.
const ServerName = "zerto-rewind"

// Server is an MCP server that a host starts and talks to over its streams.
type Server struct {
	// Command is the absolute path of the program.
	Command string
	Args    []string
	Env     []Variable
	// Managed are the names of all variables that the server reads: those that Env does not name are taken out.
	Managed []string
}

// Variable is one variable of a server's environment.
type Variable struct {
	Name string
	// Value is what it holds. A variable that Refers has none: the host is told to take it from its own environment.
	Value  string
	Refers bool
}

// An mcpHost is where and how an agent host keeps its MCP servers.
type mcpHost struct {
	name, agent   string // agent is what the host's agent is called in tags
	user, project func(Place) string
	container     string
	typed         bool // an entry tells its kind
	// reference is how a value takes a variable, empty where it cannot.
	reference string
}

var mcpHosts = []mcpHost{
	{
		name: "claude", agent: "claude-code", container: "mcpServers", typed: true, reference: "${NAME}",
		user:    func(p Place) string { return filepath.Join(p.homeOr("CLAUDE_CONFIG_DIR"), ".claude.json") },
		project: below(dir, ".mcp.json"),
	},
	{
		name: "claude-desktop", agent: "claude-desktop", container: "mcpServers",
		user: func(p Place) string { return filepath.Join(p.config(), "Claude", "claude_desktop_config.json") },
	},
	{
		name: "cursor", agent: "cursor", container: "mcpServers", reference: "${env:NAME}",
		user: below(home, ".cursor", "mcp.json"), project: below(dir, ".cursor", "mcp.json"),
	},
	{
		name: "vscode", agent: "vscode", container: "servers", typed: true, reference: "${env:NAME}",
		user:    func(p Place) string { return filepath.Join(p.config(), "Code", "User", "mcp.json") },
		project: below(dir, ".vscode", "mcp.json"),
	},
	{
		name: "codex", agent: "codex", container: "mcp_servers",
		user: below(codex, "config.toml"), project: below(dir, ".codex", "config.toml"),
	},
	{
		name: "gemini", agent: "gemini-cli", container: "mcpServers", reference: "$NAME",
		user: below(home, ".gemini", "settings.json"), project: below(dir, ".gemini", "settings.json"),
	},
}

// MCPHosts returns the hosts whose settings can hold the MCP server.
func MCPHosts() []string {
	names := make([]string, len(mcpHosts))
	for i, h := range mcpHosts {
		names[i] = h.name
	}
	return names
}

// Agent returns the name by which tags call a host's agent, and "" for a host that is not known.
func Agent(host string) string {
	for _, h := range mcpHosts {
		if h.name == host {
			return h.agent
		}
	}
	return ""
}

// PlanMCP returns what would make a host start the server. It writes nothing. Of an entry that is there already, what
// somebody else has added stays.
func PlanMCP(host string, scope Scope, s Server, p Place) (*Change, error) {
	h, path, err := locateMCP(host, scope, p)
	if err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o600)
	if scope == Project {
		mode = 0o644
	}
	c, err := openChange(path, mode)
	if err != nil {
		return nil, err
	}
	if c.After, err = h.put(path, c.Before, s); err != nil {
		return nil, err
	}
	if scope == Project {
		c.Notes = append(c.Notes, "the file belongs to the project and names a path of this machine")
	}
	if c.Changed() && c.Before != nil {
		if before, err := readFile(c.target + backupSuffix); err == nil && before == nil {
			c.Backup = c.target + backupSuffix
		}
	}
	return c, nil
}

// MCPSettings returns what PlanMCP would write into an empty file, for a person to copy.
func MCPSettings(host string, scope Scope, s Server, p Place) ([]byte, error) {
	h, path, err := locateMCP(host, scope, p)
	if err != nil {
		return nil, err
	}
	return h.put(path, nil, s)
}

func locateMCP(host string, scope Scope, p Place) (*mcpHost, string, error) {
	i := slices.IndexFunc(mcpHosts, func(h mcpHost) bool { return h.name == host })
	if i < 0 {
		return nil, "", fmt.Errorf("the agent host %q is not known: want %s", host, strings.Join(MCPHosts(), ", "))
	}
	h := &mcpHosts[i]
	switch {
	case scope == User:
		return h, h.user(p), nil
	case scope == Project && h.project == nil:
		return nil, "", fmt.Errorf("%s has no settings of a project", host)
	case scope == Project:
		return h, h.project(p), nil
	}
	return nil, "", fmt.Errorf("the scope %q is not known: want %s or %s", scope, User, Project)
}

func (h *mcpHost) put(path string, data []byte, s Server) ([]byte, error) {
	if h.name == "codex" {
		return putTOML(path, data, s)
	}
	d, err := parseDocument(path, data)
	if err != nil {
		return nil, err
	}
	env, err := h.env(s)
	if err != nil {
		return nil, err
	}
	if err := h.edit(d, s, env); err != nil {
		return nil, err
	}
	return d.bytes(), nil
}

// env returns the values as the host reads them.
func (h *mcpHost) env(s Server) (map[string]string, error) {
	env := map[string]string{}
	for _, v := range s.Env {
		switch {
		case !v.Refers && h.reference != "" && strings.Contains(v.Value, "$"):
			return nil, fmt.Errorf("%s holds a $, for which %s would put something else", v.Name, h.name)
		case !v.Refers:
			env[v.Name] = v.Value
		case h.reference == "":
			return nil, fmt.Errorf("%s takes no variable of its own environment over, so %s has to be set, or a file that holds it", h.name, v.Name)
		default:
			env[v.Name] = strings.ReplaceAll(h.reference, "NAME", v.Name)
		}
	}
	return env, nil
}

// entry is a server as the host's settings hold it.
type entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

func (h *mcpHost) edit(d *document, s Server, env map[string]string) error {
	want := entry{Command: s.Command, Args: s.Args, Env: env}
	if h.typed {
		want.Type = "stdio"
	}
	servers, err := d.object(&d.root, h.container)
	if err != nil {
		return err
	}
	if servers == nil {
		return d.add(&d.root, h.container, map[string]any{ServerName: want})
	}
	ours, err := d.object(servers, ServerName)
	if err != nil {
		return err
	}
	if ours == nil {
		return d.add(servers, ServerName, want)
	}
	steps := []any{h.container, ServerName}
	for _, m := range []struct {
		name  string
		value any
	}{{"type", want.Type}, {"command", want.Command}, {"args", want.Args}} {
		if m.value == "" {
			continue
		}
		if err := d.setMember(steps, m.name, m.value); err != nil {
			return err
		}
	}
	ours, err = d.path(steps...)
	if err != nil {
		return err
	}
	held, err := d.object(ours, "env")
	if err != nil {
		return err
	}
	if held == nil {
		return d.add(ours, "env", env)
	}
	steps = append(steps, "env")
	for _, name := range s.Managed {
		if _, stays := env[name]; stays {
			continue
		}
		if container, i, err := d.parent(append(slices.Clone(steps), name)); err == nil {
			if err := d.remove(container, i); err != nil {
				return err
			}
		}
	}
	for _, v := range s.Env {
		if err := d.setMember(steps, v.Name, env[v.Name]); err != nil {
			return err
		}
	}
	return nil
}

// object returns a member that has to be an object, nil when it is not there.
func (d *document) object(v *hujson.Value, name string) (*hujson.Value, error) {
	m, err := d.member(v, name)
	if err == nil && m != nil && m.Value.Kind() != '{' {
		return nil, d.misshapen(m, "%q is not an object", name)
	}
	return m, err
}

// setMember gives a member of the object to which the steps lead a value, if it has another.
func (d *document) setMember(steps []any, name string, value any) error {
	container, err := d.path(steps...)
	if err != nil {
		return err
	}
	m, err := d.member(container, name)
	if err != nil {
		return err
	}
	if m == nil {
		return d.add(container, name, value)
	}
	var held, want any
	if err := decode(m, &held); err != nil {
		return err
	}
	want = asMap(map[string]any{"": value})[""]
	if reflect.DeepEqual(held, want) {
		return nil
	}
	return d.replace(m, value)
}
