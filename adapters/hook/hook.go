// Package hookadapter puts the gate in front of the tools of an agent host: it is the body of a pre-tool-use hook.
//
// The host starts a process for each tool call, writes the call to its stdin and reads the verdict from its stdout,
// stderr and exit code. [Run] is that process without the process.
//
// What each host is told (hooks 0 to 2). "Silence" is exit 0 and nothing on either stream: the host's own permissions
// apply, which an "allow" would skip in some.
//
//	host         allow, no opinion         deny                                  ask
//	claude       silence                   hookSpecificOutput "deny"             "ask" in the modes default, acceptEdits, plan
//	codex        silence                   hookSpecificOutput "deny"             denied
//	cursor       {"permission":"allow"}    {"permission":"deny",…}               {"permission":"ask",…} before MCP and shell calls
//	gemini       {}                        {"decision":"deny",…}                 denied, or "ask" on request
//	copilot      {}                        {"permissionDecision":"deny",…}       denied, or "ask" on request
//	vscode       {"continue":true}         hookSpecificOutput "deny"             "ask"
//	windsurf     silence                   exit 2, the reason on stderr          denied
//	cline        {}                        {"cancel":true,…}                     denied
//
// What cannot be understood is blocked in the way that all of them but Cline understand: exit 2, the reason on stderr,
// nothing on stdout. Where Cline may be the one that asks, stdout cancels too. Exit 1 is never used, since hosts let the
// tool run then.
package hookadapter

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const (
	// defaultDeadline is far below the 30 s after which the least patient host lets the tool run (hooks 0).
	defaultDeadline = 4 * time.Second
	// drainGrace is how long the end of an input that was read whole is waited for. A host that closes the pipe does so
	// at once; one that holds it open never does.
	drainGrace = 25 * time.Millisecond
)

// Config is what a hook is told by whoever installed it.
type Config struct {
	// Host is one of [Hosts]; [HostAuto], or empty, recognises the host by its payload. A payload that is plainly another
	// host's is answered as that host expects whatever Host says: several hosts run the hooks of each other's settings.
	Host string
	// Gate makes the gate. It is called once, after the input was read, and counts towards the deadline.
	Gate func() (*gate.Gate, error)
	// Deadline bounds the whole run; zero means 4 s. It has to be shorter than the host's own time limit.
	Deadline time.Duration
	// Questions says where a question is put. The zero value is QuestionsWhereSure.
	Questions Questions
	// Settings are files and folders, as absolute paths, that a call may not change without a person's yes. The files in
	// which hosts keep their hooks are such files anyway.
	Settings []string
	// Home is the person's home folder, so that Settings below it are known however a call spells it. It may be empty.
	Home string
}

// Questions says where a question is put to a person by the host. Elsewhere it becomes a denial, which says how a person
// can let the call run.
type Questions uint8

// The ways.
const (
	// QuestionsWhereSure asks where the host is known to ask, or to block where it does not.
	QuestionsWhereSure Questions = iota
	// QuestionsNever asks nowhere, for sessions in which nobody can answer and the host does not tell so.
	QuestionsNever
	// QuestionsWherePossible also asks in Claude Code's auto mode, Gemini CLI and Copilot, where versions were seen to let
	// the call run without asking anybody. It is for a person who has tried it.
	QuestionsWherePossible
)

// QuestionsNamed returns what a word means: "sure", "never" or "possible". It is false for any other.
func QuestionsNamed(word string) (Questions, bool) {
	at := slices.Index([]string{"sure", "never", "possible"}, word)
	return Questions(max(at, 0)), at >= 0
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

	ctx, cancel := c.limited(ctx)
	defer cancel()
	defer func() {
		if recover() != nil {
			exitCode = Refuse(stdout, stderr, c.Host, "The hook failed. The call did not run.")
		}
	}()
	in := readInput(stdin, maxInput)
	r := answerTo(ctx, in, c)
	if r.decision != gate.Allow && leadsNowhere(stdout) {
		r.answer = unheard()
	}
	exitCode = r.answer.write(stdout, stderr)
	patience := c.deadline()
	if r.whole {
		patience = drainGrace
	}
	in.drain(ctx, patience)
	return exitCode
}

// Refuse answers like [Run] when no call can be judged, for a program that failed before it came to Run. The host is
// what the hook was told, as far as that is known.
func Refuse(stdout, stderr io.Writer, host, reason string) (exitCode int) {
	a := blocked(reason)
	if host == HostCline {
		a = blockedForCline(reason)
	}
	return a.write(stdout, stderr)
}

