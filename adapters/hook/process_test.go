//go:build unix

package hookadapter_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// process is the hook as a host starts it.
type process struct {
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr bytes.Buffer
}

// start runs the test binary as a hook, by a shell that first does to its streams and folder what the script says.
func start(t *testing.T, host, script string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), "/bin/sh", "-c", script+` exec "$0"`, self)}
	p.cmd.Env = append(os.Environ(), asProcess+"=1", asHost+"="+host)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return p
}

// ended waits for the process, whatever code it ends with.
func (p *process) ended() ran {
	_ = p.cmd.Wait()
	return ran{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// TestProcess starts the hook as a host does: what a signal, a closed stream or a pipe that nobody closes does to a
// process, no call within one shows.
func TestProcess(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, to io.Writer, text string) {
		t.Helper()
		if _, err := io.WriteString(to, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range eachEvent() {
		if e.host != "claude" && e.name != "tool_call" {
			continue
		}
		unguarded := asJSON(t, e.payload(verdicts()["deny"][0]))
		for behaviour, tt := range map[string]struct {
			script string
			feed   func(t *testing.T, p *process)
		}{
			"stdin is held open": {"", func(t *testing.T, p *process) {
				t.Helper()
				write(t, p.stdin, unguarded)
			}},
			"stdin comes byte by byte": {"", func(t *testing.T, p *process) {
				t.Helper()
				for _, b := range []byte(unguarded) {
					write(t, p.stdin, string(rune(b)))
				}
			}},
			"stdin ends in the middle": {"", func(t *testing.T, p *process) {
				t.Helper()
				write(t, p.stdin, unguarded[:len(unguarded)/2])
				p.stdin.Close()
			}},
			"stdin is empty":     {"", func(_ *testing.T, p *process) { p.stdin.Close() }},
			"stdin is closed":    {"exec 0<&-;", func(*testing.T, *process) {}},
			"stdin is a folder":  {"exec 0</;", func(*testing.T, *process) {}},
			"stderr is closed":   {"exec 2>&-;", func(t *testing.T, p *process) { t.Helper(); write(t, p.stdin, unguarded) }},
			"its folder is gone": {`rmdir "$PWD";`, func(t *testing.T, p *process) { t.Helper(); write(t, p.stdin, unguarded) }},
			"stdin is more than a pipe holds": {"", func(t *testing.T, p *process) {
				t.Helper()
				write(t, p.stdin, strings.TrimSuffix(unguarded, "}")+`,"later":"`+strings.Repeat("x", 1<<20)+`"}`)
			}},
		} {
			t.Run(e.host+", "+behaviour, func(t *testing.T) {
				t.Parallel()
				p := start(t, e.host, tt.script)
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				tt.feed(t, p)
				r := p.ended()
				if got := e.reads(r, "default"); got != blocked {
					t.Errorf("the host reads %q from %v, want it blocked", got, r)
				}
				if r.exitCode != 0 && r.exitCode != 2 {
					t.Errorf("exit %d", r.exitCode)
				}
			})
		}
	}
}

// TestLaw6ProcessWhoseOutputNobodyTakesBlocks covers the signal that a closed pipe sends. Cline, which reads nothing but
// stdout, is beyond help then.
func TestLaw6ProcessWhoseOutputNobodyTakesBlocks(t *testing.T) {
	t.Parallel()
	unguarded := payload(t, nil)
	for behaviour, script := range map[string]string{
		"stdout is a pipe without a reader": "", "stdout is closed": "exec 1>&-;", "both are closed": "exec 1>&- 2>&-;",
	} {
		p := start(t, "claude", script)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.Stdout = writer
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reader.Close()
		writer.Close()
		if _, err := io.WriteString(p.stdin, unguarded); err != nil {
			t.Fatal(err)
		}
		p.stdin.Close()
		if r := p.ended(); r.exitCode != 2 {
			t.Errorf("%s: %v, want exit 2", behaviour, r)
		}
	}
}
