//go:build unix

package cli_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// screen is what a terminal was sent.
type screen struct {
	sent bytes.Buffer
	rate sync.Once
	seen chan struct{} // closed once a rate was shown
}

func (s *screen) Write(b []byte) (int, error) {
	n, err := s.sent.Write(b)
	if bytes.Contains(s.sent.Bytes(), []byte("iB/s")) {
		s.rate.Do(func() { close(s.seen) })
	}
	return n, err
}

// onTerminal runs a command whose stderr is a terminal. Seen, which may be nil, is closed once a rate was shown there.
func (w *world) onTerminal(seen chan struct{}, args ...string) (code int, out, terminal string) {
	w.t.Helper()
	here, there, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	defer here.Close()
	shown := screen{seen: seen}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, here) // ends with an error once the other end is closed
	}()
	var stdout strings.Builder
	code = cli.Run(w.t.Context(), cli.IO{Out: &stdout, Err: there, Env: w.lookup, Terminal: true}, args)
	there.Close()
	<-read
	return code, stdout.String(), shown.sent.String()
}

// slowly is a world whose guest has a file of which the last bytes are held back until a channel is closed.
func slowly(t *testing.T, until <-chan struct{}) *world {
	t.Helper()
	w := newWorld(t, zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if strings.HasPrefix(r.Path, "/v1/downloads/") {
			select {
			case <-until:
			case <-time.After(10 * time.Second):
				t.Error("no bar was shown")
			}
		}
	}))
	w.write("/srv/big", strings.Repeat("0123456789abcdef", 64<<10)+"the last bytes")
	w.guard()
	return w
}

func TestADownloadIsABarOnATerminalUntilItHasArrived(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"file": {"/srv/big", "-o", filepath.Join(t.TempDir(), "big")}, "tree": {"/srv", "-r", "-o", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			code, out, terminal := slowly(t, seen).onTerminal(seen, append([]string{"recover", "--change", "c1"}, args...)...)
			if code != 0 || strings.Contains(out, "MiB/s") || strings.Contains(out, "\r") {
				t.Errorf("exit code %d, stdout:\n%s", code, out)
			}
			if strings.Contains(terminal, "TiB/s") {
				t.Errorf("the rate counts from later than the download:\n%q", terminal)
			}
			bar := strings.LastIndex(terminal, "iB/s")
			after := strings.Index(terminal, "\rdownloaded web-local, 1048590 bytes\r\n")
			if bar < 0 || after < bar {
				t.Errorf("no bar that ends with the whole, in:\n%q", terminal)
			}
		})
	}
}

func TestThereIsNoBarWithJSON(t *testing.T) {
	t.Parallel()
	at := make(chan struct{})
	close(at)
	w := slowly(t, at)
	w.sim.On("GET", "/v1/downloads/*").Drip(64<<10, 40*time.Millisecond) // long enough for a bar to show
	code, _, terminal := w.onTerminal(nil, "recover", "--change", "c1", "/srv/big", "-o", filepath.Join(t.TempDir(), "big"), "--json")
	if code != 0 || terminal != "" {
		t.Errorf("exit code %d, the terminal shows %q", code, terminal)
	}
}
