package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// HumanAnswer is what a person answered to a question that a client carried to them, and back. Nothing proves that a
// person gave it.
type HumanAnswer struct {
	// Tool is the tool of ours that asked.
	Tool string
	// Server, CalledTool and Args are the call of another server that was asked about, empty for calls of our own.
	Server, CalledTool string
	Args               map[string]any
	VM                 string
	ChangeID           string
	// Answer is "checkpoint", "run" or "confirm".
	Answer string
}

// WithAnswers has record told of every yes before anything is done on it; where it fails, nothing is done.
func WithAnswers(record func(context.Context, HumanAnswer) error) Option {
	return func(t *toolset) error { t.recordAnswer = record; return nil }
}

// WithFreeze has the tools that insert, start, stop or close anything ask whether a freeze is in force, and refuse while it
// is. Where that cannot be known, nothing is started, stopped or closed; a guard is still made, as a gate lets one be made.
func WithFreeze(inForce func(context.Context) (*gate.Freeze, error)) Option {
	return func(t *toolset) error { t.freeze = inForce; return nil }
}

// unfrozen refuses while a freeze is in force, and where that cannot be known.
func (t *toolset) unfrozen(ctx context.Context, untouched string) error {
	if t.freeze == nil {
		return nil
	}
	freeze, err := t.freeze(ctx)
	if err != nil {
		return &refused{refusalError{
			Code: codeFailed, Message: "Whether a person froze everything cannot be known.", NotDone: untouched,
			NextStep: "Tell the human. " + seeDetail, Detail: err.Error(),
		}}
	}
	return frozen(freeze, untouched)
}

// mayGuard refuses while a freeze is known to be in force: a guard harms nothing, and may be all there is to go back to.
func (t *toolset) mayGuard(ctx context.Context, untouched string) error {
	if t.freeze == nil {
		return nil
	}
	freeze, err := t.freeze(ctx)
	if err != nil {
		return nil //nolint:nilerr // as WithFreeze says
	}
	return frozen(freeze, untouched)
}

// frozen is the refusal while a freeze is in force, nil without one.
func frozen(freeze *gate.Freeze, untouched string) error {
	if freeze == nil {
		return nil
	}
	return &refused{refusalError{
		Code: codeFrozen, Message: "A person froze everything but reads and local calls.", NotDone: untouched,
		NextStep: "Tell the human, who alone can lift it, at a terminal, with: zerto-rewind thaw.",
		Detail:   fmt.Sprintf("frozen by %s at %s: %s", freeze.By, freeze.At.UTC().Format(time.RFC3339), freeze.Reason),
	}}
}

// questionKey is the key of our one question among those of a result: clients of the legacy era can be asked only one
// (mcp 1.6).
const questionKey = "confirm"

// needsAnswer is the "error" of a call that a person has to answer a question for.
type needsAnswer struct {
	form  *mcp.ElicitParams
	state string
}

func (*needsAnswer) Error() string { return "a person has to answer first" }

func (n *needsAnswer) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{questionKey: n.form}, RequestState: n.state}
}

// canAsk reports whether the client shows forms (mcp 1.6).
func (c call) canAsk() bool {
	told := c.request.ClientCapabilities()
	return told != nil && told.Elicitation != nil && (told.Elicitation.Form != nil || told.Elicitation.URL == nil)
}

// ask returns what a person answered to the form: the value of its field. The error is what the call has to end with:
// the question itself, when it has not been asked, or a refusal. Object is what the call would act on, as it is now: the
// answer counts for nothing else.
func (t *toolset) ask(c call, tool, object string, form *mcp.ElicitParams, field, untouched string) (string, error) {
	args, err := gate.Arguments(orObject(c.request.Params.Arguments))
	if err != nil {
		return "", err
	}
	question := gate.Question{Session: sessionID(c), Server: "zerto-rewind", Tool: tool, Args: args, Object: object}
	refuse := func(message string, cause error) error {
		r := refusalError{
			Code: codeNoConsent, Message: message, NotDone: untouched, NextStep: "Tell the human what you wanted to do, and wait for their word.",
		}
		if cause != nil {
			r.Detail = cause.Error()
		}
		return &refused{r}
	}
	state, responses := c.request.Params.RequestState, c.request.Params.InputResponses
	if state == "" && len(responses) == 0 {
		sealed, err := t.sealer.Seal(question)
		if err != nil {
			return "", err
		}
		return "", &needsAnswer{form, sealed}
	}
	if err := t.sealer.Open(state, question); err != nil {
		return "", refuse("The human's answer was not accepted.", err)
	}
	answer, ok := responses[questionKey].(*mcp.ElicitResult)
	switch {
	case !ok || answer == nil:
		return "", refuse("The answer is not one to the question.", nil)
	case answer.Action == "decline":
		return "", refuse("The human declined.", nil)
	case answer.Action == "cancel":
		return "", refuse("The human closed the question without an answer.", nil)
	case answer.Action != "accept":
		return "", refuse("The answer is not one to the question.", nil)
	}
	value, ok := answer.Content[field].(string)
	if !ok {
		return "", refuse("The answer is not one to the question.", nil)
	}
	return value, nil
}

