package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// consent is how a command that starts or ends something comes by a person's word: by --yes, or by a question.
type consent struct{ given bool }

func (c *consent) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.given, "yes", false, "do not ask")
}

// canAsk fails where nobody can be asked, before anything is done.
func (a *app) canAsk(c consent, what string) error {
	if c.given || a.io.Interactive {
		return nil
	}
	return &usageError{fmt.Errorf("nobody can be asked here: to %s without a question, give --yes", what)}
}

// ask puts the question to the person at the terminal, whose answer is the VM's name.
func (a *app) ask(ctx context.Context, c consent, vm, question string) error {
	if c.given {
		return nil
	}
	_, _ = fmt.Fprintf(a.io.Err, "%s Type the VM's name, %s, to go on: ", plain(question), plain(vm))
	answer, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(answer), vm) {
		return errors.New("not confirmed, so nothing was done")
	}
	return nil
}

// readLine returns one line of In, or what is left of it. The reading goes on after ctx has ended, since nothing can stop
// it; the process is about to.
func (a *app) readLine(ctx context.Context) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(io.LimitReader(a.io.In, 4096)).ReadString('\n') // the end of In is an answer too
		line <- text
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// errNoPerson refuses a command that is a person's alone. No flag gets around it; a program that makes a
// terminal of its own does.
var errNoPerson = errors.New("only a person at a terminal can do this, and there is none here: run it yourself, in a terminal of your own")

// confirmed makes sure of a person at a terminal, who types a word, and returns who that is.
func (a *app) confirmed(ctx context.Context, question, word string) (by string, err error) {
	if a.io.Operator == nil || !a.io.Operator() {
		return "", &usageError{errNoPerson}
	}
	if by, err = a.person(); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(a.io.Err, "%s Type %s to go on: ", plain(question), word)
	answer, err := a.readLine(ctx)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(answer) != word {
		return "", errors.New("not confirmed, so nothing was done")
	}
	return by, nil
}
