//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

const asksForOperator = "CLI_TEST_OPERATOR"

// TestOperatorIsAtATerminal runs itself with several kinds of stdin. The null device is no terminal, although it is a
// character device, and a terminal of another session is none either.
func TestOperatorIsAtATerminal(t *testing.T) {
	t.Parallel()
	if os.Getenv(asksForOperator) != "" {
		if cli.OS().Operator() {
			fmt.Fprintln(os.Stdout, "operator")
		}
		return
	}
	self := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), asksForOperator+"=1")
		return cmd
	}
	terminal, err := pty.Start(self())
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	said, _ := io.ReadAll(terminal) // ends with an error on Linux
	if !strings.Contains(string(said), "operator") {
		t.Errorf("at a terminal of its own: %s", said)
	}
	null := self()
	if out, err := null.CombinedOutput(); err != nil || strings.Contains(string(out), "operator") {
		t.Errorf("without a terminal: %v\n%s", err, out)
	}
}
