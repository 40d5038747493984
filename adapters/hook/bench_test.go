package hookadapter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// BenchmarkColdProcess starts the program as a host does, for a tool that only reads, and an interpreter that does
// nothing, in turns. The limits are 10 ms for the median and 40 ms for the worst of a hundred. A loaded machine shows in
// both.
func BenchmarkColdProcess(b *testing.B) {
	program := filepath.Join(b.TempDir(), "zerto-rewind")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../cmd/zerto-rewind")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	// What is called python3 may be a script that looks for one.
	interpreter, err := exec.CommandContext(b.Context(), "python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		b.Fatal(err)
	}
	text := payload(b, map[string]any{"tool_name": "mcp__proxmox__get_vms", "tool_input": map[string]any{"node": "pve1"}})
	once := func(stdin, name string, args ...string) time.Duration {
		cmd := exec.CommandContext(b.Context(), name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		started := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(started)
	}
	var hooks, pythons []time.Duration
	for b.Loop() {
		hooks = append(hooks, once(text, program, "hook", "--host", "claude"))
		pythons = append(pythons, once("", string(interpreter), "-c", "pass"))
	}
	report := func(name string, took []time.Duration) {
		slices.Sort(took)
		inMilliseconds := func(share float64) float64 {
			return took[int(share*float64(len(took)-1))].Seconds() * 1000
		}
		b.ReportMetric(inMilliseconds(0.5), name+"_p50_ms")
		b.ReportMetric(inMilliseconds(0.99), name+"_p99_ms")
	}
	report("hook", hooks)
	report("python", pythons)
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
