package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// mcpReadme tells a person what to paste where.
const mcpReadme = "../mcp/README.md"

var (
	// generated is a block below a line that names the command which prints it.
	generated = regexp.MustCompile("(?m)^<!-- from: zerto-rewind ([a-z -]+) -->\n```([a-z]*)\n((?s:.*?))^```\n")
	fenced    = regexp.MustCompile("(?m)^```([a-z]*)\n((?s:.*?))^```\n")
)

func readme(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBlocksToPasteAreWhatTheInstallersPrint makes each block anew, for a program in /usr/local/bin and the ZVM that the
// page speaks of.
func TestBlocksToPasteAreWhatTheInstallersPrint(t *testing.T) {
	t.Parallel()
	w, binary := (&world{t: t, env: map[string]string{
		"ZVM_URL": "https://zvm.example.com", "ZVM_USERNAME": "svc-rewind", "ZVM_PASSWORD_FILE": "/etc/zerto-rewind/password",
	}}).program()
	was := readme(t, mcpReadme)
	seen := map[string]bool{}
	is := generated.ReplaceAllStringFunc(was, func(block string) string {
		m := generated.FindStringSubmatch(block)
		command := strings.Fields(m[1])
		out := w.mustRun(append(command, "--binary", binary)...).out
		if slices.Contains(command, "--dry-run") {
			out = added(out)
		}
		seen[m[1]] = true
		return strings.TrimSuffix(block, m[3]+"```\n") + strings.ReplaceAll(out, binary, "/usr/local/bin/zerto-rewind") + "```\n"
	})
	if *update && is != was {
		if err := os.WriteFile(filepath.FromSlash(mcpReadme), []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
		was = is
	}
	if diff := cmp.Diff(is, was); diff != "" {
		t.Errorf("%s (-want +got):\n%s", mcpReadme, diff)
	}
	for _, host := range []string{"claude", "cursor", "vscode"} {
		for _, command := range []string{"mcp install " + host, "hook install " + host + " --dry-run"} {
			if !seen[command] {
				t.Errorf("%s has no block of %q", mcpReadme, command)
			}
		}
	}
}

// added returns the lines that a unified diff adds.
func added(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++ ") {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

// TestProxyOfTheReadmeStarts runs the command of every block that puts the proxy before a server. The server is none, which
// is as far as it can come.
func TestProxyOfTheReadmeStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blocks := 0
	for _, m := range fenced.FindAllStringSubmatch(readme(t, mcpReadme), -1) {
		if m[1] != "json" || !strings.Contains(m[2], `"proxy"`) {
			continue
		}
		var settings struct {
			Servers map[string]struct{ Args []string } `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(m[2]), &settings); err != nil {
			t.Fatalf("%v:\n%s", err, m[2])
		}
		for name, server := range settings.Servers {
			blocks++
			at := slices.Index(server.Args, "--")
			if at < 0 || at+1 >= len(server.Args) || !slices.Contains(server.Args[:at], name) {
				t.Fatalf("%s: %q", name, server.Args)
			}
			args := append(slices.Clone(server.Args[:at+1]), filepath.Join(t.TempDir(), "no-such-server"))
			w.run(args...).want(t, 1, "starting the MCP server \""+name+"\"")
		}
	}
	if blocks == 0 {
		t.Errorf("%s has no block with the proxy", mcpReadme)
	}
}

// TestReadmesNameCommandsThatExist asks for the help of every command line in a block for a shell.
func TestReadmesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	line := regexp.MustCompile(`(?m)^zerto-rewind +((?:[a-z]+(?:-[a-z]+)* *)+)`)
	option := regexp.MustCompile(`\s--([a-z][a-z-]+)`)
	for _, path := range []string{mcpReadme, "../../README.md"} {
		for _, block := range fenced.FindAllStringSubmatch(readme(t, path), -1) {
			for text := range strings.Lines(block[2]) {
				m := line.FindStringSubmatch(text)
				if block[1] != "sh" || m == nil {
					continue
				}
				help := w.mustRun(append(strings.Fields(m[1]), "--help")...).out
				command, _, _ := strings.Cut(text, "#")
				command, _, _ = strings.Cut(command, " -- ")
				for _, o := range option.FindAllStringSubmatch(command, -1) {
					if !strings.Contains(help, "--"+o[1]) {
						t.Errorf("%s: there is no --%s in\n%s", path, o[1], text)
					}
				}
			}
		}
	}
}

func TestCatalogueOfTheReadmeIsValid(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	catalogues := 0
	for _, m := range fenced.FindAllStringSubmatch(readme(t, "../../README.md"), -1) {
		if m[1] != "json" {
			continue
		}
		catalogues++
		file := filepath.Join(t.TempDir(), "catalog.json")
		if err := os.WriteFile(file, []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		w.mustRun("catalog", "validate", file)
	}
	if catalogues == 0 {
		t.Error("README.md shows no catalogue")
	}
}

// TestReadmeTellsWhatDoctorTells holds the table of hosts to what doctor says of each.
func TestReadmeTellsWhatDoctorTells(t *testing.T) {
	t.Parallel()
	page := readme(t, "../../README.md")
	for _, host := range install.Hosts() {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(install.Title(host)) + ` \| .*` + "`" + `hook install ` + host + "`" + `.*$`).FindString(page)
		if row == "" {
			t.Errorf("README.md has no row for %s", install.Title(host))
			continue
		}
		if gap := install.Gaps(host)[0]; !strings.Contains(row, gap) {
			t.Errorf("README.md does not say of %s: %s", install.Title(host), gap)
		}
	}
}
