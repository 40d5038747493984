package hookadapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// asProcess makes the test binary a hook, as a host would start it.
const asProcess = "HOOKADAPTER_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Exit(hookadapter.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr, hookadapter.Config{Gate: noGuards}))
	}
	os.Exit(m.Run())
}

type guardsFunc func(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error)

func (f guardsFunc) Guards(ctx context.Context, vm string, since time.Duration) ([]*rewind.Guard, error) {
	return f(ctx, vm, since)
}

func gateWith(guards guardsFunc) func() (*gate.Gate, error) {
	return func() (*gate.Gate, error) {
		c, err := catalog.Default()
		if err != nil {
			return nil, err
		}
		return gate.New(c, func() (gate.Guards, error) { return guards, nil }, gate.Policy{Commands: shell.Reader{}})
	}
}

// noGuards is a gate in whose world nothing is guarded.
func noGuards() (*gate.Gate, error) {
	return gateWith(func(context.Context, string, time.Duration) ([]*rewind.Guard, error) { return nil, nil })()
}

// ran is all that a host sees of one run.
type ran struct {
	exitCode       int
	stdout, stderr string
}

func run(ctx context.Context, stdin io.Reader, c hookadapter.Config) ran {
	var stdout, stderr bytes.Buffer
	exitCode := hookadapter.Run(ctx, stdin, &stdout, &stderr, c)
	return ran{exitCode, stdout.String(), stderr.String()}
}

// payload is what Claude Code sends, with members replaced or added. A nil value takes the member away.
func payload(t testing.TB, changes map[string]any) string {
	t.Helper()
	fields := map[string]any{
		"session_id": "5f0c", "transcript_path": "/home/u/t.jsonl", "cwd": "/home/u", "permission_mode": "default",
		"hook_event_name": "PreToolUse", "tool_name": "mcp__esxi__powerOff", "tool_input": map[string]any{"name": "web01"},
		"tool_use_id": "toolu_01",
	}
	for name, value := range changes {
		fields[name] = value
		if value == nil {
			delete(fields, name)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type outcome string

const (
	blocked  outcome = "blocked"
	asked    outcome = "asked"
	proceeds outcome = "proceeds"
)

// claudeReads is what Claude Code makes of a run (hooks 1.5 to 1.7), at its worst where versions differ: output of
// mixed forms does not block, and a question outside the modes that ask is answered with yes.
func claudeReads(r ran, mode string) outcome {
	if r.exitCode == 2 && r.stdout == "" && strings.TrimSpace(r.stderr) != "" {
		return blocked
	}
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	var said struct {
		Output struct {
			Event    string `json:"hookEventName"`
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	decoder.DisallowUnknownFields()
	switch {
	case r.exitCode != 0 || r.stderr != "" || !strings.HasPrefix(r.stdout, "{"),
		decoder.Decode(&said) != nil || decoder.More() || said.Output.Event != "PreToolUse" || strings.TrimSpace(said.Output.Reason) == "":
		return proceeds
	case said.Output.Decision == "deny":
		return blocked
	case said.Output.Decision == "ask" && slices.Contains([]string{"default", "acceptEdits", "plan"}, mode):
		return asked
	}
	return proceeds
}

func expect(t *testing.T, behaviour string, r ran, mode string, want outcome) {
	t.Helper()
	if got := claudeReads(r, mode); got != want {
		t.Errorf("%s: Claude reads %q from %+v, want %q", behaviour, got, r, want)
	}
	if r.exitCode == 1 || r.stdout != "" && r.stderr != "" {
		t.Errorf("%s: mixed output or exit 1: %+v", behaviour, r)
	}
}

// byteByByte hands out one byte at a time, and then blocks for ever, as a pipe does that is held open.
type byteByByte struct {
	text []byte
	open chan struct{}
}

func (b *byteByByte) Read(p []byte) (int, error) {
	if len(b.text) == 0 {
		<-b.open
		return 0, io.EOF
	}
	p[0], b.text = b.text[0], b.text[1:]
	return 1, nil
}

func heldOpen(t *testing.T, text string) io.Reader {
	t.Helper()
	b := &byteByByte{text: []byte(text), open: make(chan struct{})}
	t.Cleanup(func() { close(b.open) })
	return b
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
