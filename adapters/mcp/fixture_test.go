//go:build instruments

//nolint:staticcheck // the suite still looks for what the protocol has deprecated: sampling, roots and logging
package mcpadapter_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the conformance suite looks for at any server, by the names it looks for: github.com/modelcontextprotocol/conformance.

// addFixtures puts everything that the suite calls, gets and reads beside what the server has.
func addFixtures(server *mcp.Server) {
	for name, content := range constantTools() {
		addTool(server, name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	for name, q := range questions() {
		addTool(server, name, q.call)
	}
	addTool(server, "test_error_handling", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result := &mcp.CallToolResult{}
		result.SetError(fmt.Errorf("this tool always fails"))
		return result, nil
	})
	addTool(server, "test_tool_with_progress", reportProgress)
	addTool(server, "test_tool_with_logging", logThrice)
	addTool(server, "test_logging_tool", logThrice)
	addTool(server, "test_reconnection", closeStream)
	addTool(server, "test_missing_capability", needSampling)
	addTool(server, "test_input_required_result_capabilities", askWhatTheClientCan)
	addTool(server, "test_trigger_tool_change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addTool(server, "transient", nil)
		return said("the list of tools has changed"), nil
	})
	addTool(server, "test_trigger_prompt_change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		server.AddPrompt(&mcp.Prompt{Name: "transient"}, nil)
		return said("the list of prompts has changed"), nil
	})
	addPrompts(server)
	addResources(server)
}

