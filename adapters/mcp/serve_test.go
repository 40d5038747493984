package mcpadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpadapter "github.com/zerto-rewind/zerto-rewind/adapters/mcp"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// served is a running Serve, and the two streams it speaks through.
type served struct {
	in  *io.PipeWriter
	out *io.PipeReader
	end chan error
}

func serve(ctx context.Context, t *testing.T, session *rewind.Session, opts ...mcpadapter.Option) served {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	s := served{in: in, out: out, end: make(chan error, 1)}
	go func() {
		s.end <- mcpadapter.Serve(ctx, session, inReader, outWriter, opts...)
		outWriter.Close()
	}()
	t.Cleanup(func() { in.Close(); out.Close() })
	return s
}

func (s served) connect(t *testing.T, era string, out io.ReadCloser) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "patch-bot", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: s.in},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestServeWritesNothingButMessages(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		s := serve(t.Context(), t, w.session, mcpadapter.WithHeartbeat(time.Millisecond))
		copied, copyWriter := io.Pipe()
		lines := make(chan string, 1000)
		go func() {
			defer close(lines)
			scanner := bufio.NewScanner(io.TeeReader(s.out, copyWriter))
			for scanner.Scan() {
				lines <- scanner.Text()
			}
			copyWriter.Close()
		}()
		client := s.connect(t, era, copied)
		call[rewind.GuardRecord](t, client, guardTool, args{"vm": "web01", "action": "x"})
		refusedCall(t, client, guardTool, args{"vm": "web99", "action": "x"})
		refusedCall(t, client, recoverTool, args{"nope": 1})
		client.Close()
		if err := <-s.end; err != nil {
			t.Errorf("Serve returned %v", err)
		}
		for line := range lines {
			var message struct{ JSONRPC string }
			if err := json.Unmarshal([]byte(line), &message); err != nil || message.JSONRPC != "2.0" {
				t.Errorf("not a message: %q", line)
			}
			if strings.Contains(line, "MARKER-") {
				t.Errorf("a secret: %q", line)
			}
		}
	})
}

// A host that goes away must not leave a mount behind.
func TestServeClosesWhatACallOpenedWhenItsHostIsGone(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		for name, leave := range map[string]func(served, context.CancelFunc){
			"the input ends":   func(s served, _ context.CancelFunc) { s.in.Close() },
			"the context ends": func(_ served, cancel context.CancelFunc) { cancel() },
		} {
			t.Run(era+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := newWorld(t, zvmtest.WithMountTime(time.Hour))
				change := w.guarded(t, "/f", []byte("x"))
				s := serve(ctx, t, w.session)
				client := s.connect(t, era, s.out)
				failed := make(chan error, 1)
				go func() {
					_, err := client.CallTool(t.Context(), &mcp.CallToolParams{
						Name: recoverTool, Arguments: map[string]any{"changeId": change, "path": "/f"},
					})
					failed <- err
				}()
				waitUntil(t, func() bool { return len(w.zvm.LiveFLRSessions()) == 1 })
				leave(s, cancel)
				if err := <-s.end; !errors.Is(err, ctx.Err()) {
					t.Errorf("Serve returned %v, want %v", err, ctx.Err())
				}
				w.requireClosed(t)
				if err := <-failed; err == nil {
					t.Error("the call did not fail")
				}
			})
		}
	}
}

// waitUntil looks until something is so. The test's own time limit ends it.
func waitUntil(t *testing.T, so func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-look.C:
		}
	}
}

func TestServeTakesLongLinesAndOddLineEnds(t *testing.T) {
	t.Parallel()
	s := serve(t.Context(), t, newWorld(t).session)
	answers := json.NewDecoder(s.out)
	send := func(message string) {
		t.Helper()
		if _, err := io.WriteString(s.in, message); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() string {
		t.Helper()
		var raw json.RawMessage
		if err := answers.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\r\n")
	receive()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n\n")
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + findTool + `","arguments":{"vm":"` + strings.Repeat("a", 1<<20) + `"}}}` + "\n")
	if got := receive(); !strings.Contains(got, "invalid_arguments") || len(got) > 32<<10 {
		t.Errorf("answer of %d bytes: %.200s", len(got), got)
	}
	// An answer that nobody asked for: a forged one must not pass for a human's.
	send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + checkTool + `","arguments":{"tool":"x"},"inputResponses":{"confirm":{"action":"accept","content":{}}},"requestState":"forged"}}` + "\n")
	if got := receive(); !strings.Contains(got, `"class":"unknown"`) {
		t.Errorf("answer = %s", got)
	}
}

