package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

// simulation runs "sim" until the function it returns is called, which gives the exit code and stderr.
func simulation(t *testing.T, args ...string) (firstLine string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	read, write := io.Pipe()
	var stderr strings.Builder
	done := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, cli.IO{Out: write, Err: &stderr}, append([]string{"sim"}, args...))
		_ = write.Close()
		done <- code
	}()
	firstLine, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("no line: %v; exit code %d, stderr:\n%s", err, <-done, stderr.String())
	}
	return firstLine, func() (int, string) {
		cancel()
		return <-done, stderr.String()
	}
}

// exported reads "export NAME=value NAME=value".
func exported(t *testing.T, line string) map[string]string {
	t.Helper()
	words := strings.Fields(line)
	if len(words) != 5 || words[0] != "export" {
		t.Fatalf("the line is %q", line)
	}
	env := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		env[name] = value
	}
	return env
}

func TestSimLeadsTheOtherCommands(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "app.conf")
	if err := os.WriteFile(file, []byte("right"), 0o600); err != nil {
		t.Fatal(err)
	}
	line, stop := simulation(t, "--guest", "web01="+folder, "--insert-time", "20ms", "--token-ttl", "5s", "--trace")
	w := &world{t: t, env: exported(t, line)}
	w.mustRun("protect", "web01", "--action", "edit", "--change", "c1")
	if err := os.WriteFile(file, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustRun("recover", "--change", "c1", "/app.conf", "-o", file, "--force")
	if got, err := os.ReadFile(file); err != nil || string(got) != "right" {
		t.Errorf("came back as %q, %v", got, err)
	}
	code, stderr := stop()
	if code != 0 || !strings.Contains(stderr, " 200 GET /v1/vms\n") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
	if _, err := os.Stat(w.env["ZVM_CA_FILE"]); !os.IsNotExist(err) {
		t.Errorf("the CA file is still there: %v", err)
	}
}

