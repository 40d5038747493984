// Package hookadapter puts the gate in front of the tools of an agent host: it is the body of a pre-tool-use hook.
//
// The host starts a process for each tool call, writes the call to its stdin and reads the verdict from its stdout,
// stderr and exit code. [Run] is that process without the process. It speaks to Claude Code; the payload of any other
// host is recognised and blocked in the one way that all of them understand (hooks 0).
//
// What Claude Code is told (hooks 1.5 to 1.7):
//
//	allow, no opinion   exit 0 and nothing: its own permissions apply, which "allow" would skip
//	deny                exit 0 and one JSON object on stdout, nothing on stderr
//	ask                 the same with "ask", in the modes that do ask: default, acceptEdits and plan; else deny
//	all else            exit 2, the reason on stderr, nothing on stdout
//
// Exit 1 is never used, since hosts let the tool run then.
package hookadapter

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// HostClaude is Claude Code.
const HostClaude = "claude"

const (
	// defaultDeadline is far below the 30 s after which the least patient host lets the tool run (hooks 0).
	defaultDeadline = 4 * time.Second
	// drainGrace is how long the end of an input that was read whole is waited for. A host that closes the pipe does so
	// at once; one that holds it open never does.
	drainGrace = 25 * time.Millisecond
)

// Config is what a hook is told by whoever installed it.
type Config struct {
	// Host is [HostClaude], or empty to recognise the host by its payload. A payload that is plainly another host's is
	// blocked whatever Host says: several hosts run the hooks of Claude Code's settings.
	Host string
	// Gate makes the gate. It is called once, after the input was read, and counts towards the deadline.
	Gate func() (*gate.Gate, error)
	// Deadline bounds the whole run; zero means 4 s. It has to be shorter than the host's own time limit.
	Deadline time.Duration
	// NeverAsk turns every question into a denial, for hosts on which nobody can answer.
	NeverAsk bool
}

var errTooSlow = errors.New("the verdict took longer than the hook's time limit")

// Run reads one tool call and answers it. It returns the exit code, 0 or 2, within the deadline even if the input never
// ends or the gate hangs, and even if the reader of its output is gone. A goroutine that waits for the input, or for the
// gate, may outlive it; the process should end with the code at once.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, c Config) (exitCode int) {
	// Without a receiver for it, the signal would end the process on a write to a closed stdout, and the host would let
	// the tool run.
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE)
	defer signal.Stop(brokenPipe)

	deadline := c.Deadline
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errTooSlow)
	defer cancel()

	in := readInput(stdin, maxInput)
	a, whole := answerTo(ctx, in, c)
	exitCode = a.write(stdout, stderr)
	patience := deadline
	if whole {
		patience = drainGrace
	}
	in.drain(ctx, patience)
	return exitCode
}

// answerTo returns the answer, and whether the input was read whole.
func answerTo(ctx context.Context, in *input, c Config) (a answer, whole bool) {
	var got reading
	select {
	case got = <-in.value:
	case <-ctx.Done():
		return blocked("No complete tool call arrived: " + context.Cause(ctx).Error() + "."), false
	}
	if got.err != nil {
		return blocked("The tool call could not be read: " + got.err.Error() + "."), false
	}
	p, err := parsePayload(got.text)
	if err != nil {
		return blocked("The tool call could not be read: " + err.Error() + "."), true
	}
	if err := p.recognise(c.Host); err != nil {
		return blocked(err.Error()), true
	}
	return claudeAnswer(judge(ctx, p, c), p.mode, c.NeverAsk), true
}

// judge asks the gate, on a goroutine of its own so that nothing the gate does can outwait the deadline.
func judge(ctx context.Context, p *payload, c Config) gate.Verdict {
	deadline, _ := ctx.Deadline()
	// The gate is told to come to an end a little earlier, so that it can still say what it was waiting for.
	early, cancel := context.WithDeadlineCause(ctx, deadline.Add(-time.Until(deadline)/20), errTooSlow)
	defer cancel()
	verdict := make(chan gate.Verdict, 1)
	go func() {
		defer func() {
			if recover() != nil {
				verdict <- gate.Verdict{Reason: "The hook failed while it judged this call. The call did not run."}
			}
		}()
		verdict <- decide(early, p, c)
	}()
	select {
	case v := <-verdict:
		return v
	case <-ctx.Done():
		return gate.Verdict{Reason: "The call did not run: " + context.Cause(ctx).Error() + "."}
	}
}

func decide(ctx context.Context, p *payload, c Config) gate.Verdict {
	args, err := p.arguments()
	if err != nil {
		return gate.Verdict{Reason: "The arguments of the tool call could not be read: " + err.Error() + ". The call did not run."}
	}
	if c.Gate == nil {
		return gate.Verdict{Reason: "The hook has no gate. The call did not run."}
	}
	g, err := c.Gate()
	if err != nil {
		return gate.Verdict{Reason: "The gate could not be set up (" + err.Error() + "). The call did not run."}
	}
	// A name that was split by guess belongs to an unknown server, which the gate is told by the name itself.
	name, _ := g.Catalog().ParseToolName(p.tool)
	return g.Decide(ctx, gate.Call{Name: name, Args: args})
}