// confirm has a person type the VM's name before something is started or stopped. Where the client cannot ask, the
// refusal names the command that does the same at a terminal.
func (t *toolset) confirm(ctx context.Context, c call, k confirmation) error {
	if err := t.unfrozen(ctx, k.untouched); err != nil {
		return err
	}
	if !c.canAsk() || k.vm == "" { // without a name, nothing could be typed
		return &refused{refusalError{
			Code: codeNeedsHuman, Message: "A human has to agree to this, and this client cannot ask them.", NotDone: k.untouched,
			NextStep: "Have the human run the command in detail at a terminal.", Detail: k.command, ChangeID: k.changeID,
		}}
	}
	typed, err := t.ask(c, k.tool, k.object, &mcp.ElicitParams{
		Message: fmt.Sprintf("%s Type %q, without the quotes, to agree.", k.message, k.vm),
		RequestedSchema: &jsonschema.Schema{
			Type:       "object",
			Properties: map[string]*jsonschema.Schema{"vm": {Type: "string", Title: "Name of the VM", MaxLength: jsonschema.Ptr(maxTextLength)}},
			Required:   []string{"vm"},
		},
	}, "vm", k.untouched)
	if err != nil {
		return err
	}
	if typed != k.vm {
		return &refused{refusalError{
			Code: codeNoConsent, Message: "What the human typed is not the name that was asked for.", NotDone: k.untouched,
			NextStep: "Call again if it was a slip; they are asked again.",
		}}
	}
	return t.record(ctx, HumanAnswer{Tool: k.tool, VM: k.vm, ChangeID: k.changeID, Answer: "confirm"}, k.untouched)
}

// confirmation is what a person is asked to agree to.
type confirmation struct {
	tool, message, vm, object, changeID, command, untouched string
}

func (t *toolset) record(ctx context.Context, a HumanAnswer, untouched string) error {
	if t.recordAnswer == nil {
		return nil
	}
	if err := t.recordAnswer(ctx, a); err != nil {
		return &refused{refusalError{
			Code: codeFailed, Message: "The human's answer could not be recorded.", NotDone: untouched, NextStep: seeDetail, Detail: err.Error(),
		}}
	}
	return nil
}

// sessionID binds an answer to the connection on which it was asked for, where there is one. Clients of the modern era hold
// the states of their questions; those of the legacy era never see one, so that none from elsewhere counts there.
func sessionID(c call) string {
	if c.request.ProtocolVersion() >= modernEra {
		return ""
	}
	id := "legacy"
	if c.request.Session != nil {
		id += " " + c.request.Session.ID()
	}
	return id
}

func orObject(raw []byte) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return []byte("{}")
	}
	return raw
}

func choiceForm(message string, choices []gate.Choice) *mcp.ElicitParams {
	options := make([]*jsonschema.Schema, len(choices))
	for i, c := range choices {
		var value any = string(c)
		options[i] = &jsonschema.Schema{Const: &value, Title: c.Title()}
	}
	return &mcp.ElicitParams{
		Message: message,
		RequestedSchema: &jsonschema.Schema{
			Type:       "object",
			Properties: map[string]*jsonschema.Schema{"answer": {Type: "string", Title: "May it run?", OneOf: options}},
			Required:   []string{"answer"},
		},
	}
}

var errNoSuchAnswer = errors.New("the answer is none of those that were offered")
