package cli

import (
	"context"
	"errors"
	"fmt"
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
	answer, err := lineFrom(ctx, a.io.In)
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(answer), vm) {
		return errors.New("not confirmed, so nothing was done")
	}
	return nil
}
