package proxyadapter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const (
	legacyInit  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
	modernMeta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	powerOff    = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`
	unknownCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment","arguments":{"n":9007199254740993,"x":1.10}}}`
)

func TestWhatIsNoCallPassesByteForByte(t *testing.T) {
	t.Parallel()
	w := newWire(t, newWorld(t).config())
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"},"extension":{"b":1,"a":[1.10,9007199254740993]}}`,
		`{ "method" : "notifications/initialized" , "jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":"s","method":"tasks/get","params":{"TaskId":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
		`{"jsonrpc":"2.0","id":4,"result":{"action":"accept"}}`,
	} {
		w.host(line)
		w.reachesServer(line)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"z","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}}],"n":9007199254740993}}`,
		`{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.10}}`,
		`not JSON at all`,
	} {
		w.server(line)
		w.reachesHost(line)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestLaw6_ACallWithoutAGuardDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	w := newWire(t, newWorld(t).config())
	w.host(powerOff)
	a := w.answered()
	if string(a.ID) != "7" || a.Result == nil || !a.Result.IsError || a.Result.ResultType != "" {
		t.Fatalf("%+v", a)
	}
	for _, want := range []string{"did not run", "zerto_guard_before_mutate"} {
		if !strings.Contains(a.Result.Content[0].Text, want) {
			t.Errorf("%q does not say %q", a.Result.Content[0].Text, want)
		}
	}
	w.nothingRan()
}

func TestAGuardedCallPassesAndItsResultNamesTheGuard(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	record, err := world.protect(t.Context(), []string{"web01"}, "power off")
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, world.config())
	w.host(powerOff)
	w.reachesServer(powerOff)
	w.server(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"n":9007199254740993}}`)
	w.reachesHost(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"n":9007199254740993,"_meta":{"zerto-rewind/changeId":%q}}}`, record.ChangeID))

	again := strings.Replace(powerOff, `"id":7`, `"id":8`, 1)
	w.host(again)
	w.reachesServer(again)
	w.server(`{"jsonrpc":"2.0","id":8,"result":{"_meta":{"a":1},"content":[]}}`)
	w.reachesHost(fmt.Sprintf(`{"jsonrpc":"2.0","id":8,"result":{"_meta":{"a":1,"zerto-rewind/changeId":%q},"content":[]}}`, record.ChangeID))
}

func TestAReadPassesWithoutAnybodyBeingAsked(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	w := newWire(t, world.config())
	const read = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"listVMs","arguments":{}}}`
	w.host(read)
	w.reachesServer(read)
	if n := world.zvm.Count("", "/**"); n != 0 {
		t.Errorf("%d requests to the ZVM", n)
	}
}

func TestWhatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	if _, err := world.protect(t.Context(), []string{"web01"}, ""); err != nil {
		t.Fatal(err)
	}
	w := newWire(t, world.config())
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"ping","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"METHOD":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"Tools/Call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method\u0000":"tools/call","method":"ping","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call\u0000","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":["tools/call"],"params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"listVMs","name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"listVMs","Name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01","name":"db01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01","Name":"db01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"},"Arguments":{"name":"db01"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":["web01"]}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":"{\"name\":\"web01\"}"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01\ud800"}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"powerOff\",\"arguments\":{\"name\":\"web01\xff\"}}}",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["powerOff",{"name":"web01"}]}`,
		`{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		`{"jsonrpc":"2.0","id":{"n":7},"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{\"x\":\r" + powerOff + "\r}}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r" + powerOff,
		"\r" + powerOff,
		"\ufeff" + powerOff,
		"\x00" + powerOff,
		powerOff + "\x00",
		strings.Join(strings.Split(powerOff, ""), "\x00") + "\x00", // UTF-16
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":` + strings.Repeat("[", 1<<20) + `}}}`,
		`[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}}]`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"web01"}}} {}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"powerOff","arguments":{"name":"` + strings.Repeat("w", 17<<20) + `"}}}`,
	} {
		w.host(line)
		if a := w.answered(); a.Error == nil {
			t.Errorf("%.200s was answered with %+v", line, a)
		}
	}
	w.nothingRan()
}

func TestACallThatNobodyCouldBeToldOfIsDropped(t *testing.T) {
	t.Parallel()
	w := newWire(t, newWorld(t).config())
	w.host(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"listVMs","arguments":{}}}`)
	w.nothingRan()
}

func TestLaw6_ABrokenGateDenies(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	for name, broken := range map[string]func() (*gate.Gate, error){
		"fails":  func() (*gate.Gate, error) { return nil, errors.New("no catalogue") },
		"panics": func() (*gate.Gate, error) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config
			config.Gate = broken
			w := newWire(t, config)
			w.host(powerOff)
			if a := w.answered(); a.Result == nil || !a.Result.IsError {
				t.Errorf("%+v", a)
			}
			w.nothingRan()
		})
	}
}

func TestTheDeathOfTheServerIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWire(t, newWorld(t).config())
	const read = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"listVMs"}}`
	w.host(read)
	w.reachesServer(read)
	_ = w.fromServer.Close()
	if a := w.answered(); a.Error == nil || string(a.ID) != `"a"` || !strings.Contains(a.Error.Message, "not known") || strings.Contains(a.Error.Message, "not passed on") {
		t.Errorf("%+v", a)
	}
	if err := <-w.ended; !errors.Is(err, proxyadapter.ErrServerEnded) {
		t.Errorf("got %v", err)
	}
}

func TestACallThatIsGivenUpWhileItIsHeldNeverRuns(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	inner := config.Gate
	judging, judge := make(chan struct{}), make(chan struct{})
	config.Gate = func() (*gate.Gate, error) {
		close(judging)
		<-judge
		return inner()
	}
	w := newWire(t, config)
	w.host(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"listVMs"}}`)
	<-judging
	w.host(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	w.nothingRan() // the cancellation was taken by now
	close(judge)
	w.nothingRan()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	for line := range w.atHost {
		t.Errorf("the host got %s", line)
	}
}

func TestTheToolsThatAreListedAreObserved(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	seen := make(chan string, 1)
	config.Observe = func(tools []json.RawMessage) { seen <- string(tools[0]) }
	w := newWire(t, config)
	w.host(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.next(w.atServer)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x"}]}}`)
	w.next(w.atHost)
	if got := <-seen; got != `{"name":"x"}` {
		t.Error(got)
	}
}

func TestRunRefusesAConfigThatCannotJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []proxyadapter.Config{{}, {Server: "x"}, {Gate: newWorld(t).gate}} {
		if err := proxyadapter.Run(t.Context(), proxyadapter.Streams{}, proxyadapter.Streams{}, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
