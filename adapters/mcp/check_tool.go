package mcpadapter

import (
	"context"
	"fmt"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const checkToolName = "zerto_check_tool"

type checkToolArgs struct {
	Server string         `json:"server,omitempty" jsonschema:"key of the MCP server that offers the tool; leave out for a tool of the agent host itself, or when tool holds the full name"`
	Tool   string         `json:"tool" jsonschema:"name of the tool, such as: stop_vm"`
	VM     string         `json:"vm,omitempty" jsonschema:"the VM that the call is about, for the wording of what to do next"`
	Args   map[string]any `json:"args,omitempty" jsonschema:"the arguments of the call, where what a tool does depends on them"`
}

type checkToolResult struct {
	Server string        `json:"server"`
	Tool   string        `json:"tool"`
	Class  catalog.Class `json:"class" jsonschema:"read_only, mutating or unknown; unknown does not mean safe"`
	// MayRun is the catalogue's word for a tool that needs neither a guard nor a human, or the human's.
	MayRun   bool        `json:"mayRun" jsonschema:"whether the tool may run now, without a guard"`
	Reason   string      `json:"reason"`
	Question string      `json:"question" jsonschema:"put this to the human word for word; empty when nobody has to be asked, or they were"`
	Answer   gate.Choice `json:"answer" jsonschema:"what the human answered through this client: checkpoint, run or refuse; empty when they were not asked"`
	NextStep string      `json:"nextStep"`
}

func (t *toolset) checkTool() (tool, error) {
	return define(t, definition{
		name:  checkToolName,
		title: "Check whether a tool changes machines",
		description: fmt.Sprintf("Says of a tool of any server whether it is read_only, mutating or unknown. Use it before you call a tool that might "+
			"change a virtual machine. For mutating call %s next. Unknown does not mean safe: the human is asked where this client can, and "+
			"otherwise put the question in the result to them, word for word, and wait for the answer. Runs nothing.", t.name(guardName)),
		hints:     hints(true, false, true, false),
		refine:    boundText("server", "tool", "vm"),
		untouched: "The tool was not checked. Do not take it for safe.",
	}, t.check)
}

func (t *toolset) check(ctx context.Context, c call, in checkToolArgs) (checkToolResult, error) {
	known, err := t.known()
	if err != nil {
		return checkToolResult{}, err
	}
	name := catalog.Name{Server: in.Server, Tool: in.Tool}
	if in.Server == "" {
		name, _ = known.ParseToolName(in.Tool)
	}
	verdict := known.ClassifyCall(name, in.Args)
	r := checkToolResult{
		Server: name.Server, Tool: name.Tool, Class: verdict.Class, MayRun: verdict.Safe(), Reason: verdict.Reason,
	}
	switch {
	case r.MayRun:
		r.NextStep = "The tool may run without a guard."
		return r, nil
	case verdict.Class == catalog.Mutating && verdict.Kind != catalog.Undo:
		r.NextStep = fmt.Sprintf("Call %s for the machine and wait for it to succeed; then run the tool.", t.name(guardName))
		return r, nil
	case c.canAsk():
		return t.checkWithHuman(ctx, c, r, name, in, verdict.Kind == catalog.Undo)
	}
	if verdict.Kind == catalog.Undo {
		r.Question = fmt.Sprintf("I want to call the tool %s%s. It deletes recovery points or rolls back to one, which cannot be taken back. May I run it?",
			quoteTool(name), onMachine(in.VM))
		r.NextStep = "Put the question to the human, word for word. Do not run the tool before the human has said yes."
		return r, nil
	}
	r.Question = fmt.Sprintf("I want to call the tool %s%s. The catalogue does not know whether it changes anything. "+
		"Shall I (a) guard the machine first and then run it, (b) run it without a guard because you know that it only reads, or (c) not run it?",
		quoteTool(name), onMachine(in.VM))
	r.NextStep = fmt.Sprintf("Unknown does not mean safe. Put the question to the human, word for word, and do not run the tool before the answer. For (a) call %s first.",
		t.name(guardName))
	return r, nil
}

// checkWithHuman has the client put the question to a person.
func (t *toolset) checkWithHuman(ctx context.Context, c call, r checkToolResult, name catalog.Name, in checkToolArgs, undo bool) (checkToolResult, error) {
	const untouched = "The tool is not cleared. Do not run it."
	choices := []gate.Choice{gate.CheckpointFirst, gate.RunUnguarded, gate.DoNotRun}
	message := fmt.Sprintf("Nobody has classified %s, which an agent wants to call%s. Checkpoint the machine first?", quoteTool(name), onMachine(in.VM))
	if undo {
		choices = choices[1:]
		message = fmt.Sprintf("An agent wants to call %s%s. It deletes recovery points or rolls back to one, which cannot be taken back.",
			quoteTool(name), onMachine(in.VM))
	}
	said, err := t.ask(c, checkToolName, "", choiceForm(message, choices), "answer", untouched)
	if err != nil {
		return checkToolResult{}, err
	}
	answer := gate.Choice(said)
	if !slices.Contains(choices, answer) {
		return checkToolResult{}, errNoSuchAnswer
	}
	if answer != gate.DoNotRun {
		if err := t.record(ctx, HumanAnswer{
			Tool: checkToolName, Server: name.Server, CalledTool: name.Tool, Args: in.Args, VM: in.VM, Answer: said,
		}, untouched); err != nil {
			return checkToolResult{}, err
		}
	}
	r.Answer = answer
	switch answer {
	case gate.CheckpointFirst:
		r.NextStep = fmt.Sprintf("The human wants a checkpoint first. Call %s for the machine and wait for it to succeed; then run the tool, once.", t.name(guardName))
	case gate.RunUnguarded:
		r.MayRun = true
		r.NextStep = "The human lets this one call run without a guard. Zerto cannot take it back."
	default:
		r.NextStep = "The human refused. Do not run the tool, and do not look for another way to the same end."
	}
	return r, nil
}

// quoteTool quotes what a call named, so that it cannot pass for a part of the sentence around it.
func quoteTool(n catalog.Name) string {
	if n.Server == "" {
		return fmt.Sprintf("%q", n.Tool)
	}
	return fmt.Sprintf("%q of the server %q", n.Tool, n.Server)
}

func onMachine(vm string) string {
	if vm == "" {
		return ""
	}
	return fmt.Sprintf(" on the machine %q", vm)
}
