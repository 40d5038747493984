package mcpadapter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const startTest = "zerto_start_failover_test"

// asking returns the options of a client whose person gives this answer to every question.
func asking(action string, content map[string]any, asked *[]string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if asked != nil {
			*asked = append(*asked, r.Params.Message)
		}
		return &mcp.ElicitResult{Action: action, Content: content}, nil
	}}
}

// guarded is a world in which web01 has a guard in two VPGs.
func guarded(t *testing.T) (*world, *zvmtest.VPG, *rewind.Guard) {
	t.Helper()
	w := newWorld(t)
	second := w.zvm.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: w.zvm.AddPeerSite("DR")})
	w.zvm.AddVM("app01", w.vpg, second)
	g, err := w.session.Protect(t.Context(), "app01", rewind.Change{Action: "upgrade"})
	if err != nil {
		t.Fatal(err)
	}
	return w, second, g
}

func (w *world) startedTests() int { return w.zvm.Count("POST", "/v1/vpgs/*/FailoverTest") }

func TestAFailoverTestNeedsTheTypedNameOfTheVM(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		action  string
		content map[string]any
		starts  bool
	}{
		{"accept", "accept", map[string]any{"vm": "web01"}, true},
		{"another name", "accept", map[string]any{"vm": "web02"}, false},
		{"another case", "accept", map[string]any{"vm": "WEB01"}, false},
		{"decline", "decline", nil, false},
		{"cancel", "cancel", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBothEras(t, func(t *testing.T, era string) {
				w := newWorld(t)
				g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
				if err != nil {
					t.Fatal(err)
				}
				var told []mcpadapter.HumanAnswer
				record := mcpadapter.WithAnswers(func(_ context.Context, a mcpadapter.HumanAnswer) error {
					told = append(told, a)
					return nil
				})
				var asked []string
				client := connect(t, w.server(t, record), era, asking(tt.action, tt.content, &asked))
				a := args{"changeId": g.Record().ChangeID, "vm": "web01"}
				if !tt.starts {
					if f := refusedCall(t, client, startTest, a); f.Code != "no_consent" || len(told) != 0 {
						t.Errorf("%+v, %v", f, told)
					}
				} else {
					r := call[struct {
						Stage    string
						NextStep string
					}](t, client, startTest, a)
					if r.Stage == "" || len(told) != 1 || told[0].VM != "web01" || told[0].Answer != "confirm" {
						t.Errorf("%+v, %+v", r, told)
					}
					stopped := call[struct{ Stopped bool }](t, client, "zerto_stop_failover_test", a)
					if !stopped.Stopped {
						t.Error("the test was not stopped")
					}
				}
				if started := w.startedTests() == 1; started != tt.starts {
					t.Errorf("%d tests were started", w.startedTests())
				}
				if len(asked) == 0 || !strings.Contains(asked[0], `"web01"`) {
					t.Errorf("asked: %q", asked)
				}
			})
		})
	}
}

func TestLaw6_WhatNeedsAHumanIsRefusedWhereTheClientCannotAsk(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		g, err := w.session.Protect(t.Context(), "web01", rewind.Change{})
		if err != nil {
			t.Fatal(err)
		}
		client := w.connect(t, era)
		for tool, command := range map[string]string{
			startTest:     "zerto-rewind test start --change " + g.Record().ChangeID,
			"zerto_clone": "zerto-rewind clone start --change " + g.Record().ChangeID,
		} {
			f := refusedCall(t, client, tool, args{"changeId": g.Record().ChangeID})
			if f.Code != "needs_human" || f.Detail != command {
				t.Errorf("%s: %+v", tool, f)
			}
		}
		if n := w.startedTests(); n != 0 {
			t.Errorf("%d tests were started", n)
		}
	})
}

