package proxyadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// world is a simulated ZVM that protects web01, and a session on it.
type world struct {
	zvm     *zvmtest.Server
	vpg     *zvmtest.VPG
	session *rewind.Session
}

func newWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	s := zvmtest.Start(t, append([]zvmtest.Option{zvmtest.WithProfile(zvmtest.Quick), withinReach(t)}, opts...)...)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	s.AddVM("web01", vpg)
	client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), zvm.WithRootCAs(s.CertPool()))
	if err != nil {
		t.Fatal(err)
	}
	session, err := rewind.NewSession(client, rewind.WithAgent("patch-bot"),
		rewind.WithSchedule(task.Schedule{Min: time.Millisecond, Max: 20 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	return &world{s, vpg, session}
}

func (w *world) gate() (*gate.Gate, error) {
	known, err := catalog.Default()
	if err != nil {
		return nil, err
	}
	return gate.New(known, func() (gate.Guards, error) { return w.session, nil }, gate.Policy{})
}

func (w *world) protect(ctx context.Context, vms []string, action string) (rewind.GuardRecord, error) {
	g, err := w.session.ProtectAll(ctx, vms, rewind.Change{Action: action})
	if err != nil {
		return rewind.GuardRecord{}, err
	}
	return g.Record(), nil
}

func (w *world) config() proxyadapter.Config {
	return proxyadapter.Config{Server: "esxi", Gate: w.gate, Protect: w.protect}
}

// wire is a proxy of which the test plays both the host and the server, line by line.
type wire struct {
	t                    *testing.T
	toProxy, fromServer  io.WriteCloser
	atHost, atServer     <-chan string
	ended                <-chan error
	hostReads, serverIns io.Closer
}

func newWire(t *testing.T, config proxyadapter.Config) *wire {
	t.Helper()
	hostIn, toProxy := io.Pipe()
	hostReads, hostOut := io.Pipe()
	serverReads, serverIn := io.Pipe()
	serverOut, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- proxyadapter.Run(t.Context(), proxyadapter.Streams{In: hostIn, Out: hostOut},
			proxyadapter.Streams{In: serverOut, Out: serverIn}, config)
		_ = hostOut.Close()
	}()
	w := &wire{
		t: t, toProxy: toProxy, fromServer: fromServer, ended: ended, hostReads: hostReads, serverIns: serverReads,
		atHost: lines(hostReads), atServer: lines(serverReads),
	}
	t.Cleanup(func() {
		for _, c := range []io.Closer{toProxy, fromServer, hostReads, serverReads} {
			_ = c.Close()
		}
	})
	return w
}

func lines(r io.Reader) <-chan string {
	c := make(chan string, 100)
	go func() {
		defer close(c)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			c <- s.Text()
		}
	}()
	return c
}

func (w *wire) host(line string)   { w.send(w.toProxy, line) }
func (w *wire) server(line string) { w.send(w.fromServer, line) }

func (w *wire) send(to io.Writer, line string) {
	w.t.Helper()
	if _, err := io.WriteString(to, line+"\n"); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) next(from <-chan string) string {
	w.t.Helper()
	select {
	case line, ok := <-from:
		if !ok {
			w.t.Fatal("the stream ended")
		}
		return line
	case <-time.After(20 * time.Second):
		w.t.Fatal("nothing came")
	}
	return ""
}

// reachesServer checks that the next line the server gets is exactly this.
func (w *wire) reachesServer(line string) {
	w.t.Helper()
	if got := w.next(w.atServer); got != line {
		w.t.Errorf("the server got\n%s\nwant\n%s", got, line)
	}
}

// reachesHost checks that the next line the host gets is exactly this.
func (w *wire) reachesHost(line string) {
	w.t.Helper()
	if got := w.next(w.atHost); got != line {
		w.t.Errorf("the host got\n%s\nwant\n%s", got, line)
	}
}

// answer is what a host may get to a request.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Result *struct {
		IsError    bool   `json:"isError"`
		ResultType string `json:"resultType"`
		State      string `json:"requestState"`
		Content    []struct {
			Text string `json:"text"`
		} `json:"content"`
		Meta map[string]any `json:"_meta"`
	} `json:"result"`
}

func (w *wire) answered() answer {
	w.t.Helper()
	var a answer
	line := w.next(w.atHost)
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	return a
}

// nothingRan checks that no call has reached the server: what it gets next is what is sent now.
func (w *wire) nothingRan() {
	w.t.Helper()
	const ping = `{"jsonrpc":"2.0","id":"probe","method":"ping"}`
	w.host(ping)
	w.reachesServer(ping)
}

// end closes the host's side and returns what Run returned.
func (w *wire) end() error {
	w.t.Helper()
	_ = w.toProxy.Close()
	go func() {
		for range w.atServer {
		}
		_ = w.fromServer.Close()
	}()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(20 * time.Second):
		return errors.New("the proxy did not end")
	}
}

// withinReach holds a ZVM to the checked-in table of what may be asked of it: anything else fails the test.
func withinReach(t *testing.T) zvmtest.Option {
	t.Helper()
	table, err := os.ReadFile(filepath.FromSlash("../../zvm/testdata/reach.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return zvmtest.WithReach(strings.Split(strings.TrimSpace(string(table)), "\n")...)
}
