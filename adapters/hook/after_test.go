package hookadapter_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hookadapter "github.com/zerto-rewind/zerto-rewind/adapters/hook"
)

func TestOnlyAHostThatAsksBringsAPersonsYes(t *testing.T) {
	t.Parallel()
	after := map[string]any{"hook_event_name": "PostToolUse", "tool_response": map[string]any{}}
	yes := []string{"5f0c toolu_01"}
	for _, tt := range []struct {
		behaviour string
		stdin     io.Reader
		config    hookadapter.Config
		want      []string
		fails     bool
	}{
		{"Claude Code, in a mode that asks", strings.NewReader(payload(t, after)), hookadapter.Config{}, yes, false},
		{"a tool that failed", strings.NewReader(payload(t, with(after, map[string]any{"hook_event_name": "PostToolUseFailure"}))), hookadapter.Config{}, yes, false},
		{"stdin held open", heldOpen(t, payload(t, after)), hookadapter.Config{}, yes, false},
		{"a mode that does not ask", strings.NewReader(payload(t, with(after, map[string]any{"permission_mode": "bypassPermissions"}))), hookadapter.Config{}, nil, false},
		{"a mode that may not ask", strings.NewReader(payload(t, with(after, map[string]any{"permission_mode": "auto"}))), hookadapter.Config{}, nil, false},
		{"a session in which nobody is asked", strings.NewReader(payload(t, after)), hookadapter.Config{Questions: hookadapter.QuestionsNever}, nil, false},
		{"a call without a name", strings.NewReader(payload(t, with(after, map[string]any{"session_id": ""}))), hookadapter.Config{}, nil, false},
		{"an event before the tool", strings.NewReader(payload(t, nil)), hookadapter.Config{}, nil, true},
		{"Codex, which never asks", strings.NewReader(payload(t, with(after, map[string]any{"turn_id": "1"}))), hookadapter.Config{}, nil, true},
		{"nobody", strings.NewReader("{}"), hookadapter.Config{}, nil, true},
		{"no JSON", strings.NewReader("x"), hookadapter.Config{}, nil, true},
		{"nothing", heldOpen(t, ""), hookadapter.Config{Deadline: 20 * time.Millisecond}, nil, true},
	} {
		var got []string
		err := hookadapter.After(t.Context(), tt.stdin, tt.config, func(_ context.Context, session, call string) error {
			got = append(got, session+" "+call)
			return nil
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
			t.Errorf("%s: error %v, told of (-want +got):\n%s", tt.behaviour, err, diff)
		}
	}
	broken := errors.New("the ledger is locked")
	for _, ran := range []func(context.Context, string, string) error{
		func(context.Context, string, string) error { return broken },
		func(context.Context, string, string) error { panic("MARKER-panic") },
	} {
		if err := hookadapter.After(t.Context(), strings.NewReader(payload(t, after)), hookadapter.Config{}, ran); err == nil || strings.Contains(err.Error(), "MARKER-") {
			t.Errorf("%v, want what went wrong", err)
		}
	}
}
