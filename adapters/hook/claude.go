package hookadapter

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// maxReason keeps a reason of the caller's below the 10,000 characters that Claude Code takes (hooks 1.5).
const maxReason = 8000

const (
	exitAnswered = 0
	exitBlocked  = 2
)

// answer is all that a host gets to see. Stdout and stderr are never both used.
type answer struct {
	exitCode       int
	stdout, stderr string
}

// blocked is the answer that every host takes for a refusal (hooks 0). The reason must not be blank: some hosts let the
// tool run then.
func blocked(reason string) answer {
	return answer{exitCode: exitBlocked, stderr: "zerto-rewind: " + strings.TrimSpace(reason) + "\n"}
}

// write returns the exit code. An answer that stdout did not take is given again as a block, whose exit code needs no
// reader.
func (a answer) write(stdout, stderr io.Writer) int {
	if a.stdout != "" {
		if _, err := io.WriteString(stdout, a.stdout); err != nil {
			a = blocked("the verdict could not be written, so the call did not run")
		}
	}
	if a.stderr != "" {
		_, _ = io.WriteString(stderr, a.stderr) // the exit code blocks without it
	}
	return a.exitCode
}

// modesThatAsk are the permission modes in which a question reaches a person. In others it was seen to be answered by
// nobody, with yes (hooks 1.7).
var modesThatAsk = []string{"default", "acceptEdits", "plan"}

func claudeAnswer(v gate.Verdict, mode string, neverAsk bool) answer {
	switch v.Decision {
	case gate.Allow, gate.NoOpinion:
		return answer{exitCode: exitAnswered}
	case gate.Ask:
		if !neverAsk && slices.Contains(modesThatAsk, mode) {
			return claudeDecision("ask", v.Reason)
		}
		return claudeDecision("deny", "This needs a human, and nobody can be asked in this session. "+v.Reason+
			" A person can run the call in Claude Code's default mode and answer there.")
	}
	return claudeDecision("deny", v.Reason)
}

// claudeDecision writes exactly the members that Claude Code and the hosts that copy it agree on: one more makes some of
// them drop the decision (hooks 2.1).
func claudeDecision(decision, reason string) answer {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	type output struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	text, err := json.Marshal(struct {
		Output output `json:"hookSpecificOutput"`
	}{output{"PreToolUse", decision, reason}})
	if err != nil {
		return blocked(reason)
	}
	return answer{exitCode: exitAnswered, stdout: string(text) + "\n"}
}
