package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// serverPatience is how long an MCP server may go on when its input has ended.
const serverPatience = 5 * time.Second

func (a *app) proxy() *cobra.Command {
	var name string
	c := a.command(cobra.Command{
		Use:   "proxy --name SERVER -- COMMAND [ARG...]",
		Short: "Stand before another MCP server, and let no call change a machine that is not guarded",
		Long: `Proxy starts COMMAND, an MCP server on stdin and stdout, and speaks for it: put it before the server's command in the
agent host's configuration. SERVER is the key under which that configuration, and the catalogue, know the server.

Everything passes as it is but calls of tools. Those are judged as the hook judges them: what only reads passes, what
changes a machine passes while a guard of that machine stands, and for what is unknown the human is asked through the
client, or, where the client cannot ask, the call is denied. COMMAND does not see the settings of zerto-rewind in its
environment.

A server that is reached over HTTP is not proxied, unless COMMAND is a program that speaks to it and to stdin and stdout.`,
		Args: atLeastOne("COMMAND"),
	}, 0, func(ctx context.Context, args []string) error {
		if name == "" {
			return &usageError{errors.New("missing: --name")}
		}
		return a.runProxy(ctx, name, args)
	})
	c.Flags().StringVar(&name, "name", "", "the `server`'s key in the host's configuration and in the catalogue")
	c.Flags().SetInterspersed(false)
	return c
}

func (a *app) runProxy(ctx context.Context, name string, args []string) error {
	if _, err := a.gate(); err != nil {
		return err // now, where somebody reads it, and not at the first call
	}
	tools := &definitions{server: name}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := exec.CommandContext(ctx, args[0], args[1:]...)
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = serverPatience
	server.Env = a.foreignEnvironment()
	server.Stderr = a.io.Err
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting the MCP server %q: %w", name, err)
	}
	err = proxyadapter.Run(ctx, proxyadapter.Streams{In: a.io.In, Out: a.io.Out}, proxyadapter.Streams{In: out, Out: in},
		proxyadapter.Config{
			Server: name, Protect: a.protectAsked, Answered: a.answeredProxy, Observe: tools.observe,
			Gate: func() (*gate.Gate, error) { return a.gateThat(tools.within) },
		})
	giveUp := time.AfterFunc(serverPatience, cancel)
	defer giveUp.Stop()
	switch ended := server.Wait(); {
	case errors.Is(err, proxyadapter.ErrServerEnded) && ended != nil:
		return fmt.Errorf("%w (%q: %w)", err, name, ended)
	default:
		return err
	}
}

// protectAsked makes the guard that a person asked for in answer to a question.
func (a *app) protectAsked(ctx context.Context, vms []string, action string) (rewind.GuardRecord, error) {
	session, err := a.lastingSession()
	if err != nil {
		return rewind.GuardRecord{}, err
	}
	guard, err := session.ProtectAll(ctx, vms, rewind.Change{Action: action})
	if err != nil {
		return rewind.GuardRecord{}, err
	}
	a.noteGuard(ctx, guard.Record())
	return guard.Record(), nil
}

// foreignEnvironment is the environment of a program that has no business with the ZVM.
func (a *app) foreignEnvironment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ZVM_") && !strings.HasPrefix(variable, "ZERTO_REWIND_") {
			env = append(env, variable)
		}
	}
	return env
}

func (a *app) intercept() *cobra.Command {
	var name string
	c := a.command(cobra.Command{
		Use:   "intercept [--name SERVER]",
		Short: "Judge one tool call as an interceptor of Docker's MCP gateway",
		Long: `Intercept reads one request of a tool from stdin, as Docker's MCP gateway hands it to an interceptor:

  docker mcp gateway run --interceptor 'before:exec:zerto-rewind intercept --name SERVER'

It prints nothing when the call may run, and otherwise the result that the agent gets instead. It cannot ask anybody. A
request that it cannot read is an error, on which the gateway lets nothing run.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		return proxyadapter.Intercept(ctx, a.io.In, a.io.Out, proxyadapter.Config{Server: name, Gate: a.gate})
	})
	c.Flags().StringVar(&name, "name", "", "the `server` whose tools the gateway offers; without it, a tool's name has to tell")
	return c
}