func TestSimAsJSONWithAnotherVM(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, cli.IO{Out: write, Err: io.Discard}, []string{"sim", "--json", "--guest", "db01=" + t.TempDir()})
	}()
	var reach struct{ URL, Username, Password, CAFile string }
	if err := json.NewDecoder(read).Decode(&reach); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, env: map[string]string{
		"ZVM_URL": reach.URL, "ZVM_USERNAME": reach.Username, "ZVM_PASSWORD": reach.Password, "ZVM_CA_FILE": reach.CAFile,
	}}
	w.mustRun("find", "db01")
	w.mustRun("find", "web01")
	client, err := cli.Connect(cli.IO{Err: io.Discard, Env: w.without("ZVM_URL").lookup}, reach.URL)
	if err != nil {
		t.Fatal(err)
	}
	if site, err := client.GetLocalSite(ctx); err != nil || site.Name != "Production" {
		t.Errorf("Connect reached %+v, %v", site, err)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestSimServesAnInventory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"motd": "hello", "inventory.json": `{
		"users": [{"name": "svc-rewind", "password": "MARKER-ours", "role": "admin"}],
		"vpgs": [{"name": "db"}],
		"vms": [{"name": "db01", "vpgs": ["db"], "dirs": {"/etc": "."}}]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line, stop := simulation(t, "--inventory", filepath.Join(dir, "inventory.json"), "--profile", "quick", "--trace")
	w := &world{t: t, env: exported(t, line)}
	if w.env["ZVM_PASSWORD"] != "MARKER-ours" {
		t.Errorf("the line is %q", line)
	}
	w.mustRun("protect", "db01", "--action", "edit", "--change", "c1")
	out := filepath.Join(dir, "back")
	w.mustRun("recover", "--change", "c1", "/etc/motd", "-o", out)
	if got, err := os.ReadFile(out); err != nil || string(got) != "hello" {
		t.Errorf("came back as %q, %v", got, err)
	}
	code, stderr := stop()
	if code != 0 || !strings.Contains(stderr, " 200 DELETE /v1/flrs/") || strings.Contains(stderr, "MARKER-") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}

func TestSimSurvivesItsProfiles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"quick"}, {"realistic", "--insert-time", "10ms"}, {"hostile", "--seed", "3"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "app.conf"), []byte("right"), 0o600); err != nil {
				t.Fatal(err)
			}
			line, stop := simulation(t, append([]string{"--guest", "web01=" + folder, "--profile"}, args...)...)
			w := &world{t: t, env: exported(t, line)}
			w.mustRun("protect", "web01", "--action", "edit", "--change", "c1")
			w.mustRun("recover", "--change", "c1", "/app.conf", "-o", filepath.Join(folder, "back"))
			if code, stderr := stop(); code != 0 {
				t.Errorf("exit code %d, stderr:\n%s", code, stderr)
			}
		})
	}
}

func TestSimLeavesTokensToAKeycloak(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	realm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer realm.Close()
	for given, want := range map[string]string{
		"/auth":             "/auth/realms/zerto/protocol/openid-connect/token",
		"/auth/realms/zvm/": "/auth/realms/zvm/protocol/openid-connect/token",
	} {
		line, stop := simulation(t, "--keycloak", realm.URL+given)
		words := strings.Fields(line)
		if len(words) != 3 || !strings.HasPrefix(words[1], "ZVM_URL=") || !strings.HasPrefix(words[2], "ZVM_CA_FILE=") {
			t.Errorf("the line is %q", line)
		}
		w := &world{t: t, env: map[string]string{
			"ZVM_URL": strings.TrimPrefix(words[1], "ZVM_URL="), "ZVM_CA_FILE": strings.TrimPrefix(words[2], "ZVM_CA_FILE="),
			"ZVM_USERNAME": "ann", "ZVM_PASSWORD": "MARKER-ann", "ZVM_REALM": strings.Split(want, "/")[3],
		}}
		w.run("find", "web01").want(t, 4)
		if got := asked.Load(); got != want {
			t.Errorf("%s: the realm was asked for %v, want %s", given, got, want)
		}
		if code, stderr := stop(); code != 0 {
			t.Errorf("exit code %d, stderr:\n%s", code, stderr)
		}
	}
}

func TestSimRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	dir := t.TempDir()
	inventory, broken := filepath.Join(dir, "good.json"), filepath.Join(dir, "broken.json")
	for name, content := range map[string]string{inventory: `{"vms":[{"name":"db01"}]}`, broken: `{"vm":[]}`} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:0"},
		{"--listen", "nowhere"},
		{"--guest", "web01"},
		{"--guest", "web01=/nowhere-at-all"},
		{"--guest", "web01=.", "--guest", "web01=."},
		{"--token-ttl", "0s"},
		{"--insert-time", "-1s"},
		{"--profile", "hostile", "--insert-time", "-1s"},
		{"--profile", "gentle"},
		{"--seed", "x"},
		{"--inventory", "/nowhere-at-all"},
		{"--inventory", inventory, "--guest", "db02=."},
		{"--inventory", broken},
		{"--keycloak", "zvm.example.com"},
		{"--keycloak", "http://127.0.0.1/auth/realms/a/b"},
	} {
		w.run(append([]string{"sim"}, args...)...).want(t, 64)
	}
}

func TestMCPServesOverTheStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out, stderr strings.Builder
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	code := cli.Run(t.Context(), cli.IO{In: strings.NewReader(in), Out: &out, Err: &stderr, Env: w.lookup}, []string{"mcp"})
	if code != 0 {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr.String())
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("stdout has %q", line)
		}
	}
	w.without("ZVM_URL").run("mcp").want(t, 64, "ZVM_URL")
	w.run("mcp", "--recover-dir", "/nowhere-at-all").want(t, 1, "/nowhere-at-all")
}

const hookCall = `{"session_id":"s","transcript_path":"/t","cwd":"/","permission_mode":"default","hook_event_name":"PreToolUse",` +
	`"tool_name":"TOOL","tool_input":{"node":"pve1","vmid":"web01"},"tool_use_id":"u"}`

func (w *world) hook(tool string, args ...string) outcome {
	w.t.Helper()
	var out, stderr strings.Builder
	code := cli.Run(w.t.Context(), cli.IO{
		In: strings.NewReader(strings.Replace(hookCall, "TOOL", tool, 1)), Out: &out, Err: &stderr, Env: w.lookup,
	}, append([]string{"hook"}, args...))
	return outcome{code, out.String(), stderr.String()}
}

func TestHookNeedsNoSettingsForAReadOnlyTool(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	bare := &world{t: t}
	for _, o := range []outcome{bare.hook("Read"), bare.hook("Read", "--host", "claude"), w.hook("Read")} {
		if o != (outcome{}) {
			t.Errorf("%+v", o)
		}
	}
	if n := len(w.sim.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestHookLetsAChangeRunOnlyUnderAGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	denied := w.hook("mcp__proxmox__stop_vm")
	if denied.code != 0 || !strings.Contains(denied.out, `"deny"`) || denied.err != "" {
		t.Errorf("without a guard: %+v", denied)
	}
	w.guard()
	if allowed := w.hook("mcp__proxmox__stop_vm"); allowed != (outcome{}) {
		t.Errorf("under a guard: %+v", allowed)
	}
}

// A person who reads the refusal learns where the hook looked, what went wrong and what to try, and a host reads nothing
// else on stderr.
func TestHookSaysWhyGuardsCouldNotBeLookedUp(t *testing.T) {
	t.Parallel()
	const url = "https://127.0.0.1:1" // where nobody listens
	denied := newWorld(t).with("ZVM_URL", url).hook("mcp__proxmox__stop_vm", "-v", "--timeout", "4s")
	for _, text := range []string{`"deny"`, url, "connection refused", "zerto-rewind find web01"} {
		if !strings.Contains(denied.out, text) {
			t.Errorf("stdout lacks %q:\n%s", text, denied.out)
		}
	}
	w := newWorld(t).with("ZVM_URL", url)
	w.run("find", "web01", "--timeout", "10s").want(t, 1, "connection refused", strings.TrimPrefix(url, "https://"))
	if denied.code != 0 || denied.err != "" {
		t.Errorf("exit code %d, stderr:\n%s", denied.code, denied.err)
	}
}

// Hosts let a tool run when its hook fails with any code but 2.
func TestLaw6HookBlocksWhateverFails(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	for _, args := range [][]string{
		{"hook", "--bogus"}, {"hook", "extra"}, {"--bogus", "hook"}, {"hook", "--timeout", "soon"}, {"hook", "--timeout", "-1s"},
	} {
		o := w.run(args...)
		o.want(t, 2)
		if o.out != "" || o.err == "" {
			t.Errorf("%v: stdout %q, stderr %q", args, o.out, o.err)
		}
	}
	denied := w.with("ZERTO_REWIND_CATALOG", "/nowhere").hook("Read")
	if denied.code == 0 && !strings.Contains(denied.out, `"deny"`) {
		t.Errorf("%+v", denied)
	}
	unset := w.hook("mcp__proxmox__stop_vm")
	if unset.code == 0 && !strings.Contains(unset.out, `"permissionDecision":"`) {
		t.Errorf("%+v", unset)
	}
}

