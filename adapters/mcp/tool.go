package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// tool is one tool, ready to be added to a server.
type tool struct {
	*mcp.Tool

	handle mcp.ToolHandler
}

// tools returns every tool, or an error before any has been added anywhere.
func (t *toolset) tools() ([]tool, error) {
	var tools []tool
	for _, build := range []func() (tool, error){
		t.findProtectionTool,
		t.guardTool,
		t.checkTool,
		t.browseTool,
		t.diffTool,
		t.recoverFileTool,
		t.listGuardsTool,
		t.verifyGuardTool,
		t.startTestTool,
		t.stopTestTool,
		t.cloneTool,
		t.getTaskTool,
		t.sweepTool,
		t.addMutatingTool,
	} {
		built, err := build()
		if err != nil {
			return nil, err
		}
		tools = append(tools, built)
	}
	return tools, nil
}

// definition is what a tool says of itself.
type definition struct {
	name        string // without the prefix
	title       string
	description string
	hints       mcp.ToolAnnotations
	// refine adds to the input schema what struct tags cannot say. May be nil.
	refine func(input *jsonschema.Schema)
	// unused are properties of the result, at any depth, that this tool never fills, though its library type has them.
	unused []string
	// untouched says what has not happened when a call fails before it began.
	untouched string
}

// hints are complete: a hint left out is taken for the worst by a client, and for an oversight by a reader.
func hints(readOnly, destructive, idempotent, openWorld bool) mcp.ToolAnnotations {
	return mcp.ToolAnnotations{
		ReadOnlyHint: readOnly, DestructiveHint: &destructive, IdempotentHint: idempotent, OpenWorldHint: &openWorld,
	}
}

// call is one call of a tool. It carries the request, so that a tool can look at what its client is able to do.
type call struct {
	request *mcp.CallToolRequest
	session *rewind.Session // tells the client of its stages
}

// clientName returns the name that the client gives itself, empty when it gives none.
func (c call) clientName() string {
	if info := c.request.ClientInfo(); info != nil {
		return info.Name
	}
	return ""
}

// define makes a tool of a function. Its error becomes a refusal; a *refused says itself which.
func define[In, Out any](t *toolset, d definition, run func(context.Context, call, In) (Out, error)) (tool, error) {
	input, err := schemaFor[In]()
	if err != nil {
		return tool{}, err
	}
	if d.refine != nil {
		d.refine(input)
	}
	resolved, err := input.Resolve(nil)
	if err != nil {
		return tool{}, fmt.Errorf("mcpadapter: input schema of %s: %w", d.name, err)
	}
	output, err := resultSchema[Out](d.unused)
	if err != nil {
		return tool{}, err
	}
	d.hints.Title = d.title
	attempt := func(ctx context.Context, request *mcp.CallToolRequest) (out Out, err error) {
		defer func() {
			if p := recover(); p != nil {
				t.logger.ErrorContext(ctx, "a tool panicked", "tool", d.name, "panic", p, "stack", string(debug.Stack()))
				err = errPanicked
			}
		}()
		var in In
		if err := decodeArguments(request.Params.Arguments, resolved, &in); err != nil {
			return out, &refused{refusalError{
				Code: codeInvalidArguments, Message: "The arguments were refused.", NotDone: d.untouched,
				NextStep: "Call again with the arguments put right.", Detail: err.Error(),
			}}
		}
		session, stop := t.watch(ctx, request, d.title)
		defer stop()
		return run(ctx, call{request, session}, in)
	}
	handle := func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		out, err := attempt(ctx, request)
		if question := (*needsAnswer)(nil); errors.As(err, &question) {
			return question.result(), nil
		}
		if err != nil {
			return t.refuse(ctx, err, d.untouched)
		}
		return answer(out)
	}
	return tool{
		Tool: &mcp.Tool{
			Name: t.name(d.name), Title: d.title, Description: d.description, Annotations: &d.hints,
			InputSchema: input, OutputSchema: output,
		},
		handle: handle,
	}, nil
}

var errPanicked = errors.New("it failed inside; the server's log has the details")

// readable escapes what cannot be seen in a JSON document, which says the same after it: a guest's name may be written in
// characters that hide, reorder or overwrite text for a person and yet are read by a model.
func readable(document []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(document) { // beyond ASCII there are only strings in it
		if r < utf8.RuneSelf || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// answer returns a result, in its own order of fields, as structured content and as text for clients without.
func answer(out any) (*mcp.CallToolResult, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // a file full of markup stays readable
	if err := encoder.Encode(out); err != nil {
		return nil, err
	}
	data := readable(bytes.TrimSpace(b.Bytes()))
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(data)}},
		StructuredContent: json.RawMessage(data),
	}, nil
}

// refuse returns a tool error. Its first text is for reading and is made of our words alone; all else is in the
// structured content, and in a second text that repeats it.
func (t *toolset) refuse(ctx context.Context, err error, untouched string) (*mcp.CallToolResult, error) {
	e := t.explain(ctx, err, untouched)
	result, err := answer(refusal{Error: e})
	if err != nil {
		return nil, err
	}
	words := &mcp.TextContent{Text: e.Message + " " + e.NotDone + " " + e.NextStep}
	result.Content = slices.Insert(result.Content, 0, mcp.Content(words))
	result.IsError = true
	return result, nil
}
