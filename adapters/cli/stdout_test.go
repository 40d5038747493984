package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPWritesNothingButMessagesToStdout runs the program itself: what the runtime and libraries write counts too.
func TestMCPWritesNothingButMessagesToStdout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	binary := filepath.Join(t.TempDir(), "zerto-rewind")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/zerto-rewind").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	call := func(tool, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	}
	for name, tt := range map[string]struct {
		password string
		args     []string
		lines    []string // each is answered before the next is sent
		last     string   // gets no answer that is waited for
		code     int
	}{
		"calls that succeed and fail": {w.sim.Password(), []string{"mcp", "-v"}, []string{
			hello, call("zerto_find_protection", `{"vm":"web01"}`), call("zerto_guard_before_mutate", `{"vm":"web01","action":"x"}`),
			call("zerto_find_protection", `{"vm":"web99"}`), call("zerto_find_protection", `{"nope":1}`), call("nope", `{}`),
		}, "", 0},
		"credentials that are refused": {"MARKER-wrong", []string{"mcp", "-v", "--json"}, []string{hello, call("zerto_find_protection", `{"vm":"web01"}`)}, "", 0},
		"what is no message":           {w.sim.Password(), []string{"mcp", "-v"}, []string{hello}, "{{{", 1},
		"a flag that there is not":     {w.sim.Password(), []string{"mcp", "--bogus"}, nil, "", 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), binary, tt.args...)
			var stderr strings.Builder
			c.Stderr = &stderr
			in, lines := w.with("ZVM_PASSWORD", tt.password).with("ZERTO_REWIND_STATE_DIR", t.TempDir()).startProcess(t, c)
			check := func(line string) {
				t.Helper()
				var message struct{ JSONRPC string }
				if err := json.Unmarshal([]byte(line), &message); err != nil || message.JSONRPC != "2.0" || strings.Contains(line, "MARKER-") {
					t.Errorf("stdout has %q", line)
				}
			}
			for _, line := range tt.lines {
				_, _ = io.WriteString(in, line+"\n")
				answer, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("%v, stderr:\n%s", err, &stderr)
				}
				check(answer)
			}
			_, _ = io.WriteString(in, tt.last+"\n")
			_ = in.Close()
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(rest)) {
				check(line)
			}
			_ = c.Wait() // its error is the exit code
			if code := c.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, stderr:\n%s", code, &stderr)
			}
		})
	}
}

// TestMCPWritesNothingButMessagesToStdoutWhenAToolPanics builds the program with one method of the library that panics.
func TestMCPWritesNothingButMessagesToStdoutWhenAToolPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t).with("ZERTO_REWIND_STATE_DIR", t.TempDir())
	folder := t.TempDir()
	original, err := filepath.Abs("../../rewind/session.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const body = "return s.zvm.TaskStatus(ctx, id)"
	if !strings.Contains(string(source), body) {
		t.Fatalf("%s has no %q to replace", original, body)
	}
	replaced, overlay := filepath.Join(folder, "session.go"), filepath.Join(folder, "overlay.json")
	paths, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		replaced: strings.Replace(string(source), body, `panic("MARKER-panic")`, 1), overlay: string(paths),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(folder, "zerto-rewind")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "../cmd/zerto-rewind").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.CommandContext(t.Context(), binary, "mcp", "-v")
	in, lines := w.startProcess(t, c)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"zerto_get_task","arguments":{"taskId":"x"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"zerto_find_protection","arguments":{"vm":"web01"}}}`,
	} {
		_, _ = io.WriteString(in, line+"\n")
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %s: %v", line, err)
		}
		var message struct {
			JSONRPC string
			ID      int
			Result  struct{ IsError bool }
		}
		if err := json.Unmarshal([]byte(answer), &message); err != nil || message.JSONRPC != "2.0" || strings.Contains(answer, "MARKER-") {
			t.Errorf("stdout has %q", answer)
		}
		if failed := message.ID == 2; message.Result.IsError != failed {
			t.Errorf("%s was answered with %s", line, answer)
		}
	}
	_ = in.Close()
	rest, _ := io.ReadAll(lines)
	if err := c.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("%v, and stdout has %q", err, rest)
	}
}

// startProcess starts the built program in the world's environment, and hands on its stdin and the lines of its stdout.
func (w *world) startProcess(t *testing.T, c *exec.Cmd) (in io.WriteCloser, lines *bufio.Reader) {
	t.Helper()
	for k, v := range w.env {
		c.Env = append(c.Env, k+"="+v)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return in, bufio.NewReader(out)
}
