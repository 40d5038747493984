package proxyadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// heldCall is a call that has not been decided on.
type heldCall struct {
	cancel context.CancelFunc
	gone   bool // its client no longer waits for it
}

// hold judges a call on a goroutine of its own, while other messages pass.
func (p *proxy) hold(ctx context.Context, m message) {
	c, err := parseCall(m.params)
	if err != nil {
		p.refuse(m.id, codeInvalidParams, fmt.Errorf("the parameters of the call were refused: %w", err))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &heldCall{cancel: cancel}
	p.mu.Lock()
	_, twice := p.held[m.key]
	if _, sent := p.pending[m.key]; twice || sent {
		p.mu.Unlock()
		cancel()
		p.refuse(m.id, codeInvalidRequest, errors.New("another request with this id has not been answered"))
		return
	}
	p.held[m.key] = h
	p.mu.Unlock()
	p.calls.Go(func() {
		defer cancel()
		stop := p.beat(ctx, c.meta.ProgressToken)
		v := p.decide(ctx, m, c)
		stop()
		p.conclude(m, h, v)
	})
}

// outcome is what becomes of a call: it is passed on, or answered here.
type outcome struct {
	line    []byte // to the server
	pending pending
	answer  any // to the host, as the result of the call
}

func (p *proxy) conclude(m message, h *heldCall, o outcome) {
	p.mu.Lock()
	delete(p.held, m.key)
	if o.line != nil && !h.gone {
		p.pending[m.key] = o.pending
	}
	gone := h.gone
	p.mu.Unlock()
	switch {
	case gone:
	case o.line != nil:
		if err := p.forward(o.line); err != nil {
			p.mu.Lock()
			delete(p.pending, m.key)
			p.mu.Unlock()
			p.fail(m.id, codeServerEnded, "the MCP server ended while the call was handed to it; whether it ran is not known")
		}
	default:
		_ = p.toHost.write(encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(m.id), "result": o.answer}))
	}
}

// cancelHeld ends a held call whose client no longer waits, and reports whether it was one.
func (p *proxy) cancelHeld(params json.RawMessage) bool {
	var told struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &told) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.held[idKey(told.RequestID)]
	if ok {
		h.gone = true
		h.cancel()
	}
	return ok
}

func (p *proxy) decide(ctx context.Context, m message, c toolCall) (o outcome) {
	defer func() {
		if recover() != nil {
			o = p.denied(c, "The proxy failed while it judged this call. It was not executed.")
		}
	}()
	g, err := p.Gate()
	if err != nil {
		return p.denied(c, fmt.Sprintf("Nothing could judge this call (%v). It was not executed.", err))
	}
	call := gate.Call{
		Name: catalog.Name{Server: p.Server, Tool: c.name}, Args: c.args,
		Host: "proxy", Session: p.session, CallID: strings.Trim(m.id, `"`),
	}
	v := g.Decide(ctx, call)
	if ctx.Err() != nil {
		return p.denied(c, "The call was given up before it was decided on. It was not executed.")
	}
	if v.Decision == gate.Ask {
		return p.ask(ctx, m, c, question{call: call, verdict: v, undo: g.Catalog().ClassifyCall(call.Name, call.Args).Kind == catalog.Undo})
	}
	if gate.IsSealed(c.state) {
		if m.line, err = m.without("requestState", "inputResponses"); err != nil {
			return p.denied(c, "The call could not be passed on. It was not executed.")
		}
	}
	switch v.Decision {
	case gate.Allow, gate.NoOpinion:
		o := outcome{line: m.line, pending: pending{method: methodCall}}
		if len(v.Guards) > 0 {
			o.pending.guard = v.Guards[0].ChangeID
		}
		return o
	default:
		return p.denied(c, v.Reason)
	}
}

// denied answers a call so that a model can read what did not happen, and what would change that.
func (p *proxy) denied(c toolCall, reason string) outcome {
	result := map[string]any{
		"content": []any{map[string]any{"type": "text", "text": reason}},
		"isError": true,
	}
	if c.meta.modern() {
		result["resultType"] = "complete"
	}
	return outcome{answer: result}
}

// beat tells a client that wants to know that its call is held. Its counts stay below 1, from which most servers
// count.
func (p *proxy) beat(ctx context.Context, token json.RawMessage) (stop func()) {
	if len(token) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(p.Heartbeat)
		defer ticker.Stop()
		for beats := 1; ; beats++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			_ = p.toHost.write(encode(map[string]any{
				"jsonrpc": "2.0", "method": methodProgress,
				"params": map[string]any{
					"progressToken": token, "progress": float64(beats) * 1e-6,
					"message": "The call is held until it is guarded, or a person has answered. It has not run yet.",
				},
			}))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