// schemas are the input schemas of the fixture tools that need one of their own.
var schemas = map[string]string{
	"test_elicitation":  `{"type":"object","properties":{"message":{"type":"string"}}}`,
	"test_sampling":     `{"type":"object","properties":{"prompt":{"type":"string"}}}`,
	"test_x_mcp_header": `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
	"json_schema_2020_12_tool": `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]},
		"additionalProperties": false
	}`,
}

func addTool(server *mcp.Server, name string, handle mcp.ToolHandler) {
	schema, ok := schemas[name]
	if !ok {
		schema = `{"type":"object"}`
	}
	server.AddTool(&mcp.Tool{Name: name, Description: "fixture", InputSchema: json.RawMessage(schema)}, handle)
}

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func constantTools() map[string][]mcp.Content {
	text := func(s string) mcp.Content { return &mcp.TextContent{Text: s} }
	resource := func(uri string) mcp.Content {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "embedded"}}
	}
	image := &mcp.ImageContent{Data: pixel(), MIMEType: "image/png"}
	return map[string][]mcp.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {image},
		"test_audio_content":          {&mcp.AudioContent{Data: []byte("RIFF\x04\x00\x00\x00WAVE"), MIMEType: "audio/wav"}},
		"test_embedded_resource":      {resource("test://embedded-resource")},
		"test_multiple_content_types": {text("several"), image, resource("test://mixed-content-resource")},
		"json_schema_2020_12_tool":    {text("called")},
		"test_x_mcp_header":           {text("called")},
		"test_streaming_elicitation":  {text("nothing but this result was sent")},
	}
}

// pixel is a PNG of one pixel.
func pixel() []byte {
	data, err := base64.StdEncoding.DecodeString(
		"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	if err != nil {
		panic(err)
	}
	return data
}

// pause keeps what is told on the way apart from the result: bridges lose what comes in one breath with it.
const pause = 50 * time.Millisecond

func reportProgress(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, percent := range []float64{0, 50, 100} {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: percent, Total: 100}); err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return said(fmt.Sprint(token)), nil
}

// closeStream has the client come back for its result.
func closeStream(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if r.Extra != nil && r.Extra.CloseSSEStream != nil {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: pause})
	}
	return said("here again"), nil
}

func logThrice(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, line := range []string{"begun", "going on", "done"} {
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
			return nil, err
		}
	}
	return said("logged"), nil
}

func needSampling(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
		return said("the client can sample"), nil
	}
	return nil, &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample",
		Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
	}
}

// question is a tool that asks the client for something, as our own do, and tells what came of it.
type question struct {
	// rounds are what is asked, one after the other, each with the state that goes along.
	rounds []round
	// sealed has the tool refuse a state that it did not give out.
	sealed bool
	// told is what a call says in the end.
	told func(mcp.InputResponseMap) string
}

type round struct {
	state string
	asks  mcp.InputRequestMap
}

func (q question) call(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	state, answers := r.Params.RequestState, r.Params.InputResponses
	asked := -1
	for i, round := range q.rounds {
		if state == round.state && (state != "" || answers != nil) {
			asked = i
		}
	}
	switch {
	case asked < 0 && q.sealed && state != "":
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state is not one that was given out"}
	case asked >= 0 && !answered(q.rounds[asked].asks, answers):
		asked-- // the same again
	}
	if asked+1 < len(q.rounds) {
		next := q.rounds[asked+1]
		return &mcp.CallToolResult{InputRequests: next.asks, RequestState: next.state}, nil
	}
	return said(q.told(answers)), nil
}

// answered reports whether every question has an answer of its own kind that can be used.
func answered(asks mcp.InputRequestMap, answers mcp.InputResponseMap) bool {
	for key, ask := range asks {
		var ok bool
		switch a := answers[key].(type) {
		case *mcp.ElicitResult:
			form, isForm := ask.(*mcp.ElicitParams)
			ok = isForm && (a.Action != "accept" || complete(form, a.Content))
		case *mcp.CreateMessageWithToolsResult:
			_, ok = ask.(*mcp.CreateMessageParams)
		case *mcp.ListRootsResult:
			_, ok = ask.(*mcp.ListRootsParams)
		}
		if !ok {
			return false
		}
	}
	return true
}

func complete(form *mcp.ElicitParams, content map[string]any) bool {
	schema, ok := form.RequestedSchema.(*jsonschema.Schema)
	if !ok {
		return true
	}
	resolved, err := schema.Resolve(nil)
	return err == nil && resolved.Validate(content) == nil
}

// form asks for one required value.
func form(field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "Please enter: " + field, RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{field: {Type: kind}}, Required: []string{field},
	}}
}

func rawForm(properties string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "Please fill in", RequestedSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)}
}

func sample(text string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}

func questions() map[string]question {
	// once asks everything in one round.
	once := func(asks mcp.InputRequestMap) question { return question{rounds: []round{{"", asks}}, told: tell} }
	confirm := question{
		rounds: []round{{"given out", mcp.InputRequestMap{"confirm": form("ok", "boolean")}}}, sealed: true,
		told: func(mcp.InputResponseMap) string { return "state-ok" },
	}
	return map[string]question{
		"test_elicitation": once(mcp.InputRequestMap{"answer": form("username", "string")}),
		"test_elicitation_sep1034_defaults": once(mcp.InputRequestMap{"answer": rawForm(`{
			"name": {"type": "string", "default": "John Doe"},
			"age": {"type": "integer", "default": 30},
			"score": {"type": "number", "default": 95.5},
			"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
			"verified": {"type": "boolean", "default": true}
		}`)}),
		"test_elicitation_sep1330_enums": once(mcp.InputRequestMap{"answer": rawForm(`{
			"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [
				{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
			"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
				{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]}}
		}`)}),
		"test_sampling":                             once(mcp.InputRequestMap{"answer": sample("What is the capital of France?")}),
		"test_input_required_result_elicitation":    once(mcp.InputRequestMap{"user_name": form("name", "string")}),
		"test_input_required_result_sampling":       once(mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")}),
		"test_input_required_result_list_roots":     once(mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}),
		"test_input_required_result_request_state":  confirm,
		"test_input_required_result_tampered_state": confirm,
		"test_input_required_result_multiple_inputs": {
			rounds: []round{{"several", mcp.InputRequestMap{
				"user_name": form("name", "string"), "greeting": sample("Say hello"), "client_roots": &mcp.ListRootsParams{},
			}}},
			told: tell,
		},
		"test_input_required_result_multi_round": {
			rounds: []round{
				{"first", mcp.InputRequestMap{"step1": form("name", "string")}},
				{"second", mcp.InputRequestMap{"step2": form("color", "string")}},
			},
			told: tell,
		},
	}
}

// tell says in words what was answered.
func tell(answers mcp.InputResponseMap) string {
	var b strings.Builder
	for key, answer := range answers {
		switch a := answer.(type) {
		case *mcp.ElicitResult:
			fmt.Fprintf(&b, "%s: action=%s, content=%v\n", key, a.Action, a.Content)
		case *mcp.CreateMessageWithToolsResult:
			for _, c := range a.Content {
				if text, ok := c.(*mcp.TextContent); ok {
					fmt.Fprintf(&b, "%s: %s\n", key, text.Text)
				}
			}
		case *mcp.ListRootsResult:
			fmt.Fprintf(&b, "%s: %d roots\n", key, len(a.Roots))
		}
	}
	return b.String()
}

func askWhatTheClientCan(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	asks := mcp.InputRequestMap{}
	if can := r.ClientCapabilities(); can != nil {
		if can.Elicitation != nil {
			asks["user_name"] = form("name", "string")
		}
		if can.Sampling != nil {
			asks["greeting"] = sample("Say hello")
		}
		if can.RootsV2 != nil {
			asks["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(asks) == 0 || len(r.Params.InputResponses) > 0 {
		return said("nothing to ask"), nil
	}
	return &mcp.CallToolResult{InputRequests: asks}, nil
}

func addPrompts(server *mcp.Server) {
	message := func(c mcp.Content) *mcp.PromptMessage { return &mcp.PromptMessage{Role: "user", Content: c} }
	add := func(name string, arguments []string, messages func(map[string]string) []*mcp.PromptMessage) {
		p := &mcp.Prompt{Name: name, Description: "fixture"}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: "fixture", Required: true})
		}
		server.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: messages(r.Params.Arguments)}, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{message(&mcp.TextContent{Text: "This is a simple prompt for testing."})}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{message(&mcp.TextContent{Text: fmt.Sprintf("arg1='%s', arg2='%s'", a["arg1"], a["arg2"])})}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{
			message(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "embedded"}}),
			message(&mcp.TextContent{Text: "Please read the resource."}),
		}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []*mcp.PromptMessage {
		return []*mcp.PromptMessage{
			message(&mcp.ImageContent{Data: pixel(), MIMEType: "image/png"}), message(&mcp.TextContent{Text: "Please look at the image."}),
		}
	})
	asks := mcp.InputRequestMap{"user_context": form("context", "string")}
	server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "fixture"},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if !answered(asks, r.Params.InputResponses) {
				return &mcp.GetPromptResult{InputRequests: asks}, nil
			}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message(&mcp.TextContent{Text: tell(r.Params.InputResponses)})}}, nil
		})
}

func addResources(server *mcp.Server) {
	read := func(content func(uri string) mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			c := content(r.Params.URI)
			c.URI = r.Params.URI
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
		}
	}
	text := read(func(string) mcp.ResourceContents { return mcp.ResourceContents{MIMEType: "text/plain", Text: "a text"} })
	server.AddResource(&mcp.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain", Description: "fixture"}, text)
	server.AddResource(&mcp.Resource{Name: "watched-resource", URI: "test://watched-resource", MIMEType: "text/plain", Description: "fixture"}, text)
	server.AddResource(&mcp.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png", Description: "fixture"},
		read(func(string) mcp.ResourceContents { return mcp.ResourceContents{MIMEType: "image/png", Blob: pixel()} }))
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json", Description: "fixture",
	}, read(func(uri string) mcp.ResourceContents {
		id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
		return mcp.ResourceContents{MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"data":"of %[1]s"}`, id)}
	}))
}