// TestLaw6_AnAnswerCountsOnceForWhatWasAsked plays a client that answers by itself, as any client can.
func TestLaw6_AnAnswerCountsOnceForWhatWasAsked(t *testing.T) {
	t.Parallel()
	yes := mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"vm": "app01"}}}
	options := asking("accept", nil, nil)
	options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}

	t.Run("modern", func(t *testing.T) {
		t.Parallel()
		w, second, g := guarded(t)
		client := connect(t, w.server(t), eras[1], options)
		base := mcp.CallToolParams{Name: startTest, Arguments: map[string]any{"changeId": g.Record().ChangeID, "vm": "app01"}}
		send := func(change func(*mcp.CallToolParams)) *mcp.CallToolResult {
			t.Helper()
			p := base
			change(&p)
			result, err := client.CallTool(t.Context(), &p)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		ask := func() string {
			t.Helper()
			asked := send(func(*mcp.CallToolParams) {})
			if !asked.NeedsInput() || asked.RequestState == "" {
				t.Fatalf("%+v", asked)
			}
			return asked.RequestState
		}
		refused := func(name string, change func(*mcp.CallToolParams)) {
			t.Helper()
			r := send(func(p *mcp.CallToolParams) {
				p.InputResponses = yes
				change(p)
			})
			if !r.IsError || w.startedTests() != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		state := ask()
		refused("no state", func(*mcp.CallToolParams) {})
		refused("forged", func(p *mcp.CallToolParams) { p.RequestState = "forged" })
		refused("altered", func(p *mcp.CallToolParams) { p.RequestState = state[:len(state)-2] + "AA" })
		refused("other arguments", func(p *mcp.CallToolParams) {
			p.RequestState, p.Arguments = state, map[string]any{"changeId": g.Record().ChangeID}
		})
		refused("other tool", func(p *mcp.CallToolParams) { p.RequestState, p.Name = state, "zerto_clone" })
		refused("another kind of answer", func(p *mcp.CallToolParams) {
			wrong := &mcp.ListRootsResult{Roots: []*mcp.Root{}} //nolint:staticcheck // deprecated, and clients can send it all the same
			p.RequestState, p.InputResponses = state, mcp.InputResponseMap{"confirm": wrong}
		})
		used := ask()
		if r := send(func(p *mcp.CallToolParams) {
			p.RequestState = used
			p.InputResponses = mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "decline"}}
		}); !r.IsError {
			t.Errorf("%+v", r)
		}
		refused("replayed", func(p *mcp.CallToolParams) { p.RequestState = used })
		old := ask()
		second.LoseCheckpoint(string(g.Record().Checkpoints[1].CheckpointID))
		w.vpg.LoseCheckpoint(string(g.Record().Checkpoints[0].CheckpointID))
		refused("changed object", func(p *mcp.CallToolParams) { p.RequestState = old })
	})

	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		w, _, g := guarded(t)
		client := connect(t, w.server(t, mcpadapter.WithPatience(time.Nanosecond)), eras[1], asking("accept", map[string]any{"vm": "app01"}, nil))
		f := refusedCall(t, client, startTest, args{"changeId": g.Record().ChangeID, "vm": "app01"})
		if f.Code != "no_consent" || w.startedTests() != 0 {
			t.Errorf("%+v", f)
		}
	})

	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		w, _, g := guarded(t)
		client := connect(t, w.server(t), eras[0], options)
		for _, state := range []string{"", "forged", "zr1.forged"} {
			r, err := client.CallTool(t.Context(), &mcp.CallToolParams{
				Name: startTest, Arguments: map[string]any{"changeId": g.Record().ChangeID, "vm": "app01"}, InputResponses: yes, RequestState: state,
			})
			if err != nil || !r.IsError || w.startedTests() != 0 {
				t.Errorf("%q: %+v, %v", state, r, err)
			}
		}
	})
}

func TestLaw6_AnAnswerThatCannotBeRecordedIsNone(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w, _, g := guarded(t)
		broken := mcpadapter.WithAnswers(func(context.Context, mcpadapter.HumanAnswer) error { return errors.New("disk full") })
		client := connect(t, w.server(t, broken), era, asking("accept", map[string]any{"vm": "app01"}, nil))
		refusedCall(t, client, startTest, args{"changeId": g.Record().ChangeID, "vm": "app01"})
		if n := w.startedTests(); n != 0 {
			t.Errorf("%d tests were started", n)
		}
	})
}

