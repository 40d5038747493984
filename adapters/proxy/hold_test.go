package proxyadapter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// guarding has the gate make the guards that calls lack.
func (w *world) guarding(t *testing.T) proxyadapter.Config {
	t.Helper()
	book, err := ledger.Open(t.Context(), t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	config := w.config()
	config.Gate = func() (*gate.Gate, error) {
		known, err := catalog.Default()
		if err != nil {
			return nil, err
		}
		return gate.New(known, func() (gate.Guards, error) { return w.session, nil }, gate.Policy{
			OnMutating: catalog.GuardFirst, Ledger: func(context.Context) (gate.Ledger, error) { return book, nil },
		})
	}
	return config
}

// TestACallIsHeldWhileItsGuardIsMade has a ZVM that answers to the insert no sooner than the client has heard that its
// call is held.
func TestACallIsHeldWhileItsGuardIsMade(t *testing.T) {
	t.Parallel()
	for era, meta := range map[string]string{
		"legacy": `"_meta":{"progressToken":"p"}`, "modern": strings.Replace(modernMeta, `{`, `{"progressToken":"p",`, 1),
	} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			told := make(chan struct{})
			world := newWorld(t, zvmtest.WithOnRequest(func(r zvmtest.Request) {
				if r.Method == "POST" && strings.HasSuffix(r.Path, "/checkpoints") {
					<-told
				}
			}))
			config := world.guarding(t)
			config.Heartbeat = 50 * time.Millisecond
			w := newWire(t, config)
			held := strings.Replace(powerOff, `"arguments"`, meta+`,"arguments"`, 1)
			w.host(held)
			if a := w.answered(); a.Method != "notifications/progress" || !strings.Contains(string(a.Params), `"progressToken":"p"`) {
				t.Errorf("%+v", a)
			}
			close(told)
			w.reachesServer(held)
			w.server(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
			a := w.answered()
			for a.Method == "notifications/progress" {
				a = w.answered()
			}
			tagged := world.vpg.TaggedCheckpoints()
			id, _ := a.Result.Meta["zerto-rewind/changeId"].(string)
			if len(tagged) != 1 || id == "" || !strings.Contains(tagged[0].Tag, "change="+id) {
				t.Errorf("%+v, checkpoints %+v", a, tagged)
			}
		})
	}
}

func TestCallsAtOnceAreEachPassedOnUnderTheOneGuard(t *testing.T) {
	t.Parallel()
	const calls = 64
	world := newWorld(t, zvmtest.WithTokenTTL(time.Hour))
	if _, err := world.protect(t.Context(), []string{"web01"}, "power off"); err != nil {
		t.Fatal(err)
	}
	w := newWire(t, world.config())
	want := map[string]bool{}
	for i := range calls {
		line := strings.Replace(powerOff, `"id":7`, fmt.Sprintf(`"id":%d`, i), 1)
		want[line] = true
		w.host(line)
	}
	for range calls {
		line := w.next(w.atServer)
		if !want[line] {
			t.Errorf("the server got %s", line)
		}
		delete(want, line)
	}
	if n := world.zvm.TokenRequests(); n != 1 {
		t.Errorf("%d token requests", n)
	}
}

func TestAnIdMayBeWrittenInTwoWays(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	inner := config.Gate
	judging, judge := make(chan struct{}, 2), make(chan struct{})
	config.Gate = func() (*gate.Gate, error) {
		judging <- struct{}{}
		<-judge
		return inner()
	}
	w := newWire(t, config)
	const read = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"listVMs"}}`
	w.host(read)
	<-judging
	w.host(strings.Replace(read, `"a"`, `"\u0061"`, 1))
	if a := w.answered(); a.Error == nil {
		t.Errorf("a second call of the same id: %+v", a)
	}
	w.host(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061"}}`)
	w.nothingRan() // the cancellation was taken by now
	close(judge)
	w.nothingRan()
}

func TestTheEndOfTheHostGivesUpWhatIsHeld(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var once sync.Once
	world := newWorld(t, zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/checkpoints") {
			once.Do(func() { close(asked) })
		}
	}), zvmtest.WithInsertTime(time.Hour))
	w := newWire(t, world.guarding(t))
	w.host(powerOff)
	<-asked
	_ = w.toProxy.Close()
	if line, reached := <-w.atServer; reached {
		t.Errorf("the server got %s", line)
	}
	_ = w.fromServer.Close()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

// A host that reads no more is not waited for without end.
func TestAHostThatReadsNoMoreHoldsNothingUp(t *testing.T) {
	t.Parallel()
	broken := proxyadapter.Config{Server: "esxi", Gate: func() (*gate.Gate, error) { return nil, errors.New("no catalogue") }}
	for name, end := range map[string]func(hostSays, serverSays io.Closer, stop context.CancelFunc){
		"the host ends":   func(host, _ io.Closer, _ context.CancelFunc) { _ = host.Close() },
		"the server ends": func(_, server io.Closer, _ context.CancelFunc) { _ = server.Close() },
		"it is stopped":   func(_, _ io.Closer, stop context.CancelFunc) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				hostIn, hostSays := io.Pipe()
				hostReads, hostOut := io.Pipe()
				serverReads, serverIn := io.Pipe()
				serverOut, serverSays := io.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = proxyadapter.Run(ctx, proxyadapter.Streams{In: hostIn, Out: hostOut},
						proxyadapter.Streams{In: serverOut, Out: serverIn}, broken)
				}()
				_, _ = io.WriteString(hostSays, powerOff+"\n")
				synctest.Wait() // the denial is being written to nobody
				end(hostSays, serverSays, stop)
				<-ended
				stop()
				for _, c := range []io.Closer{hostSays, hostReads, serverReads, serverSays} {
					_ = c.Close()
				}
			})
		})
	}
}
