package hookadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// payload is a JSON object that a host sends. Unknown members are the normal case: hosts add them often.
type payload struct{ fields map[string]json.RawMessage }

func parsePayload(text []byte) (*payload, error) {
	fields, err := gate.Members(text)
	if err != nil {
		return nil, err
	}
	return &payload{fields}, nil
}

// within returns the object that a member holds.
func (p *payload) within(name string) (*payload, error) {
	inner, err := parsePayload(p.fields[name])
	if err != nil {
		return nil, errors.New("the payload's " + name + " could not be read: " + err.Error())
	}
	return inner, nil
}

// text returns a member that is text, and "" for any other.
func (p *payload) text(name string) string {
	var text string
	if json.Unmarshal(p.fields[name], &text) != nil {
		return ""
	}
	return text
}

func (p *payload) has(name string) bool {
	_, ok := p.fields[name]
	return ok
}

// commandInput is the input of a shell tool, of a member that holds the command line alone.
func (p *payload) commandInput(member string) (json.RawMessage, error) {
	if p.text(member) == "" {
		return nil, errors.New("the payload holds no command line, so the call did not run")
	}
	return slices.Concat([]byte(`{"command":`), p.fields[member], []byte(`}`)), nil
}

// arguments decodes a tool's arguments, which some hosts write as a text that holds JSON.
func arguments(input json.RawMessage) (map[string]any, error) {
	text := bytes.TrimSpace(input)
	if len(text) > 0 && text[0] == '"' {
		if gate.HasLoneSurrogate(text) {
			return nil, errors.New("it holds half of a character")
		}
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return nil, errors.New("it is not JSON")
		}
		text = []byte(inner)
	}
	return gate.Arguments(text)
}