// No run shows a secret, whatever goes wrong and however much is asked for.
func TestLaw7NoSecretIsShown(t *testing.T) {
	t.Parallel()
	dest := filepath.Join(t.TempDir(), "out")
	commands := [][]string{
		{"find", "web01"},
		{"find", "nobody"},
		{"protect", "web01", "--action", "x", "--change", "c2"},
		{"guards", "web01"},
		{"browse", "--change", "c1", "/etc"},
		{"recover", "--change", "c1", "/etc/hosts", "-o", dest, "--force"},
		{"task", "0.0"},
		{"check", "proxmox", "stop_vm"},
		{"version"},
		{"mcp"},
		{"hook"},
		{"find", "--bogus"},
	}
	for _, tt := range []struct {
		name string
		prep func(w *world)
	}{
		{"all is well", func(*world) {}},
		{"the login is refused", func(w *world) { w.env["ZVM_PASSWORD"] = "MARKER-wrong-password" }},
		{"the login answers with what it got", func(w *world) {
			w.sim.On("POST", "/auth/realms/*/protocol/openid-connect/token").Always().
				Status(http.StatusBadRequest, `{"error":"invalid_grant","error_description":"not `+w.sim.Password()+`"}`)
		}},
		{"the password stands in the address", func(w *world) {
			w.env["ZVM_URL"] = strings.Replace(w.sim.URL(), "https://", "https://svc:MARKER-in-url@", 1)
		}},
		{"a secret stands where a file should", func(w *world) {
			delete(w.env, "ZVM_PASSWORD")
			w.env["ZVM_PASSWORD_FILE"] = secretFile(w.t, "MARKER-in-file", 0o644)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.guard()
			tt.prep(w)
			for _, command := range commands {
				for _, mode := range [][]string{{"-v"}, {"-v", "--json"}} {
					args := append(append([]string{}, mode...), command...)
					o := w.run(args...)
					if strings.Contains(o.out+o.err, "MARKER") {
						t.Errorf("%v shows a secret:\n%s\n%s", args, o.out, o.err)
					}
				}
			}
		})
	}
}
