package proxyadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

const (
	methodCall       = "tools/call"
	methodList       = "tools/list"
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"
	methodProgress   = "notifications/progress"
	methodElicit     = "elicitation/create"
)

// The codes of JSON-RPC errors.
const (
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeServerEnded    = -32000
)

// message is one message of the host. It has an id, a method, or both.
type message struct {
	line   []byte
	id     string // as it stands on the wire, empty if there is none
	key    string // the id in the one spelling that all ways to write it have here
	method string
	params json.RawMessage
	isCall bool
}

// envelope lists the members that decide what a message is.
var envelope = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// parseMessage reads a message of the host, all of whose readers have to agree what it is. The message that it returns
// beside an error has the id to answer with, if one could be read.
func parseMessage(line []byte) (message, error) {
	m := message{line: line}
	if !utf8.Valid(line) {
		return m, errors.New("it is not valid UTF-8")
	}
	// In JSON it is a blank, but many a server reads its input as text, in which it ends a line: what stands between two of
	// them would be a message of its own.
	if bytes.ContainsRune(line, '\r') {
		return m, errors.New("it holds a carriage return, which some readers take for the end of a line")
	}
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		return m, errors.New("batches are not taken; send one message at a time")
	}
	members, err := gate.Members(line)
	if err != nil {
		return m, err
	}
	if id, ok := members["id"]; ok && string(id) != "null" {
		if m.key = idKey(id); m.key == "" {
			return m, errors.New("its id is neither text nor a whole number")
		}
		m.id = string(id)
	}
	if err := exactly(members, envelope); err != nil {
		return m, err
	}
	method, ok := members["method"]
	if !ok {
		return m, nil
	}
	if err := json.Unmarshal(method, &m.method); err != nil || m.method == "" {
		return m, errors.New("its method is not a name")
	}
	if strings.EqualFold(m.method, methodCall) && m.method != methodCall {
		return m, fmt.Errorf("the method has another case than %q", methodCall)
	}
	if strings.Contains(m.method, "\x00") {
		return m, errors.New("the method holds a NUL, at which some readers end it")
	}
	m.params, m.isCall = members["params"], m.method == methodCall
	return m, nil
}

// idKey returns the one spelling of an id, or "" for what is none: a server may answer "a" to what was asked as "\u0061".
func idKey(id json.RawMessage) string {
	if len(id) > 0 && id[0] == '"' {
		var text string
		if gate.HasLoneSurrogate(id) || json.Unmarshal(id, &text) != nil {
			return ""
		}
		return string(encode(text))
	}
	if digits := bytes.TrimPrefix(id, []byte("-")); len(digits) == 0 || len(bytes.Trim(digits, "0123456789")) > 0 {
		return ""
	}
	return string(id)
}

// exactly refuses names that a reader which ignores case would take for one of those that matter.
func exactly(members map[string]json.RawMessage, names []string) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, known := range names {
			if name != known && strings.EqualFold(name, known) {
				return fmt.Errorf("the name %.40q has another case than %q", name, known)
			}
		}
	}
	return nil
}

// toolCall is what a call asks for.
type toolCall struct {
	name string
	args map[string]any
	// state and responses belong to a question that was asked in an earlier round of the call.
	state     string
	responses map[string]json.RawMessage
	meta      requestMeta
}

// requestMeta is what a client tells with a request (mcp 2).
type requestMeta struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Protocol      string          `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities  *capabilities   `json:"io.modelcontextprotocol/clientCapabilities"`
}

// modernEra is the first protocol version in which servers send no requests to clients.
const modernEra = "2026-07-28"

func (m requestMeta) modern() bool { return m.Protocol >= modernEra }

type capabilities struct {
	Elicitation *struct {
		Form json.RawMessage `json:"form"`
		URL  json.RawMessage `json:"url"`
	} `json:"elicitation"`
}

// canAsk reports whether a client shows forms (mcp 1.6).
func (c *capabilities) canAsk() bool {
	return c != nil && c.Elicitation != nil && (len(c.Elicitation.Form) > 0 || len(c.Elicitation.URL) == 0)
}

// parseCall reads the parameters of a call.
func parseCall(params json.RawMessage) (toolCall, error) {
	var c toolCall
	if gate.HasLoneSurrogate(params) {
		return c, errors.New("they hold half of a character")
	}
	members, err := gate.Members(params)
	if err != nil {
		return c, err
	}
	if err := exactly(members, []string{"name", "arguments", "_meta", "inputResponses", "requestState", "task"}); err != nil {
		return c, err
	}
	if err := json.Unmarshal(members["name"], &c.name); err != nil || c.name == "" {
		return c, errors.New("they name no tool")
	}
	c.args = map[string]any{}
	if text, ok := members["arguments"]; ok && string(text) != "null" {
		if c.args, err = gate.Arguments(text); err != nil {
			return c, fmt.Errorf("the arguments: %w", err)
		}
	}
	if text, ok := members["_meta"]; ok {
		if _, err := gate.Members(text); err != nil {
			return c, fmt.Errorf("_meta: %w", err)
		}
		if err := json.Unmarshal(text, &c.meta); err != nil {
			return c, errors.New("_meta is not what it has to be")
		}
	}
	if text, ok := members["requestState"]; ok {
		if err := json.Unmarshal(text, &c.state); err != nil {
			return c, errors.New("requestState is not text")
		}
	}
	if text, ok := members["inputResponses"]; ok {
		if c.responses, err = gate.Members(text); err != nil {
			return c, fmt.Errorf("inputResponses: %w", err)
		}
	}
	return c, nil
}

// without returns a message whose parameters lack some members. All other values keep their bytes.
func (m message) without(names ...string) ([]byte, error) {
	params, err := rebuild(m.params, func(name string, value json.RawMessage) json.RawMessage {
		if slices.Contains(names, name) {
			return nil
		}
		return value
	})
	if err != nil {
		return nil, err
	}
	return rebuild(m.line, func(name string, value json.RawMessage) json.RawMessage {
		if name == "params" {
			return params
		}
		return value
	})
}

// rebuild writes a JSON object again with other values for some of its members, or none where change returns nil. It
// keeps their order.
func rebuild(object []byte, change func(name string, value json.RawMessage) json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	out := []byte{'{'}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("it is not JSON")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if value = change(name, value); value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	return append(out, '}'), nil
}
