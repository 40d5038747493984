package catalog_test

import (
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func TestParseToolName(t *testing.T) {
	t.Parallel()
	c, err := builtInData(t).With(
		catalog.Entry{Server: "a", Tool: "x", Class: mutating},
		catalog.Entry{Server: "a__b", Tool: "x", Class: mutating},
		catalog.Entry{Server: "c_", Tool: "x", Class: mutating},
	)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.WithAlias("my_pve", "ProxmoxMCP-Plus"); err != nil {
		t.Fatal(err)
	}
	long := "mcp_" + strings.Repeat("s", 26) + "..." + strings.Repeat("t", 30)
	for _, tt := range []struct {
		behaviour, text string
		want            catalog.Name
		ok              bool
	}{
		{"a known server", "mcp__proxmox__stop_vm", catalog.Name{Server: "proxmox", Tool: "stop_vm"}, true},
		{"a known server as rewritten", "mcp__ProxmoxMCP_Plus__stop_vm", catalog.Name{Server: "ProxmoxMCP_Plus", Tool: "stop_vm"}, true},
		{"an unknown server", "mcp__someones__do_it", catalog.Name{Server: "someones", Tool: "do_it"}, true},
		{"an unknown server, at the first separator", "mcp__some__ones__tool", catalog.Name{Server: "some", Tool: "ones__tool"}, true},
		{"the longest known server", "mcp__a__b__x", catalog.Name{Server: "a__b", Tool: "x"}, true},
		{"the shorter known server", "mcp__a__c__x", catalog.Name{Server: "a", Tool: "c__x"}, true},
		{"a server that ends in an underscore", "mcp__c___x", catalog.Name{Server: "c_", Tool: "x"}, true},
		{"a tool that begins with an underscore", "mcp__a___x", catalog.Name{Server: "a", Tool: "_x"}, true},
		{"overlapping separators after the longest known server", "mcp__a__b___x", catalog.Name{Server: "a__b", Tool: "_x"}, true},
		{"a key of the user", "mcp__my_pve__stop_vm", catalog.Name{Server: "my_pve", Tool: "stop_vm"}, true},
		{"a plugin's server", "mcp__plugin_zerto-rewind_zerto-rewind__zerto_sweep", catalog.Name{Server: "zerto-rewind", Tool: "zerto_sweep"}, true},
		{"a plugin's server after underscores", "mcp__plugin_my_plug_my_pve__stop_vm", catalog.Name{Server: "my_pve", Tool: "stop_vm"}, true},
		{"a plugin's unknown server", "mcp__plugin_my_plug__do_it", catalog.Name{Server: "plugin_my_plug", Tool: "do_it"}, true},
		{"a connector", "mcp__claude_ai_zerto__zerto_diff", catalog.Name{Server: "zerto", Tool: "zerto_diff"}, true},
		{"no tool", "mcp__proxmox__", catalog.Name{Tool: "mcp__proxmox__"}, false},
		{"no server", "mcp____stop_vm", catalog.Name{Tool: "mcp____stop_vm"}, false},
		{"no separator", "mcp__stop_vm", catalog.Name{Tool: "mcp__stop_vm"}, false},

		{"single underscores, known server", "mcp_proxmox_stop_vm", catalog.Name{Server: "proxmox", Tool: "stop_vm"}, true},
		{"single underscores, unknown server", "mcp_some_ones_tool", catalog.Name{Tool: "mcp_some_ones_tool"}, false},
		{"a truncated server", "mcp_proxmoxmcppl_stop_vm", catalog.Name{Tool: "mcp_proxmoxmcppl_stop_vm"}, false},
		{"a known server and a tool cut in the middle", "mcp_proxmox_stop...vm", catalog.Name{Tool: "mcp_proxmox_stop...vm"}, false},
		{"a name cut in the middle", long, catalog.Name{Tool: long}, false},

		{"a dash, known server", "ssh-mcp-server-upload", catalog.Name{Server: "ssh-mcp-server", Tool: "upload"}, true},
		{"a dash, shorter known server", "ssh-mcp-read-command", catalog.Name{Server: "ssh-mcp", Tool: "read-command"}, true},
		{"a dash, unknown server", "web-fetch", catalog.Name{Tool: "web-fetch"}, false},
		{"three underscores", "proxmox___stop_vm", catalog.Name{Server: "proxmox", Tool: "stop_vm"}, true},
		{"three underscores, unknown server", "someones___do_it", catalog.Name{Server: "someones", Tool: "do_it"}, true},
		{"a bare tool of a server", "MCP:Read", catalog.Name{Tool: "Read"}, true},
		{"a bare nothing of a server", "MCP:", catalog.Name{}, false},
		{"a built-in", "Read", catalog.Name{Tool: "Read", BuiltIn: true}, true},
		{"nothing", "", catalog.Name{}, false},
		{"a name that no host gives its own tools", "Read:x", catalog.Name{Tool: "Read:x"}, false},
		{"far too long", "mcp__proxmox__" + strings.Repeat("a", 600), catalog.Name{Tool: "mcp__proxmox__" + strings.Repeat("a", 600)}, false},
	} {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			if got, ok := c.ParseToolName(tt.text); got != tt.want || ok != tt.ok {
				t.Errorf("ParseToolName(%q) = %+v, %v; want %+v, %v", tt.text, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestEveryToolIsFoundUnderEverySpellingOfItsHosts(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	for e := range c.Entries() {
		if e.BuiltIn {
			continue
		}
		want := catalog.Verdict{Class: e.Class, Kind: e.Kind, Scope: e.Scope}
		for _, server := range append(e.Aliases, e.Server) {
			underscores := strings.NewReplacer("-", "_").Replace
			for _, text := range []string{
				"mcp__" + server + "__" + e.Tool,
				"mcp__" + underscores(server) + "__" + underscores(e.Tool),
				"mcp__plugin_some_plugin_" + server + "__" + e.Tool,
				"mcp__claude_ai_" + server + "__" + e.Tool,
				"mcp_" + server + "_" + e.Tool,
				server + "___" + e.Tool,
				server + "-" + e.Tool,
			} {
				name, ok := c.ParseToolName(text)
				if got := c.Classify(name); !ok || got != want {
					t.Errorf("%s read as %+v, %v: %+v, want %+v", text, name, ok, got, want)
				}
			}
		}
	}
}

// FuzzParseToolName checks that no spelling turns a server's tool into one of the host.
func FuzzParseToolName(f *testing.F) {
	for _, seed := range []string{
		"mcp__proxmox__stop_vm", "mcp__plugin_a_b__c", "mcp_a_b", "a___b", "a-b", "MCP:Read", "Read", "mcp__", "mcp____", "___", "-", ":", "",
	} {
		f.Add(seed)
	}
	c := builtInData(f)
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := c.ParseToolName(text)
		if name.BuiltIn && (name.Tool != text || strings.ContainsAny(text, "-:") || strings.Contains(text, "___")) {
			t.Errorf("%q read as a built-in: %+v", text, name)
		}
		if ok && name.Tool == "" {
			t.Errorf("%q read as a tool without name", text)
		}
		if !ok && c.Classify(name).Safe() {
			t.Errorf("%q is safe although its reading is a guess", text)
		}
	})
}
