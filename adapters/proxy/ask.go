package proxyadapter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// question is what a person is asked about one call.
type question struct {
	call    gate.Call
	verdict gate.Verdict
	undo    bool
}

// questionKey is our question's key among those of one result.
const questionKey = "zerto-rewind"

// ask puts the question to a person through the client, or takes the answer that came with the call.
func (p *proxy) ask(ctx context.Context, m message, c toolCall, q question) outcome {
	asked := gate.Question{Session: p.session, Server: p.Server, Tool: c.name, Args: c.args}
	if gate.IsSealed(c.state) {
		return p.answered(ctx, m, c, q, asked)
	}
	if p.wasApproved(c, asked) {
		return outcome{line: m.line, pending: pending{method: methodCall, subject: subject(asked)}}
	}
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	switch {
	case c.meta.modern() && c.meta.Capabilities.canAsk():
		state, err := p.sealer.Seal(asked)
		if err != nil {
			return p.denied(c, "The question to a person could not be put together. The call was not executed.")
		}
		return outcome{answer: map[string]any{
			"resultType":    "input_required",
			"inputRequests": map[string]any{questionKey: map[string]any{"method": methodElicit, "params": p.form(q)}},
			"requestState":  state,
		}}
	case !c.meta.modern() && client.canAsk():
		answer, err := p.elicit(ctx, q)
		if err != nil {
			return p.denied(c, fmt.Sprintf("No answer came from a person (%v). The call was not executed.", err))
		}
		return p.act(ctx, m, c, q, asked, answer)
	}
	return p.cannotAsk(c, q.verdict)
}

// cannotAsk denies what a person would have to decide, and says how one can.
func (p *proxy) cannotAsk(c toolCall, v gate.Verdict) outcome {
	reason := v.Reason + " Nobody could be asked here, so the call was not executed. Put the question to the human."
	if v.ApproveCommand != "" {
		reason += " They can allow this one call at a terminal with: " + v.ApproveCommand
	}
	return p.denied(c, reason)
}

// answered takes the answer to a question of an earlier round.
func (p *proxy) answered(ctx context.Context, m message, c toolCall, q question, asked gate.Question) outcome {
	if !c.meta.modern() {
		return p.denied(c, "An answer came that nobody was asked for. The call was not executed.")
	}
	answer, ok := c.responses[questionKey]
	if !ok {
		return p.denied(c, "The answer to the question is missing. The call was not executed.")
	}
	if err := p.sealer.Open(c.state, asked); err != nil {
		return p.denied(c, fmt.Sprintf("The answer was not accepted: %v. The call was not executed.", err))
	}
	line, err := m.without("requestState", "inputResponses")
	if err != nil {
		return p.denied(c, "The call could not be passed on. It was not executed.")
	}
	m.line = line
	return p.act(ctx, m, c, q, asked, answer)
}

// act does what a person answered.
func (p *proxy) act(ctx context.Context, m message, c toolCall, q question, asked gate.Question, raw json.RawMessage) outcome {
	choice, vm, err := p.parseAnswer(q, raw)
	if err != nil {
		return p.denied(c, fmt.Sprintf("The call was not executed: %v.", err))
	}
	o := outcome{line: m.line, pending: pending{method: methodCall, subject: subject(asked)}}
	yes := Answer{Call: q.call, Targets: q.verdict.Targets}
	if choice == gate.CheckpointFirst {
		vms := q.verdict.Targets
		if vm != "" {
			vms = []string{vm} // what the call names may be no VM of Zerto's
		}
		record, err := p.Protect(ctx, vms, q.call.Name.String())
		if err != nil {
			return p.denied(c, fmt.Sprintf("The guard that the human asked for could not be made, so the call was not executed: %v", err))
		}
		o.pending.guard, yes.Guard = record.ChangeID, &record
	}
	if p.Answered != nil {
		if err := p.Answered(ctx, yes); err != nil {
			return p.denied(c, fmt.Sprintf("The human's answer could not be recorded (%v), so the call was not executed.", err))
		}
	}
	return o
}

