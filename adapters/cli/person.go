package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNoPerson refuses a command that is a person's alone.
var errNoPerson = errors.New("only a person at a terminal can do this, and there is none: run it yourself, in a terminal of your own")

// person makes sure of a person: stdin is a terminal, this process has a controlling terminal, and on that somebody types
// a word. No flag and no variable gets around it. A program that makes a terminal of its own and types there does: against
// one that runs as this user nothing here is a barrier.
func (a *app) person(ctx context.Context, question, word string) error {
	stdin, isFile := a.io.In.(*os.File)
	if !isFile || !term.IsTerminal(int(stdin.Fd())) {
		return &usageError{errNoPerson}
	}
	terminal, err := os.OpenFile(controllingTerminal, os.O_RDWR, 0)
	if err != nil {
		return &usageError{errNoPerson}
	}
	defer func() { _ = terminal.Close() }()
	if !term.IsTerminal(int(terminal.Fd())) {
		return &usageError{errNoPerson}
	}
	fmt.Fprintf(terminal, "%s\nType %s to go on: ", plain(question), word)
	answer, err := lineFrom(ctx, terminal)
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != word {
		return errors.New("not confirmed, so nothing was done")
	}
	return nil
}

// lineFrom returns one line, or what is left of it. The reading goes on after ctx has ended, since nothing can stop it; the
// process is about to.
func lineFrom(ctx context.Context, in io.Reader) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n') // the end of the input is an answer too
		line <- text
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
