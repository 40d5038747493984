package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exactly wants one argument for each name, and names those that are missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return errors.New("missing: " + strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return fmt.Errorf("one argument too many: %q", args[len(names)])
		}
		return nil
	}
}

// atLeastOne wants one or several arguments of one name.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("missing: " + name)
		}
		return nil
	}
}

// group makes a command that does nothing but hold others.
func group(c cobra.Command, members ...*cobra.Command) *cobra.Command {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name()
	}
	c.DisableFlagsInUseLine = true
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(_ *cobra.Command, args []string) error {
		want := strings.Join(names, " or ")
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q: want %s", args[0], want)
		}
		return errors.New("missing: " + want)
	}
	c.AddCommand(members...)
	return &c
}
