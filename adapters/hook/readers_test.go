package hookadapter_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// What a host does after a run, at its worst where its versions or programs differ.
type outcome string

const (
	blocked  outcome = "blocked"
	asked    outcome = "asked"
	proceeds outcome = "proceeds"
)

// oneObject reads text that is exactly one JSON object, with no member besides those of into.
func oneObject(text string, into any) bool {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	return strings.HasPrefix(text, "{") && decoder.Decode(into) == nil && !decoder.More()
}

// anyBlock also takes the form that serves Cline. A host whose stdout beats the exit code finds a refusal there (hooks 3
// 11, 2.1).
func anyBlock(r ran) bool {
	var said struct{ Decision, Reason string }
	inBoth := json.Unmarshal([]byte(r.stdout), &said) == nil && said.Decision == "block" && strings.TrimSpace(said.Reason) != ""
	return plainBlock(r) || inBoth && r.exitCode == 2 && strings.TrimSpace(r.stderr) != ""
}

// plainBlock is the form that all versions of all hosts but Cline take for a block (hooks 3, 7, 11 and 31).
func plainBlock(r ran) bool {
	return r.exitCode == 2 && r.stdout == "" && strings.TrimSpace(r.stderr) != ""
}

type claudeOutput struct {
	Output struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	} `json:"hookSpecificOutput"`
}

// claudeSays returns the decision in an answer of Claude Code's form, "" if there is none that all versions read.
func claudeSays(r ran) string {
	var said claudeOutput
	if r.exitCode != 0 || r.stderr != "" || !oneObject(r.stdout, &said) ||
		said.Output.Event != "PreToolUse" || strings.TrimSpace(said.Output.Reason) == "" {
		return ""
	}
	return said.Output.Decision
}

// claudeReads puts a question outside of the modes that ask down as answered with yes (hooks 1.5 to 1.7).
func claudeReads(r ran, mode string) outcome {
	switch said := claudeSays(r); {
	case anyBlock(r), said == "deny":
		return blocked
	case said == "ask" && slices.Contains([]string{"default", "acceptEdits", "plan"}, mode):
		return asked
	}
	return proceeds
}

// codexReads takes every answer but a denial for none (hooks 2.1).
func codexReads(r ran, _ string) outcome {
	if anyBlock(r) || claudeSays(r) == "deny" {
		return blocked
	}
	return proceeds
}

// cursorReads takes a question for one only where it is enforced (hooks 2.2).
func cursorReads(enforcesAsk bool) func(ran, string) outcome {
	return func(r ran, _ string) outcome {
		var said struct {
			Permission string `json:"permission"`
			User       string `json:"user_message"`
			Agent      string `json:"agent_message"`
		}
		understood := r.exitCode == 0 && oneObject(r.stdout, &said)
		told := strings.TrimSpace(said.User) != "" && strings.TrimSpace(said.Agent) != ""
		switch {
		case r.exitCode == 2, understood && told && said.Permission == "deny":
			return blocked
		case understood && told && said.Permission == "ask" && enforcesAsk:
			return asked
		}
		return proceeds
	}
}

// geminiReads reads JSON from stdout, else from stderr, whatever the exit code (hooks 2.3).
func geminiReads(r ran, _ string) outcome {
	text := strings.TrimSpace(r.stdout)
	if text == "" {
		text = strings.TrimSpace(r.stderr)
	}
	var said struct{ Decision, Reason string }
	switch {
	case json.Unmarshal([]byte(text), &said) != nil:
		if r.exitCode >= 2 && text != "" {
			return blocked
		}
	case said.Decision == "deny" || said.Decision == "block":
		return blocked
	case said.Decision == "ask":
		return asked
	}
	return proceeds
}

// copilotReads is the app where a question is concerned, which lets the call run (hooks 2.4, 3 34).
func copilotReads(r ran, _ string) outcome {
	var said struct {
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	if r.exitCode != 0 || oneObject(r.stdout, &said) && said.Decision == "deny" && said.Reason != "" {
		return blocked
	}
	return proceeds
}

// vsCodeReads is VS Code's own agent (hooks 2.5).
func vsCodeReads(r ran, _ string) outcome {
	switch said := claudeSays(r); {
	case r.exitCode == 2, said == "deny":
		return blocked
	case said == "ask":
		return asked
	}
	return proceeds
}

// eitherReads is the laxer of two hosts that send one payload.
func eitherReads(r ran, mode string) outcome {
	if one := copilotReads(r, mode); one != blocked {
		return one
	}
	return vsCodeReads(r, mode)
}

// windsurfReads is Windsurf Cascade (hooks 2.6).
func windsurfReads(r ran, _ string) outcome {
	if r.exitCode == 2 {
		return blocked
	}
	return proceeds
}

// clineReads reads stdout alone, and acts on nothing in it but cancel (hooks 2.7).
func clineReads(r ran, _ string) outcome {
	var said struct{ Cancel bool }
	if json.Unmarshal([]byte(r.stdout), &said) == nil && said.Cancel {
		return blocked
	}
	return proceeds
}

func expect(t *testing.T, behaviour string, r ran, mode string, want outcome) {
	t.Helper()
	if got := claudeReads(r, mode); got != want {
		t.Errorf("%s: Claude reads %q from %+v, want %q", behaviour, got, r, want)
	}
	expectForm(t, behaviour, r)
}

// expectForm checks what holds of every answer to every host: JSON at exit 0, or a block with a reason, never both, but
// for the block that Cline reads too.
func expectForm(t *testing.T, behaviour string, r ran) {
	t.Helper()
	mixed := r.stdout != "" && (r.stderr != "" || r.exitCode != 0)
	switch {
	case r.exitCode != 0 && r.exitCode != 2:
		t.Errorf("%s: exit %d, after which most hosts let the tool run", behaviour, r.exitCode)
	case r.exitCode == 2 && strings.TrimSpace(r.stderr) == "":
		t.Errorf("%s: a block without a reason, after which Codex lets the tool run", behaviour)
	case mixed && clineReads(r, "") != blocked:
		t.Errorf("%s: mixed output %+v", behaviour, r)
	case r.stdout != "" && (!strings.HasPrefix(r.stdout, "{") || strings.Count(r.stdout, "\n") != 1 || !strings.HasSuffix(r.stdout, "}\n")):
		t.Errorf("%s: stdout %q is not one line of JSON", behaviour, r.stdout)
	}
}