func TestFreezeStopsTheToolsOfTheServerToo(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w, _, g := guarded(t)
		var freeze *gate.Freeze
		option := mcpadapter.WithFreeze(func(context.Context) (*gate.Freeze, error) { return freeze, nil })
		var asked []string
		client := connect(t, w.server(t, option), era, asking("accept", map[string]any{"vm": "app01"}, &asked))
		change, guard := g.Record().ChangeID, args{"vm": "app01", "action": "upgrade"}
		freeze = &gate.Freeze{By: "kim", Reason: "an odd night"}
		tags := w.zvm.Count("POST", "/v1/vpgs/*/checkpoints")
		test, now := args{"changeId": change, "vm": "app01"}, args{"changeId": change, "path": "/", "vm": "app01"}
		for tool, a := range map[string]args{guardTool: guard, startTest: test, diffTool: now} {
			if f := refusedCall(t, client, tool, a); f.Code != "frozen" || !strings.Contains(f.Detail, "an odd night") {
				t.Errorf("%s: %+v", tool, f)
			}
		}
		if len(asked) != 0 || w.startedTests() != 0 || w.zvm.Count("POST", "/v1/vpgs/*/checkpoints") != tags {
			t.Errorf("frozen: %d questions, %d tests", len(asked), w.startedTests())
		}
		call[any](t, client, "zerto_list_guards", args{"vm": "app01"})
		call[any](t, client, diffTool, args{"changeId": change, "to": change, "path": "/", "vm": "app01"})
	})
}

func TestLaw6_WhereAFreezeCannotBeReadOnlyGuardsAreMade(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w, _, g := guarded(t)
		cp := g.Record().Checkpoints[0]
		_, err := w.client.MountFLR(t.Context(), zvm.FLRTarget{VPG: cp.VPGID, VM: g.Record().VMs[0].ID, Checkpoint: cp.CheckpointID})
		must(t, err)
		test, err := w.session.StartTest(t.Context(), g)
		must(t, err)
		option := mcpadapter.WithFreeze(func(context.Context) (*gate.Freeze, error) { return nil, errors.New("the ledger is locked") })
		var asked []string
		client := connect(t, w.server(t, option), era, asking("accept", map[string]any{"vm": "app01"}, &asked))
		change := g.Record().ChangeID
		about := args{"changeId": change, "vm": "app01"}
		for tool, a := range map[string]args{
			startTest: about, "zerto_stop_failover_test": about, "zerto_clone": about, "zerto_sweep": {"apply": true},
		} {
			if f := refusedCall(t, client, tool, a); f.Code != "failed" || !strings.HasPrefix(f.Message, "Whether a person froze") || !strings.Contains(f.Detail, "the ledger is locked") {
				t.Errorf("%s: %+v", tool, f)
			}
		}
		if len(asked) != 0 || w.startedTests() != 1 || len(w.zvm.LiveTests()) != 1 || len(w.zvm.LiveFLRSessions()) != 1 {
			t.Errorf("asked %q; tests %+v, mounts %+v", asked, w.zvm.LiveTests(), w.zvm.LiveFLRSessions())
		}
		must(t, test.Stop(t.Context(), rewind.TestPassed, ""))
		call[any](t, client, guardTool, args{"vm": "app01", "action": "upgrade"})
		call[any](t, client, diffTool, args{"changeId": change, "path": "/", "vm": "app01"})
	})
}

func TestCheckAsksThePersonAboutAnUnknownTool(t *testing.T) {
	t.Parallel()
	for answer, mayRun := range map[string]bool{"checkpoint": false, "run": true, "refuse": false} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			inBothEras(t, func(t *testing.T, era string) {
				w := newWorld(t)
				var asked []string
				client := connect(t, w.server(t), era, asking("accept", map[string]any{"answer": answer}, &asked))
				r := call[checkedTool](t, client, checkTool, args{"server": "ssh-x", "tool": "frobnicate", "vm": "web01"})
				if r.Answer != answer || r.MayRun != mayRun || r.Question != "" || len(asked) != 1 {
					t.Errorf("%+v after %d questions", r, len(asked))
				}
			})
		})
	}
	for _, action := range []string{"decline", "cancel"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			inBothEras(t, func(t *testing.T, era string) {
				client := connect(t, newWorld(t).server(t), era, asking(action, nil, nil))
				if f := refusedCall(t, client, checkTool, args{"server": "ssh-x", "tool": "frobnicate"}); f.Code != "no_consent" {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

type checkedTool struct {
	Answer, Question string
	MayRun           bool
}
