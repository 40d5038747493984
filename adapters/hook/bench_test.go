package hookadapter_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
)

// BenchmarkReadOnlyTool is the decision in a process that has read the catalogue. The limit is that of the whole process,
// 10 ms, of which starting it takes 3 to 7.
func BenchmarkReadOnlyTool(b *testing.B) {
	text := payload(b, map[string]any{"tool_name": "mcp__proxmox__get_vms"})
	b.ReportAllocs()
	for b.Loop() {
		if r := run(b.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); r != (ran{}) {
			b.Fatalf("%+v", r)
		}
	}
}

// BenchmarkColdProcess starts the hook as a host does. The process is this test's binary, which links more than the
// hook.
func BenchmarkColdProcess(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text := payload(b, map[string]any{"tool_name": "mcp__proxmox__get_vms"})
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), self)
		cmd.Env = append(os.Environ(), asProcess+"=1")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// BenchmarkLargestInput is to stay below the deadline of 4 s by far: 1 s.
func BenchmarkLargestInput(b *testing.B) {
	text := payload(b, map[string]any{"tool_input": map[string]any{"name": "web01", "note": strings.Repeat("x", 19<<20)}})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if r := run(b.Context(), strings.NewReader(text), hookadapter.Config{Gate: noGuards}); !strings.Contains(r.stdout, "web01") {
			b.Fatalf("%+v, want the verdict on web01", r)
		}
	}
}