func (c Config) deadline() time.Duration {
	if c.Deadline <= 0 {
		return defaultDeadline
	}
	return c.Deadline
}

func (c Config) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.deadline(), errTooSlow)
}

// run is what came of one input.
type run struct {
	whole    bool // the input was read whole
	host     *host
	call     toolCall
	judged   *judgement // nil for an input that was not understood
	decision gate.Decision
	answer   answer
}

// answerTo answers an input. What it holds is the host's own answer as soon as the host and the call are known, and
// before that the block that all hosts understand.
func answerTo(ctx context.Context, in *input, c Config) (r run) {
	var got reading
	select {
	case got = <-in.value:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	}
	var p *payload
	refuse := func(reason string) run {
		r.answer = blocked(reason)
		if r.mayBeClines(c.Host, p, got.text) {
			r.answer = blockedForCline(reason)
		}
		return r
	}
	if got.err != nil {
		return refuse("The tool call could not be read: " + got.err.Error() + ".")
	}
	r.whole = true
	var err error
	if p, err = parsePayload(got.text); err != nil {
		return refuse("The tool call could not be read: " + err.Error() + ".")
	}
	h, err := p.recognise(c.Host)
	if err != nil {
		return refuse(err.Error())
	}
	r.host = &h
	if r.call, err = h.read(p); err != nil {
		return refuse(err.Error())
	}
	r.call.cwd = p.text("cwd")
	j := judge(ctx, h, r.call, c)
	r.judged = &j
	r.decision, r.answer = h.answer(r.call, j, c.Questions)
	return r
}

// answer encodes a verdict as the host honours it, and returns what it comes to there.
func (h host) answer(call toolCall, j judgement, q Questions) (gate.Decision, answer) {
	switch j.verdict.Decision {
	case gate.Allow, gate.NoOpinion:
		return gate.Allow, h.pass
	case gate.Ask:
		if h.mayAsk(call, q) {
			return gate.Ask, h.ask(call, j.verdict.Reason)
		}
		return gate.Deny, h.deny(call, needsHuman(h, j))
	}
	return gate.Deny, h.deny(call, j.verdict.Reason)
}

func (h host) mayAsk(call toolCall, q Questions) bool {
	switch h.asks(call) {
	case surely:
		return q != QuestionsNever
	case fallible:
		return q == QuestionsWherePossible
	}
	return false
}

// judgement is what the gate says of a call.
type judgement struct {
	verdict gate.Verdict
	name    catalog.Name
	entry   *catalog.Entry // that decided, nil when none did
}

// judge asks the gate, on a goroutine of its own so that nothing the gate does can outwait the deadline.
func judge(ctx context.Context, h host, call toolCall, c Config) judgement {
	deadline, _ := ctx.Deadline()
	// The gate is told to come to an end a little earlier, so that it can still say what it was waiting for.
	early, cancel := context.WithDeadlineCause(ctx, deadline.Add(-time.Until(deadline)/20), errTooSlow)
	defer cancel()
	judged := make(chan judgement, 1)
	go func() {
		defer func() {
			if recover() != nil {
				judged <- refused("The hook failed while it judged this call. The call did not run.")
			}
		}()
		judged <- decide(early, h, call, c)
	}()
	select {
	case j := <-judged:
		return j
	case <-ctx.Done():
		return refused("The call did not run: " + context.Cause(ctx).Error() + ".")
	}
}

func refused(reason string) judgement { return judgement{verdict: gate.Verdict{Reason: reason}} }

func decide(ctx context.Context, h host, call toolCall, c Config) judgement {
	args, err := arguments(call.input)
	if err != nil {
		return refused("The arguments of the tool call could not be read: " + err.Error() + ". The call did not run.")
	}
	if c.Gate == nil {
		return refused("The hook has no gate. The call did not run.")
	}
	g, err := c.Gate()
	if err != nil {
		return refused("The gate could not be set up (" + err.Error() + "). The call did not run.")
	}
	known := g.Catalog()
	j := judgement{name: call.nameIn(known)}
	j.entry = known.ClassifyCall(j.name, args).Entry
	j.verdict = g.Decide(ctx, gate.Call{
		Name: j.name, Args: args,
		Host: h.name, Mode: call.mode, AgentID: call.agent, Session: call.session, CallID: call.id,
		Objection: func() string {
			if file := settingsIn(j, call.cwd, args, c); file != "" {
				return "It may change " + file + ", which decides whether agents are held to guards at all."
			}
			return ""
		},
	})
	return j
}
