// Package cli is the command line of Zerto AI Rewind. It translates: flags and environment into a client and a session,
// results into text or JSON, errors into exit codes. It decides nothing that a library user would miss.
//
// [Run] runs one command within the process, which is how its tests use it, and how a program may embed it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// IO is what a command sees of the world. Results go to Out, everything else to Err.
type IO struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Env looks up an environment variable, as [os.LookupEnv] does. Nil means an empty environment.
	Env func(name string) (value string, set bool)
	// Terminal says that a person watches Err: progress is shown there.
	Terminal bool
	// Interactive says that this person can answer questions on In.
	Interactive bool
	// Operator reports whether In is this process's own terminal, so that a person may be there who can give leave. Nil
	// means that it is not.
	Operator func() bool
}

// OS returns the standard streams and the environment of this process.
func OS() IO {
	watched := isTerminal(os.Stderr)
	return IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Env:         os.LookupEnv,
		Terminal:    watched,
		Interactive: watched && isTerminal(os.Stdin),
		Operator:    func() bool { return ownTerminal(os.Stdin) && ownTerminal(os.Stderr) },
	}
}

// isTerminal also takes the null device for one. Nothing is lost on it, and it answers no question.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (io IO) variable(name string) string {
	if io.Env == nil {
		return ""
	}
	value, _ := io.Env(name)
	return value
}

// Run runs one command line, without the program's name, and returns its exit code. When ctx ends the command ends, and
// says what goes on without it.
func Run(ctx context.Context, io IO, args []string) int {
	io.Err = &lineWriter{to: io.Err}
	a := &app{io: io}
	defer a.closeLedger()
	root := a.root() //nolint:contextcheck // cobra hands ctx on to the command
	root.SetArgs(args)
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return a.exit
	}
	if !a.running {
		err = &usageError{errors.New(strings.Join(strings.Fields(err.Error()), " "))} // cobra's take several lines
	}
	if is[*usageError](err) && !is[*hintError](err) {
		err = hinted(err, "see %s --help", command.CommandPath())
	}
	if ctx.Err() != nil {
		err = &interruptedError{err}
	}
	if isHook(command, args) {
		return a.refuseCall(args, err)
	}
	a.json = a.json || slices.Contains(args, "--json")
	a.reportError(err)
	return exitCode(err)
}

// app is one run.
type app struct {
	io       IO
	settings settings
	json     bool
	verbose  bool
	running  bool          // the command line was understood: errors are no longer about it
	limit    time.Duration // of the whole command; zero means none
	exit     int           // of a command that ended without an error
	log      *slog.Logger
	bar      bar
	ledgers  ledgerCache
	lasting  struct {
		mu      sync.Mutex
		session *rewind.Session
	}
	zvm *zvm.Client // the one that was made last, nil before

	recoverySites []string // as the command line names them
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "zerto-rewind",
		Short: "Guard changes to virtual machines with tagged checkpoints, and take them back",
		Long: `zerto-rewind guards a change to a virtual machine and takes it back.

Before the change, protect inserts a tagged checkpoint into the journal of every VPG that protects the VM, and proves
it. After the change, recover brings a file back from exactly that checkpoint.

Results go to stdout, everything else to stderr. The first interrupt ends a command in good order, the second one at once.

Exit codes:
  0  done                          7    not protected, not local or not downloadable
  1  failed                        8    still pending; the task id is printed
  3  partial, or outcome unknown   9    something was left open; the closing command is printed
  4  authentication or permission  64   usage or settings
  5  not found                     130  interrupted
  6  ambiguous                     2    of hook alone: the tool call is blocked`,
		Version:       readBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "one log line on stderr for each request, each stage and each change of a task's state")
	flags.BoolVar(&a.json, "json", false, "one JSON document on stdout; errors as one JSON object on stderr")
	a.settings.register(flags)
	root.AddCommand(
		a.find(),
		a.protect(),
		a.guards(),
		a.verify(),
		a.settings.offline(a.closeChange(), setURL, setStateDir),
		a.browse(),
		a.diff(),
		a.recover(),
		a.failoverTest(),
		a.clone(),
		a.sweep(),
		a.task(),
		a.settings.offline(a.check(), setCatalog),
		a.catalog(),
		a.hook(), a.explain(),
		a.mcp(),
		a.proxy(),
		a.intercept(),
		a.settings.offline(a.approve(), setStateDir, setHuman),
		a.settings.offline(a.freeze(), setStateDir, setHuman),
		a.settings.offline(a.thaw(), setStateDir, setHuman),
		a.settings.offline(a.audit(), setStateDir),
		a.reconcile(),
		a.doctor(),
		a.settings.offline(a.sim()),
		a.settings.offline(a.version()),
	)
	return root
}

// action is what a command does once its command line was understood.
type action func(ctx context.Context, args []string) error

// command makes a command whose time limit can be set; a limit of zero means none.
func (a *app) command(c cobra.Command, limit time.Duration, do action) *cobra.Command {
	usage := "`limit` for the whole command, 0 for none"
	if limit == 0 {
		usage = "`limit` for the whole command (default none)"
	}
	return a.inSteps(c, limit, usage, func(ctx context.Context, args []string) error {
		ctx, cancel := a.limited(ctx)
		defer cancel()
		return do(ctx, args)
	})
}

// inSteps makes a command that puts its time limit to each of its steps by itself, by [app.limited].
func (a *app) inSteps(c cobra.Command, limit time.Duration, usage string, do action) *cobra.Command {
	c.DisableFlagsInUseLine = true
	c.Flags().Var((*span)(&limit), "timeout", usage)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.running, a.limit = true, limit
		a.log = a.logger()
		return do(cmd.Context(), args)
	}
	return &c
}

func (a *app) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, a.limit, &timeLimitError{a.limit})
}

// logger writes to stderr: warnings, and with -v every request and stage. In JSON mode each line is a JSON object.
func (a *app) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if a.verbose {
		options.Level = slog.LevelDebug
	}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.io.Err, options))
	}
	return slog.New(slog.NewTextHandler(a.io.Err, options))
}

// timeLimitError is the end of a --timeout. It is a [context.DeadlineExceeded].
type timeLimitError struct{ limit time.Duration }

func (e *timeLimitError) Error() string {
	return fmt.Sprintf("the time limit of %s was reached", inWords(e.limit))
}

func (e *timeLimitError) Is(target error) bool { return target == context.DeadlineExceeded }
