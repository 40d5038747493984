package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
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

// proxied is a host before a proxy whose server says back whatever reaches it.
type proxied struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Reader
	done  chan int
}

func (w *world) proxied(name string, args ...string) *proxied {
	w.t.Helper()
	in, toProxy := io.Pipe()
	fromProxy, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		var stderr strings.Builder
		done <- cli.Run(w.t.Context(), cli.IO{In: in, Out: out, Err: &stderr, Env: w.lookup}, append([]string{"proxy", "--name", name}, args...))
		_ = out.Close()
	}()
	return &proxied{w.t, toProxy, bufio.NewReader(fromProxy), done}
}

func (p *proxied) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proxied) hear() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (p *proxied) end() {
	p.t.Helper()
	_ = p.in.Close()
	if code := <-p.done; code != 0 {
		p.t.Errorf("exit code %d", code)
	}
}

func TestProxyRemembersAPersonsYesForAsLongAsTheChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t).with("ZERTO_REWIND_STATE_DIR", t.TempDir())
	const unknown = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment","arguments":{}}}`
	p := w.proxied("x", "--", "cat")
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"elicitation":{}}}}`
	p.say(hello)
	if got := p.hear(); got != hello {
		t.Fatal(got)
	}
	p.say(unknown)
	var question struct{ ID, Method string }
	if err := json.Unmarshal([]byte(p.hear()), &question); err != nil || question.Method != "elicitation/create" {
		t.Fatalf("%+v, %v", question, err)
	}
	p.say(`{"jsonrpc":"2.0","id":"` + question.ID + `","result":{"action":"accept","content":{"answer":"checkpoint","vm":"web01"}}}`)
	if got := p.hear(); got != unknown {
		t.Errorf("got %s", got)
	}
	p.say(strings.Replace(unknown, `"id":7`, `"id":8`, 1))
	if got := p.hear(); !strings.Contains(got, `"tools/call"`) {
		t.Errorf("asked again: %s", got)
	}
	p.end()
	audit := w.run("audit", "--json")
	for _, want := range []string{`"ran"`, `"client-relayed"`} {
		if !strings.Contains(audit.out, want) {
			t.Errorf("the record lacks %s: %s", want, audit.out)
		}
	}
	w.run("audit", "verify").want(t, 0, "")
}

func TestProxyVoidsARulingOnAToolThatHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t).with("ZERTO_REWIND_STATE_DIR", t.TempDir())
	tools := filepath.Join(t.TempDir(), "tools.json")
	const tool = `{"name":"peek","description":"reads","inputSchema":{"type":"object"}}`
	if err := os.WriteFile(tools, []byte(`{"tools":[`+tool+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run("catalog", "rule", "x", "peek", "read_only", "--fingerprint-from", tools, "--i-am-a-human-operator").want(t, 0, "")

	list := func(p *proxied, description string) {
		t.Helper()
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		p.hear()
		// The server says back whatever reaches it: an answer of the host's that bears the id of the list is one of its own.
		answer := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.Replace(tool, "reads", description, 1) + `]}}`
		p.say(answer)
		if got := p.hear(); got != answer {
			t.Fatal(got)
		}
	}
	const peek = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"peek","arguments":{}}}`
	p := w.proxied("x", "--", "cat")
	list(p, "reads")
	p.say(peek)
	if got := p.hear(); got != peek {
		t.Errorf("a ruled tool was held up: %s", got)
	}
	list(p, "deletes")
	p.say(strings.Replace(peek, `"id":2`, `"id":3`, 1))
	if got := p.hear(); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "description") {
		t.Errorf("a tool that has changed runs: %s", got)
	}
	p.end()
}

func TestProxyMakesTheGuardThatACallLacksWherePolicySaysSo(t *testing.T) {
	t.Parallel()
	rules := filepath.Join(t.TempDir(), "catalogue.json")
	if err := os.WriteFile(rules, []byte(`{"version": 1, "policy": {"onMutating": "guard"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t).with("ZERTO_REWIND_CATALOG", rules)
	p := w.proxied("esxi", "--", "cat")
	p.say(offCall)
	if got := p.hear(); got != offCall {
		t.Fatalf("got %s", got)
	}
	tagged := w.local.TaggedCheckpoints()
	if len(tagged) != 1 || len(w.remote.TaggedCheckpoints()) != 1 {
		t.Fatalf("%+v", tagged)
	}
	// The server says back whatever reaches it: an answer of the host's that bears the id of the call is one of its own.
	p.say(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"n":9007199254740993}}`)
	var answer struct {
		Result struct {
			Meta map[string]string `json:"_meta"`
			N    json.Number
		}
	}
	if err := json.Unmarshal([]byte(p.hear()), &answer); err != nil {
		t.Fatal(err)
	}
	id := answer.Result.Meta["zerto-rewind/changeId"]
	if id == "" || !strings.Contains(tagged[0].Tag, "change="+id) || answer.Result.N != "9007199254740993" {
		t.Errorf("%+v, tagged as %s", answer, tagged[0].Tag)
	}
	p.end()
}
