package proxyadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	proxyadapter "github.com/zerto-rewind/zerto-rewind/adapters/proxy"
)

const unknownArgs = `"arguments":{"n":9007199254740993,"x":1.10}`

// asker is a host that asks its human, in one era or the other.
type asker struct {
	*wire

	call func(extra string) string // the unknown call, with more parameters
	// asked reads the question and returns the form's parameters.
	asked func() json.RawMessage
	// reply gives an answer.
	reply func(result string)
}

func legacyAsker(t *testing.T, config proxyadapter.Config) *asker {
	t.Helper()
	w := newWire(t, config)
	w.host(legacyInit)
	w.reachesServer(legacyInit)
	var id string
	return &asker{
		wire: w,
		call: func(string) string {
			return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment",` + unknownArgs + `}}`
		},
		asked: func() json.RawMessage {
			a := w.answered()
			if a.Method != "elicitation/create" {
				t.Fatalf("%+v", a)
			}
			id = string(a.ID)
			return a.Params
		},
		reply: func(result string) { w.host(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`) },
	}
}

func modernAsker(t *testing.T, config proxyadapter.Config) *asker {
	t.Helper()
	w := newWire(t, config)
	var state string
	a := &asker{wire: w}
	a.call = func(extra string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment",` + unknownArgs + `,` + modernMeta + extra + `}}`
	}
	a.asked = func() json.RawMessage {
		var answer struct {
			Result struct {
				Type     string `json:"resultType"`
				State    string `json:"requestState"`
				Requests map[string]struct {
					Method string          `json:"method"`
					Params json.RawMessage `json:"params"`
				} `json:"inputRequests"`
			} `json:"result"`
		}
		line := w.next(w.atHost)
		if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Result.Type != "input_required" {
			t.Fatal(line)
		}
		state = answer.Result.State
		return answer.Result.Requests["zerto-rewind"].Params
	}
	a.reply = func(result string) {
		w.host(a.call(fmt.Sprintf(`,"inputResponses":{"zerto-rewind":%s},"requestState":%q`, result, state)))
	}
	return a
}

func inBothEras(t *testing.T, test func(t *testing.T, newAsker func(*testing.T, proxyadapter.Config) *asker)) {
	t.Helper()
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		test(t, legacyAsker)
	})
	t.Run("modern", func(t *testing.T) {
		t.Parallel()
		test(t, modernAsker)
	})
}

func TestAPersonIsAskedOnceAboutAnUnknownCall(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, newAsker func(*testing.T, proxyadapter.Config) *asker) {
		config := newWorld(t).config()
		var told proxyadapter.Answer
		config.Answered = func(_ context.Context, a proxyadapter.Answer) error {
			told = a
			return nil
		}
		a := newAsker(t, config)
		a.host(a.call(""))
		form := string(a.asked())
		for _, want := range []string{"defragment", `"checkpoint"`, `"run"`, `"refuse"`, `"vm"`, "cannot take it back"} {
			if !strings.Contains(form, want) {
				t.Errorf("the form lacks %s: %s", want, form)
			}
		}
		a.reply(`{"action":"accept","content":{"answer":"run"}}`)
		a.reachesServer(a.call("")) // without a trace of the question
		if told.Call.Name.Tool != "defragment" || told.Guard != nil {
			t.Errorf("%+v", told)
		}
	})
}

func TestAPersonCanHaveTheVMCheckpointedFirst(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, newAsker func(*testing.T, proxyadapter.Config) *asker) {
		world := newWorld(t)
		a := newAsker(t, world.config())
		a.host(a.call(""))
		a.asked()
		a.reply(`{"action":"accept","content":{"answer":"checkpoint","vm":"web01"}}`)
		a.reachesServer(a.call(""))
		if n := len(world.vpg.TaggedCheckpoints()); n != 1 {
			t.Errorf("%d checkpoints", n)
		}
		a.server(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
		if got := a.answered(); got.Result.Meta["zerto-rewind/changeId"] == nil {
			t.Errorf("%+v", got)
		}
	})
}

