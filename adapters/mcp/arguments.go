package mcpadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// decodeArguments reads the arguments of a call, strictly: an unknown name, one given twice or in another case, and a
// value of another type are refused, since whoever judged the call before may have read it otherwise. Null means that
// the argument was not given.
func decodeArguments(raw json.RawMessage, schema *jsonschema.Resolved, into any) error {
	fields, err := topLevel(raw)
	if err != nil {
		return err
	}
	valid := schema.Schema().PropertyOrder
	values := map[string]any{}
	for name, field := range fields {
		if !slices.Contains(valid, name) {
			return fmt.Errorf("there is no argument %q; the arguments are: %s", name, strings.Join(valid, ", "))
		}
		if string(field) == "null" {
			delete(fields, name)
			continue
		}
		var value any
		if err := json.Unmarshal(field, &value); err != nil {
			return fmt.Errorf("argument %q: %w", name, err)
		}
		values[name] = value
	}
	for _, name := range schema.Schema().Required {
		if _, given := values[name]; !given {
			return fmt.Errorf("the argument %q is missing; the arguments are: %s", name, strings.Join(valid, ", "))
		}
	}
	if err := schema.Validate(values); err != nil {
		return err
	}
	clean, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(clean, into)
}

// topLevel takes an object apart. An absent one is empty.
func topLevel(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return fields, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, errors.New("the arguments are not a JSON object")
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		name, _ := token.(string) // the decoder lets nothing else be a key
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the argument %q is given twice", name)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		fields[name] = value
	}
	return fields, nil
}
