package hookadapter

import (
	"context"
	"io"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// Explanation is one run of the hook, taken apart.
type Explanation struct {
	Host  string `json:"host"`            // that the payload was taken to come from, empty if none was recognised
	Event string `json:"event,omitempty"` // the host's name of what is about to happen
	Mode  string `json:"mode,omitempty"`  // the host's permission mode
	// Name is the tool as the catalogue would know it, and Entry what the catalogue says of it; nil when it has none.
	Name  catalog.Name   `json:"name"`
	Entry *catalog.Entry `json:"entry"`
	// Verdict is the gate's, nil for an input that was not understood.
	Verdict *gate.Verdict `json:"verdict"`
	// Decision is what the verdict comes to at this host: "ask" becomes "deny" where nobody would be asked.
	Decision gate.Decision `json:"decision"`
	// ExitCode, Stdout and Stderr are all that the host gets to see.
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// Explain answers like [Run], and tells the answer and its reasons instead of giving it. What it does besides is what
// the gate does.
func Explain(ctx context.Context, stdin io.Reader, c Config) Explanation {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	r := answerTo(ctx, readInput(stdin, maxInput), c)
	e := Explanation{
		Event: r.call.event, Mode: r.call.mode, Decision: r.decision,
		ExitCode: r.answer.exitCode, Stdout: r.answer.stdout, Stderr: r.answer.stderr,
	}
	if r.host != nil {
		e.Host = r.host.name
	}
	if r.judged != nil {
		e.Name, e.Entry, e.Verdict = r.judged.name, r.judged.entry, &r.judged.verdict
	}
	return e
}
