package install

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"
)

// maxOutput is how much of a hook's output is kept, in bytes of each stream.
const maxOutput = 64 << 10

// Outcome is what one run of a hook did.
type Outcome struct {
	ExitCode       int
	Stdout, Stderr string
}

// Run starts the hook with exactly the words or the line that stand in the settings, as the host does, and gives it an
// input. A nil env means the environment of this process. The error says that it did not start, or did not end before ctx.
func (e Entry) Run(ctx context.Context, p Place, env []string, input string) (Outcome, error) {
	argv := e.Argv
	switch {
	case len(argv) > 0:
	case p.system() == "windows":
		argv = []string{"cmd", "/C", e.Line}
	default:
		argv = []string{"sh", "-c", e.Line}
	}
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = p.Dir, env
	c.Stdin = strings.NewReader(input)
	stdout, stderr := &head{}, &head{}
	c.Stdout, c.Stderr = stdout, stderr
	c.WaitDelay = time.Second // for what the program leaves running with its streams
	err := c.Run()
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return Outcome{}, err
	}
	return Outcome{ExitCode: c.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}, nil
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := maxOutput - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Answered reports whether the outcome of a run without any input is that of our hook, which blocks such a call in the way
// that every host understands: another exit code, or silence, would let the tool run.
func (o Outcome) Answered() bool {
	return o.ExitCode == 2 && strings.HasPrefix(o.Stderr, "zerto-rewind:") || cancels(o)
}