func TestAClientThatAsksHearsThatACallIsUnderWay(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t, zvmtest.WithInsertTime(time.Second))
		var heard, stages atomic.Int32
		var last atomic.Value
		last.Store(0.0)
		server := w.server(t, mcpadapter.WithHeartbeat(10*time.Millisecond))
		client := connect(t, server, era, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				heard.Add(1)
				if strings.Contains(r.Params.Message, "the insert's task is InProgress") {
					stages.Add(1)
				}
				if before := last.Swap(r.Params.Progress); r.Params.Progress <= before.(float64) || r.Params.ProgressToken != "t" {
					t.Errorf("progress %v after %v, token %v", r.Params.Progress, before, r.Params.ProgressToken)
				}
			},
		})
		call[rewind.GuardRecord](t, client, guardTool, args{"vm": "web01", "action": "x"})
		if n := heard.Load(); n != 0 {
			t.Errorf("%d notifications that nobody asked for", n)
		}
		params := &mcp.CallToolParams{Name: guardTool, Arguments: map[string]any{"vm": "web01", "action": "y"}}
		params.SetProgressToken("t")
		if _, err := client.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if heard.Load() == 0 || stages.Load() == 0 {
			t.Errorf("%d notifications, %d of them of the insert's task", heard.Load(), stages.Load())
		}
	})
}

// deadline makes a server end each call when the channel is closed, as a host's own time limit does.
func deadline(server *mcp.Server, reached <-chan struct{}) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method != "tools/call" {
				return next(ctx, method, r)
			}
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go func() {
				select {
				case <-reached:
					cancel(errors.New("the host's own limit"))
				case <-ctx.Done():
				}
			}()
			return next(ctx, method, r)
		}
	})
}

func TestACancelledGuardSaysWhatGoesOnAtTheZVM(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t, zvmtest.WithInsertTime(time.Hour))
		queued := make(chan struct{})
		w.session = w.newSession(rewind.WithProgress(func(e rewind.Event) {
			if e.Stage == rewind.StageTask {
				close(queued)
			}
		}))
		server := w.server(t)
		deadline(server, queued)
		f := refusedCall(t, connect(t, server, era, nil), guardTool, args{"vm": "web01", "action": "x"})
		if f.Code != "cancelled" || f.ChangeID == "" || len(f.Failed) != 1 {
			t.Fatalf("refusal = %+v", f)
		}
		if task := w.zvm.Tasks()[0]; f.Failed[0].TaskID != task.ID || f.Failed[0].Tag == "" {
			t.Errorf("failed = %+v, want task %s", f.Failed[0], task.ID)
		}
		if !strings.Contains(f.Message, "goes on") || !strings.Contains(f.NotDone, "not guarded") {
			t.Errorf("refusal = %+v", f)
		}
	})
}

func TestAClientThatCancelsEndsTheWaiting(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t, zvmtest.WithInsertTime(time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.session = w.newSession(rewind.WithProgress(func(e rewind.Event) {
			if e.Stage == rewind.StageTask {
				cancel()
			}
		}))
		returned := make(chan struct{})
		server := w.server(t)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == "tools/call" {
					defer close(returned)
				}
				return next(ctx, method, r)
			}
		})
		_, err := connect(t, server, era, nil).CallTool(ctx, &mcp.CallToolParams{
			Name: guardTool, Arguments: map[string]any{"vm": "web01", "action": "x"},
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		<-returned
	})
}

func TestAPartialGuardNamesWhatStandsAndWhatFailed(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		db := w.zvm.AddVPG("db", zvmtest.VPGConfig{})
		w.zvm.AddVM("db01", db)
		w.zvm.ScriptTask("InsertTaggedCP", zvmtest.TaskFailed, "out of journal space")
		client := w.connect(t, era)
		f := refusedCall(t, client, guardTool, args{"vms": []string{"web01", "db01"}, "action": "x"})
		if f.Code != "partial_guard" || len(f.Tagged) != 1 || len(f.Failed) != 1 || f.ChangeID == "" {
			t.Fatalf("refusal = %+v", f)
		}
		if strings.Contains(f.NotDone, "nothing was inserted") {
			t.Errorf("notDone denies the checkpoint that stands: %s", f.NotDone)
		}
		record := call[rewind.GuardRecord](t, client, guardTool, args{
			"vms": []string{"web01", "db01"}, "action": "x", "changeId": f.ChangeID,
		})
		if len(record.Checkpoints) != 2 || len(w.vpg.TaggedCheckpoints()) != 1 || len(db.TaggedCheckpoints()) != 1 {
			t.Errorf("record = %+v", record)
		}
	})
}
