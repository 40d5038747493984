package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

func server(variables ...install.Variable) install.Server {
	return install.Server{
		Command: binary, Args: []string{"mcp"}, Env: variables,
		Managed: []string{"ZVM_URL", "ZVM_PASSWORD", "ZVM_PASSWORD_FILE"},
	}
}

var (
	url          = install.Variable{Name: "ZVM_URL", Value: "https://zvm.example.com"}
	password     = install.Variable{Name: "ZVM_PASSWORD", Refers: true}
	passwordFile = install.Variable{Name: "ZVM_PASSWORD_FILE", Value: "/run/secrets/zvm"}
)

func TestGoldenMCPSettings(t *testing.T) {
	t.Parallel()
	for _, host := range install.MCPHosts() {
		s := server(url, password)
		if host == "claude-desktop" {
			s = server(url, passwordFile)
		}
		got, err := install.MCPSettings(host, install.User, s, install.Place{Home: "/home/ann", Dir: "/work", OS: "linux"})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "mcp-"+host+".golden", string(got))
	}
}

// planMCP applies a plan to a file that holds text, and returns what it holds then.
func planMCP(t *testing.T, host, text string, s install.Server) (string, *install.Change, error) {
	t.Helper()
	root := t.TempDir()
	place := install.Place{Home: root, Dir: root, OS: "linux"}
	c, err := install.PlanMCP(host, install.User, s, place)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = install.PlanMCP(host, install.User, s, place); err != nil {
		return text, nil, err
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := install.PlanMCP(host, install.User, s, place)
	if err != nil || again.Changed() {
		t.Errorf("%s: a second time: changed %t, %v", host, again != nil && again.Changed(), err)
	}
	return string(got), c, nil
}

func TestMCPServerJoinsOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ host, before, after string }{
		"beside others": {
			"cursor", "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"} // stays\n  },\n  \"z\": 1\n}\n",
			"{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // stays\n    \"zerto-rewind\": {\n      \"command\": \"/opt/zerto/bin/zerto-rewind\",\n" +
				"      \"args\": [\n        \"mcp\"\n      ],\n      \"env\": {\n        \"ZVM_PASSWORD\": \"${env:ZVM_PASSWORD}\",\n        \"ZVM_URL\": \"https://zvm.example.com\"\n" +
				"      }\n    }\n  },\n  \"z\": 1\n}\n",
		},
		"what was added to ours stays": {
			"vscode",
			`{"servers":{"zerto-rewind":{"type":"stdio","command":"/old/zerto-rewind","args":["mcp"],"disabled":true,"env":{"ZVM_PASSWORD_FILE":"/old","MINE":"1","ZVM_URL":"https://old"}}}}`,
			`{"servers":{"zerto-rewind":{"type":"stdio","command":"/opt/zerto/bin/zerto-rewind","args":["mcp"],"disabled":true,"env":{"MINE":"1","ZVM_URL":"https://zvm.example.com", "ZVM_PASSWORD": "${env:ZVM_PASSWORD}"}}}}`,
		},
		"behind the last table": {
			"codex", "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"",
			"# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[mcp_servers.zerto-rewind]\nargs = ['mcp']\ncommand = '/opt/zerto/bin/zerto-rewind'\n" +
				"env_vars = ['ZVM_PASSWORD']\n\n[mcp_servers.zerto-rewind.env]\nZVM_URL = 'https://zvm.example.com'\n",
		},
		"in place of the old table": {
			"codex",
			"[mcp_servers.\"zerto-rewind\"] # ours\ncommand = \"/old\"\nstartup_timeout_sec = 3\nenv_vars = [\"MINE\", \"ZVM_PASSWORD\"]\n[mcp_servers.zerto-rewind.env]\nZVM_PASSWORD_FILE = \"/x\"\n\n# about it\n[tui] # next\na = \"[b]\"\n",
			"[mcp_servers.zerto-rewind]\nargs = ['mcp']\ncommand = '/opt/zerto/bin/zerto-rewind'\nenv_vars = ['MINE', 'ZVM_PASSWORD']\nstartup_timeout_sec = 3\n\n" +
				"[mcp_servers.zerto-rewind.env]\nZVM_URL = 'https://zvm.example.com'\n\n# about it\n[tui] # next\na = \"[b]\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := planMCP(t, tt.host, tt.before, server(url, password))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMCPSettingsThatCannotBeEditedAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ host, text string }{
		"damaged":            {"claude", "{,}"},
		"a list of servers":  {"gemini", `{"mcpServers": []}`},
		"ours is text":       {"cursor", `{"mcpServers": {"zerto-rewind": "x"}}`},
		"env is a list":      {"cursor", `{"mcpServers": {"zerto-rewind": {"env": []}}}`},
		"damaged TOML":       {"codex", "a = \n"},
		"an inline table":    {"codex", "mcp_servers = {other = {command = \"x\"}}\n"},
		"a dotted key":       {"codex", "mcp_servers.zerto-rewind.command = \"x\"\n"},
		"servers are text":   {"codex", "mcp_servers = \"x\"\n"},
		"ours is text there": {"codex", "[mcp_servers]\nzerto-rewind = \"x\"\n"},
		"a header in text":   {"codex", "a = '''\n[mcp_servers.zerto-rewind]\n'''\n[mcp_servers.zerto-rewind]\ncommand = \"x\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := planMCP(t, tt.host, tt.text, server(url, password))
			var damaged *install.DamagedError
			var shape *install.ShapeError
			if !errors.As(err, &damaged) && !errors.As(err, &shape) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestSecretIsReferredToOrRefused(t *testing.T) {
	t.Parallel()
	place := install.Place{Home: "/home/ann", Dir: "/work", OS: "linux"}
	if _, err := install.MCPSettings("claude-desktop", install.User, server(url, password), place); err == nil || !strings.Contains(err.Error(), "ZVM_PASSWORD") {
		t.Errorf("a host without references: %v", err)
	}
	for _, host := range []string{"claude", "cursor", "vscode", "gemini"} {
		if _, err := install.MCPSettings(host, install.User, server(install.Variable{Name: "ZVM_URL", Value: "https://$HOME"}), place); err == nil {
			t.Errorf("%s: a value that it would expand was written", host)
		}
	}
	for _, tt := range []struct {
		host  string
		scope install.Scope
	}{{"emacs", install.User}, {"claude-desktop", install.Project}, {"claude", "managed"}} {
		if _, err := install.MCPSettings(tt.host, tt.scope, server(), place); err == nil {
			t.Errorf("%s %s: no error", tt.host, tt.scope)
		}
	}
}