func TestLaw6_NothingButTheYesOfTheFormLetsACallRun(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"declined":        `{"action":"decline"}`,
		"cancelled":       `{"action":"cancel"}`,
		"refused":         `{"action":"accept","content":{"answer":"refuse"}}`,
		"nothing":         `{}`,
		"no content":      `{"action":"accept"}`,
		"no answer":       `{"action":"accept","content":{}}`,
		"another answer":  `{"action":"accept","content":{"answer":"yes"}}`,
		"true":            `{"action":"accept","content":{"answer":true}}`,
		"two answers":     `{"action":"decline","action":"accept","content":{"answer":"run"}}`,
		"declined, run":   `{"action":"decline","content":{"answer":"run"}}`,
		"no VM":           `{"action":"accept","content":{"answer":"checkpoint"}}`,
		"an unknown VM":   `{"action":"accept","content":{"answer":"checkpoint","vm":"nosuch"}}`,
		"a list":          `["accept"]`,
		"another reading": `{"Action":"accept","content":{"answer":"run"},"action":"cancel"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBothEras(t, func(t *testing.T, newAsker func(*testing.T, proxyadapter.Config) *asker) {
				a := newAsker(t, newWorld(t).config())
				a.host(a.call(""))
				a.asked()
				a.reply(reply)
				got := a.answered()
				if got.Result == nil || !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "not executed") {
					t.Errorf("%+v", got)
				}
				a.nothingRan()
			})
		})
	}
}

func TestLaw6_AnAnswerThatCannotBeRecordedLetsNothingRun(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, newAsker func(*testing.T, proxyadapter.Config) *asker) {
		config := newWorld(t).config()
		config.Answered = func(context.Context, proxyadapter.Answer) error { return errors.New("disk full") }
		a := newAsker(t, config)
		a.host(a.call(""))
		a.asked()
		a.reply(`{"action":"accept","content":{"answer":"run"}}`)
		if got := a.answered(); got.Result == nil || !got.Result.IsError {
			t.Errorf("%+v", got)
		}
		a.nothingRan()
	})
}

func TestLaw6_AForgedOrUsedAnswerLetsNothingRun(t *testing.T) {
	t.Parallel()
	const yes = `"inputResponses":{"zerto-rewind":{"action":"accept","content":{"answer":"run"}}}`
	refused := func(t *testing.T, a *asker, line string) {
		t.Helper()
		a.host(line)
		switch got := a.answered(); {
		case got.Result == nil || !got.Result.IsError && got.Result.ResultType != "input_required":
			t.Errorf("%s: %+v", line, got)
		}
		a.nothingRan()
	}
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		w := newWire(t, newWorld(t).config())
		a := &asker{wire: w}
		for _, state := range []string{"forged", "zr1.forged", ""} {
			refused(t, a, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment",`+yes+`,"requestState":"`+state+`"}}`)
		}
	})
	t.Run("modern", func(t *testing.T) {
		t.Parallel()
		a := modernAsker(t, newWorld(t).config())
		for _, state := range []string{"forged", "zr1.forged", ""} {
			refused(t, a, a.call(`,`+yes+`,"requestState":"`+state+`"`))
		}
		a.host(a.call(""))
		var first struct {
			Result struct {
				State string `json:"requestState"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(a.next(a.atHost)), &first); err != nil {
			t.Fatal(err)
		}
		withYes := fmt.Sprintf(`,%s,"requestState":%q`, yes, first.Result.State)
		refused(t, a, strings.Replace(a.call(withYes), "9007199254740993", "9007199254740992", 1))
		refused(t, a, strings.Replace(a.call(withYes), "defragment", "format", 1))
		refused(t, a, a.call(fmt.Sprintf(`,"requestState":%q`, first.Result.State)))
		a.host(a.call(withYes))
		a.reachesServer(a.call(""))
		a.server(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}`)
		a.answered()
		refused(t, a, a.call(withYes))
	})
}

func TestAClientThatCannotAskIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWire(t, newWorld(t).config())
	w.host(unknownCall)
	a := w.answered()
	if a.Result == nil || !a.Result.IsError {
		t.Fatalf("%+v", a)
	}
	for _, want := range []string{"not executed", "Put the question to the human"} {
		if !strings.Contains(a.Result.Content[0].Text, want) {
			t.Errorf("%q lacks %q", a.Result.Content[0].Text, want)
		}
	}
	w.nothingRan()
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	config := newWorld(t).config()
	config.Patience = 300 * time.Millisecond
	config.Heartbeat = 10 * time.Millisecond
	a := legacyAsker(t, config)
	a.host(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"defragment","_meta":{"progressToken":"p"}}}`)
	heard := map[string]int{}
	got := a.answered()
	for ; got.Method != ""; got = a.answered() {
		heard[got.Method]++
	}
	if got.Result == nil || !got.Result.IsError {
		t.Errorf("%+v", got)
	}
	if heard["elicitation/create"] != 1 || heard["notifications/progress"] == 0 {
		t.Errorf("heard %v, want one question and its heartbeat", heard)
	}
	a.nothingRan()
}

func TestTheServersOwnQuestionIsNotAskedAboutAgain(t *testing.T) {
	t.Parallel()
	a := modernAsker(t, newWorld(t).config())
	a.host(a.call(""))
	a.asked()
	a.reply(`{"action":"accept","content":{"answer":"run"}}`)
	a.reachesServer(a.call(""))
	const asks = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"x":{"method":"elicitation/create","params":{}}},"requestState":"theirs"}}`
	a.server(asks)
	a.reachesHost(asks)
	retry := a.call(`,"inputResponses":{"x":{"action":"accept"}},"requestState":"theirs"`)
	a.host(retry)
	a.reachesServer(retry)
	a.server(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	a.answered()
	a.host(retry) // a second time it is another call
	a.asked()
	a.nothingRan()
}

func TestAPersonCanNameTheVMThatACallMeans(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	w := newWire(t, world.config())
	w.host(legacyInit)
	w.reachesServer(legacyInit)
	call := strings.Replace(powerOff, "web01", "no-such-vm", 1)
	w.host(call)
	question := w.answered()
	if question.Method != "elicitation/create" || !strings.Contains(string(question.Params), `"vm"`) {
		t.Fatalf("%+v", question)
	}
	w.host(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"action":"accept","content":{"answer":"checkpoint","vm":"web01"}}}`)
	w.reachesServer(call)
	if n := len(world.vpg.TaggedCheckpoints()); n != 1 {
		t.Errorf("%d checkpoints", n)
	}
}
