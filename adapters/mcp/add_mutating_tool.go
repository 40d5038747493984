package mcpadapter

import (
	"context"
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

const addMutatingName = "zerto_add_mutating_tool"

// AddMutating makes a tool mutating in the catalogue's file, for an agent, and returns whether that changed anything. It
// must be unable to make a tool laxer.
type AddMutating func(ctx context.Context, name catalog.Name, agent string) (changed bool, err error)

// WithAddMutating sets what an agent's word that a tool changes machines leads to. Without it, the tool for it refuses.
func WithAddMutating(add AddMutating) Option {
	return func(t *toolset) error { t.addMutating = add; return nil }
}

type addMutatingArgs struct {
	Server string `json:"server,omitempty" jsonschema:"key of the MCP server that offers the tool; leave out for a tool of the agent host itself, or when tool holds the full name"`
	Tool   string `json:"tool" jsonschema:"name of the tool"`
}

type addMutatingResult struct {
	Server   string        `json:"server"`
	Tool     string        `json:"tool"`
	Class    catalog.Class `json:"class" jsonschema:"what the tool is now"`
	Changed  bool          `json:"changed" jsonschema:"whether the catalogue was changed; false when it was as strict already"`
	NextStep string        `json:"nextStep"`
}

func (t *toolset) addMutatingTool() (tool, error) {
	const untouched = "The catalogue was not changed."
	return define(t, definition{
		name:  addMutatingName,
		title: "Have a tool guarded from now on",
		description: fmt.Sprintf("Records in the catalogue that a tool changes machines, so that from now on it needs a guard. Use it when you find that an unknown "+
			"tool changes something. It can make a tool only stricter: nothing makes one read_only but a human at a terminal. What a tool is now, %s says.",
			t.name(checkToolName)),
		hints:     hints(false, false, true, false),
		refine:    boundText("server", "tool"),
		untouched: untouched,
	}, func(ctx context.Context, c call, in addMutatingArgs) (addMutatingResult, error) {
		known, err := t.known()
		if err != nil {
			return addMutatingResult{}, err
		}
		name := catalog.Name{Server: in.Server, Tool: in.Tool}
		if in.Server == "" {
			name, _ = known.ParseToolName(in.Tool)
		}
		if t.addMutating == nil {
			return addMutatingResult{}, &refused{refusalError{
				Code: codeNeedsHuman, Message: "This server keeps no catalogue of its own.", NotDone: untouched,
				NextStep: "Tell the human, who can add the tool with: zerto-rewind catalog add-mutating.",
			}}
		}
		agent := t.agent
		if agent == "" {
			agent = c.clientName()
		}
		changed, err := t.addMutating(ctx, name, agent)
		if err != nil {
			return addMutatingResult{}, err
		}
		if known, err = t.known(); err != nil {
			return addMutatingResult{}, err
		}
		return addMutatingResult{
			Server: name.Server, Tool: name.Tool, Class: known.Classify(name).Class, Changed: changed,
			NextStep: fmt.Sprintf("Before the tool runs, call %s for the machine.", t.name(guardName)),
		}, nil
	})
}
