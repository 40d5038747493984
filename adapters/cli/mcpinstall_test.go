package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

func TestMCPSettingsHoldNoSecret(t *testing.T) {
	t.Parallel()
	base := &world{t: t, env: map[string]string{
		"ZVM_URL": "https://zvm.example.com", "ZVM_USERNAME": "svc-rewind", "ZVM_PASSWORD": "MARKER-password",
		"ZVM_CERT_SHA256": strings.Repeat("ab", 32), "ZERTO_REWIND_TOKEN_CACHE": "1",
	}}
	w, binary := base.program()
	for _, host := range install.MCPHosts() {
		o := w.run("mcp", "install", host, "--binary", binary)
		if host == "claude-desktop" {
			o.want(t, 64, "ZVM_PASSWORD")
			continue
		}
		o.want(t, 0)
		for _, text := range []string{binary, "https://zvm.example.com", "svc-rewind", "ZVM_PASSWORD", "ZERTO_REWIND_AGENT", "ZERTO_REWIND_TOKEN_CACHE"} {
			if !strings.Contains(o.out, text) {
				t.Errorf("%s: stdout lacks %q:\n%s", host, text, o.out)
			}
		}
		if strings.Contains(o.out+o.err, "MARKER-") {
			t.Errorf("%s shows the secret:\n%s", host, o.out)
		}
	}
	file := w.without("ZVM_PASSWORD").with("ZVM_PASSWORD_FILE", "secret.txt")
	want, err := filepath.Abs("secret.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range install.MCPHosts() {
		o := file.mustRun("mcp", "install", host, "--binary", binary)
		if !strings.Contains(o.out, want) || strings.Contains(o.out, `"ZVM_PASSWORD"`) {
			t.Errorf("%s:\n%s", host, o.out)
		}
	}
	client := w.without("ZVM_USERNAME", "ZVM_PASSWORD").with("ZVM_CLIENT_SECRET", "MARKER-secret").with("ZVM_CLIENT_ID", "rewind")
	if o := client.mustRun("mcp", "install", "cursor", "--binary", binary); !strings.Contains(o.out, "${env:ZVM_CLIENT_SECRET}") || strings.Contains(o.out, "PASSWORD") {
		t.Errorf("a service client:\n%s", o.out)
	}
	if o := w.without("ZVM_URL", "ZVM_USERNAME", "ZVM_PASSWORD").mustRun("mcp", "install", "claude", "--binary", binary); !strings.Contains(o.out, "${ZVM_URL}") || !strings.Contains(o.out, "${ZVM_USERNAME}") {
		t.Errorf("nothing is set:\n%s", o.out)
	}
}

func TestMCPInstallWritesWhenTold(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t}).program()
	path := filepath.Join(w.env["HOME"], ".cursor", "mcp.json")
	w.mustRun("mcp", "install", "cursor", "--binary", binary)
	w.mustRun("mcp", "install", "cursor", "--binary", binary, "--dry-run")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	var did struct {
		Path    string
		Changed bool
	}
	for _, changed := range []bool{true, false} {
		o := w.mustRun("mcp", "install", "cursor", "--binary", binary, "--write", "--json")
		if err := json.Unmarshal([]byte(o.out), &did); err != nil || did.Path != path || did.Changed != changed {
			t.Errorf("%+v, %v, want changed %t", did, err, changed)
		}
	}
	w.run("mcp", "install", "emacs", "--binary", binary).want(t, 64, "emacs")
	w.run("mcp", "install").want(t, 64, "HOST")
	var printed struct{ Host, Settings string }
	if err := json.Unmarshal([]byte(w.mustRun("mcp", "install", "codex", "--binary", binary, "--json").out), &printed); err != nil || !strings.Contains(printed.Settings, "[mcp_servers.zerto-rewind]") {
		t.Errorf("%+v, %v", printed, err)
	}
}
