package cli_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
)

const (
	readCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"listVMs","arguments":{}}}`
	offCall  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`
)

// TestProxyPassesToTheServerWhatMayRun has a server that says back whatever reaches it.
func TestProxyPassesToTheServerWhatMayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, toProxy := io.Pipe()
	fromProxy, out := io.Pipe()
	var stderr strings.Builder
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(t.Context(), cli.IO{In: in, Out: out, Err: &stderr, Env: w.lookup}, []string{"proxy", "--name", "esxi", "--", "cat"})
		_ = out.Close()
	}()
	lines := bufio.NewReader(fromProxy)
	say := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(toProxy, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(answer)
	}
	if got := say(readCall); got != readCall {
		t.Errorf("a read was answered with %s", got)
	}
	if got := say(offCall); !strings.Contains(got, `"isError":true`) {
		t.Errorf("an unguarded change was answered with %s", got)
	}
	w.run("protect", "web01", "--action", "power off")
	if got := say(offCall); got != offCall {
		t.Errorf("a guarded change was answered with %s", got)
	}
	_ = toProxy.Close()
	if code := <-done; code != 0 || stderr.String() != "" {
		t.Errorf("exit code %d, stderr %s", code, stderr.String())
	}
}

func TestProxySaysWhyItsServerEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, _ := io.Pipe()
	var stdout, stderr strings.Builder
	code := cli.Run(t.Context(), cli.IO{In: in, Out: &stdout, Err: &stderr, Env: w.lookup},
		[]string{"proxy", "--name", "esxi", "--", "sh", "-c", "exit 7"})
	if code != 1 || !strings.Contains(stderr.String(), "exit status 7") || stdout.String() != "" {
		t.Errorf("exit code %d, stdout %s, stderr %s", code, stdout.String(), stderr.String())
	}
}

func TestLaw7_ProxyKeepsItsSettingsFromTheServer(t *testing.T) {
	t.Setenv("ZVM_PASSWORD", "MARKER-password")
	t.Setenv("ZERTO_REWIND_HUMAN", "MARKER-human")
	t.Setenv("FOREIGN_SETTING", "is passed on")
	w := newWorld(t)
	in, toProxy := io.Pipe()
	_ = toProxy.Close()
	var stdout, stderr strings.Builder
	cli.Run(t.Context(), cli.IO{In: in, Out: &stdout, Err: &stderr, Env: w.lookup}, []string{"proxy", "--name", "esxi", "--", "env"})
	if !strings.Contains(stdout.String(), "FOREIGN_SETTING") || strings.Contains(stdout.String(), "MARKER") {
		t.Errorf("stdout %s, stderr %s", stdout.String(), stderr.String())
	}
}

func TestProxyNeedsANameAndACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"proxy"}, {"proxy", "--name", "x"}, {"proxy", "--", "cat"}} {
		if got := w.run(args...); got.code != 64 {
			t.Errorf("%v: exit code %d", args, got.code)
		}
	}
}

func TestInterceptAnswersForACallThatMayNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for request, want := range map[string]string{readCall: "", offCall: `"isError":true`} {
		var stdout, stderr strings.Builder
		code := cli.Run(t.Context(), cli.IO{In: strings.NewReader(request), Out: &stdout, Err: &stderr, Env: w.lookup}, []string{"intercept", "--name", "esxi"})
		if code != 0 || want == "" && stdout.String() != "" || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", request, code, stdout.String(), stderr.String())
		}
	}
}