// parseAnswer takes nothing for a yes but the yes of the form.
func (p *proxy) parseAnswer(q question, raw json.RawMessage) (choice gate.Choice, vm string, err error) {
	var result struct {
		Action  string `json:"action"`
		Content *struct {
			Answer gate.Choice `json:"answer"`
			VM     string      `json:"vm"`
		} `json:"content"`
	}
	if _, err := gate.Members(raw); err != nil || json.Unmarshal(raw, &result) != nil {
		return "", "", errors.New("the answer is not one to the form")
	}
	switch {
	case result.Action == "decline":
		return "", "", errors.New("the human declined")
	case result.Action == "cancel":
		return "", "", errors.New("the human closed the question without an answer")
	case result.Action != "accept" || result.Content == nil:
		return "", "", errors.New("the answer is not one to the form")
	}
	switch choice, vm = result.Content.Answer, result.Content.VM; {
	case choice == gate.DoNotRun:
		return "", "", errors.New("the human refused it")
	case !slices.Contains(p.choices(q), choice):
		return "", "", errors.New("the answer is none of those that were offered")
	case choice == gate.CheckpointFirst && len(q.verdict.Targets) == 0 && vm == "":
		return "", "", errors.New("the answer does not say which VM to checkpoint")
	}
	return choice, vm, nil
}

// choices lists the answers on offer. No checkpoint helps against the loss of checkpoints.
func (p *proxy) choices(q question) []gate.Choice {
	if p.Protect == nil || q.undo {
		return []gate.Choice{gate.RunUnguarded, gate.DoNotRun}
	}
	return []gate.Choice{gate.CheckpointFirst, gate.RunUnguarded, gate.DoNotRun}
}

// form is the question as one flat form, which is all that every client can show (mcp 1.6).
func (p *proxy) form(q question) map[string]any {
	choices := p.choices(q)
	options := make([]any, 0, len(choices))
	for _, c := range choices {
		options = append(options, map[string]any{"const": c, "title": c.Title()})
	}
	properties := map[string]any{
		"answer": map[string]any{"type": "string", "title": "May it run?", "oneOf": options},
	}
	if slices.Contains(choices, gate.CheckpointFirst) {
		description := "needed for the first answer alone"
		if len(q.verdict.Targets) > 0 {
			description = "for the first answer, where it is another than the call names"
		}
		properties["vm"] = map[string]any{"type": "string", "title": "VM to checkpoint", "description": description, "maxLength": 255}
	}
	return map[string]any{
		"message":         q.verdict.Reason,
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": []any{"answer"}},
	}
}

// elicit asks a client of the legacy era, and waits.
func (p *proxy) elicit(ctx context.Context, q question) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Patience, fmt.Errorf("none within %v", p.Patience))
	defer cancel()
	id := string(encode("zerto-rewind-" + rand.Text()))
	answer := make(chan json.RawMessage, 1)
	p.mu.Lock()
	p.questions[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.questions, id)
		p.mu.Unlock()
	}()
	if err := p.toHost.write(encode(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(id), "method": methodElicit, "params": p.form(q),
	})); err != nil {
		return nil, err
	}
	select {
	case raw := <-answer:
		if raw == nil {
			return nil, errors.New("the client could not ask")
		}
		return raw, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answerQuestion hands an answer of the client to whoever asked, and reports whether it was to one of our questions.
func (p *proxy) answerQuestion(m message) bool {
	p.mu.Lock()
	waiting, ours := p.questions[m.key]
	delete(p.questions, m.key)
	p.mu.Unlock()
	if !ours {
		return false
	}
	members, err := gate.Members(m.line)
	if err != nil {
		waiting <- nil
	} else {
		waiting <- members["result"]
	}
	return true
}

// maxApproved bounds what is remembered of calls that a server never takes up again.
const maxApproved = 1000

// remember notes the state of a server that has a question of its own to a call that a person said yes to, so that the
// same call with that state is not asked about again.
func (p *proxy) remember(subject string, result json.RawMessage) {
	var r struct {
		State string `json:"requestState"`
		Type  string `json:"resultType"`
	}
	if subject == "" || json.Unmarshal(result, &r) != nil || r.Type != "input_required" || r.State == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.approved) < maxApproved {
		p.approved[r.State] = subject
	}
}

func (p *proxy) wasApproved(c toolCall, asked gate.Question) bool {
	if c.state == "" || !c.meta.modern() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	approved, ok := p.approved[c.state]
	if ok = ok && approved == subject(asked); ok {
		delete(p.approved, c.state)
	}
	return ok
}

func subject(q gate.Question) string {
	sum := sha256.Sum256(encode([]any{q.Server, q.Tool, q.Args}))
	return string(sum[:])
}
