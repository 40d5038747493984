package hookadapter_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// asProcess makes the test binary a hook, as a host would start it.
const (
	asProcess = "HOOKADAPTER_TEST_PROCESS"
	asHost    = "HOOKADAPTER_TEST_HOST"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Exit(hookadapter.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr, hookadapter.Config{
			Host: os.Getenv(asHost), Gate: noGuards, Deadline: time.Minute,
		}))
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
	fields := claudePayload(sample{server: "esxi", tool: "powerOff", args: map[string]any{"name": "web01"}})
	for name, value := range changes {
		fields[name] = value
		if value == nil {
			delete(fields, name)
		}
	}
	return asJSON(t, fields)
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
