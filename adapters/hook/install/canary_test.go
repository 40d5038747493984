package install_test

import (
	"encoding/json"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

// TestWhatEachHostTakesForARefusal has the forms of all hosts read by each: what one takes for a refusal lets the call run
// at another.
func TestWhatEachHostTakesForARefusal(t *testing.T) {
	t.Parallel()
	const (
		claude  = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"x"}}`
		copilot = `{"permissionDecision":"deny","permissionDecisionReason":"x"}`
		cursor  = `{"permission":"deny","user_message":"x"}`
		gemini  = `{"decision":"deny","reason":"x"}`
		cline   = `{"cancel":true,"errorMessage":"x"}`
		asks    = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"x"}}`
		silent  = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":" "}}`
		more    = `{"continue":false,"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"x"}}`
	)
	for name, tt := range map[string]struct {
		outcome install.Outcome
		blocks  []string
	}{
		"Claude's":               {install.Outcome{Stdout: claude}, []string{"claude", "codex", "vscode"}},
		"Copilot's":              {install.Outcome{Stdout: copilot}, []string{"copilot"}},
		"Cursor's":               {install.Outcome{Stdout: cursor}, []string{"cursor"}},
		"Gemini's":               {install.Outcome{Stdout: gemini}, []string{"gemini"}},
		"Cline's":                {install.Outcome{Stdout: cline}, []string{"cline"}},
		"a question":             {install.Outcome{Stdout: asks}, nil},
		"no reason":              {install.Outcome{Stdout: silent}, nil},
		"another member":         {install.Outcome{Stdout: more}, []string{"claude", "vscode"}},
		"a line in front":        {install.Outcome{Stdout: "hello\n" + claude}, nil},
		"two objects":            {install.Outcome{Stdout: copilot + copilot}, nil},
		"nothing":                {install.Outcome{}, nil},
		"exit 1":                 {install.Outcome{ExitCode: 1, Stderr: "x"}, []string{"copilot"}},
		"not found":              {install.Outcome{ExitCode: 127, Stderr: "x"}, []string{"copilot"}},
		"exit 2 with a reason":   {install.Outcome{ExitCode: 2, Stderr: "x"}, []string{"claude", "codex", "cursor", "gemini", "copilot", "vscode", "windsurf"}},
		"exit 2 without one":     {install.Outcome{ExitCode: 2}, []string{"cursor", "copilot", "windsurf"}},
		"exit 2 with Claude's":   {install.Outcome{ExitCode: 2, Stdout: claude, Stderr: "x"}, []string{"claude", "codex", "cursor", "copilot", "vscode", "windsurf"}},
		"exit 1 with Cline's":    {install.Outcome{ExitCode: 1, Stdout: cline}, []string{"cline", "copilot"}},
		"an answer with exit 1":  {install.Outcome{ExitCode: 1, Stdout: claude}, []string{"copilot"}},
		"a kill before any word": {install.Outcome{ExitCode: -1}, []string{"copilot"}},
	} {
		blocks := map[string]bool{}
		for _, host := range tt.blocks {
			blocks[host] = true
		}
		for _, host := range append(install.Hosts(), "emacs") {
			if got := install.Blocks(host, tt.outcome); got != blocks[host] {
				t.Errorf("%s: %s blocks %t, want %t", name, host, got, blocks[host])
			}
		}
	}
}

func TestCanariesAreJSON(t *testing.T) {
	t.Parallel()
	for _, host := range install.Hosts() {
		b := newBench(t, host)
		b.install()
		s, err := install.Inspect(b.hook, b.place)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Entries {
			input, ok := install.Canary(host, e.Event)
			if ok == e.After || ok && !json.Valid([]byte(input)) {
				t.Errorf("%s %s: %q", host, e.Event, input)
			}
		}
		if _, ok := install.Canary(host, "another"); ok {
			t.Errorf("%s: a canary for an event on which nothing runs", host)
		}
	}
}
