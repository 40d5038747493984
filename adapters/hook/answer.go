package hookadapter

import (
	"encoding/json"
	"io"
	"os"
	"strings"
)

// maxReason keeps a reason of the caller's below the 10,000 characters that Claude Code takes (hooks 1.5).
const maxReason = 8000

const (
	exitAnswered = 0
	exitBlocked  = 2
)

// answer is all that a host gets to see.
type answer struct {
	exitCode       int
	stdout, stderr string
}

// blocked is the answer that every host but Cline takes for a refusal (hooks 0). The reason must not be blank, and
// stdout must be empty: some hosts let the tool run otherwise.
func blocked(reason string) answer {
	return answer{exitCode: exitBlocked, stderr: "zerto-rewind: " + cut(reason) + "\n"}
}

// blockedForCline is a refusal where Cline may be the one that reads it, from stdout alone. The others block by the exit
// code, and those versions of theirs that let stdout decide find a refusal there too (hooks 2.1, 2.3 and 3 11).
func blockedForCline(reason string) answer {
	a := blocked(reason)
	a.stdout = object(struct {
		Cancel       bool   `json:"cancel"`
		ErrorMessage string `json:"errorMessage"`
		Decision     string `json:"decision"`
		Reason       string `json:"reason"`
	}{true, cut(reason), "block", cut(reason)}, reason).stdout
	return a
}

// object writes one JSON object on stdout, and nothing else. What cannot be written is refused.
func object(value any, reason string) answer {
	text, err := json.Marshal(value)
	if err != nil {
		return blocked(reason)
	}
	return answer{exitCode: exitAnswered, stdout: string(text) + "\n"}
}

// cut bounds a reason. A blank one would make some hosts let the tool run.
func cut(reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		reason = "No reason is known."
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}

func unheard() answer { return blocked("the verdict could not be written, so the call did not run") }

// leadsNowhere reports whether what is written is lost without an error. So it is for a process that was started with
// its stdout closed: the null device takes its place.
func leadsNowhere(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && os.SameFile(info, null)
}

// write returns the exit code. An answer that stdout did not take is given again as a block, whose exit code needs no
// reader.
func (a answer) write(stdout, stderr io.Writer) int {
	if a.stdout != "" {
		if _, err := io.WriteString(stdout, a.stdout); err != nil {
			a = unheard()
		}
	}
	if a.stderr != "" {
		_, _ = io.WriteString(stderr, a.stderr) // the exit code blocks without it
	}
	return a.exitCode
}
