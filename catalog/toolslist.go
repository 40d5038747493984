package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// ToolsList is what an MCP server answers to tools/list, or a part of it.
type ToolsList struct {
	Tools []Definition
	More  bool // the server has further pages
}

// ParseToolsList reads such an answer: the result, a whole JSON-RPC response with it, or just the list of tools. It fails
// when a key is given twice anywhere, when two tools have one name, and when a part is not what MCP says it is: a
// definition that two programs may read in two ways is none.
func ParseToolsList(data []byte) (*ToolsList, error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if !utf8.Valid(data) {
		return nil, errors.New("a list of tools is JSON in UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	value, err := strictValue(d, 0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	list := &ToolsList{}
	if response, ok := value.(map[string]any); ok {
		if result, ok := response["result"].(map[string]any); ok {
			response = result
		}
		cursor, _ := response["nextCursor"].(string)
		value, list.More = response["tools"], cursor != ""
	}
	tools, ok := value.([]any)
	if !ok {
		return nil, errors.New(`no list of tools: want {"tools": [...]} as tools/list answers`)
	}
	seen := map[string]bool{}
	for i, value := range tools {
		tool, err := definitionOf(value)
		if err == nil && seen[tool.Name] {
			err = fmt.Errorf("%q is defined twice", tool.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i+1, err)
		}
		seen[tool.Name] = true
		list.Tools = append(list.Tools, tool)
	}
	return list, nil
}

func definitionOf(value any) (Definition, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return Definition{}, errors.New("not an object")
	}
	var d Definition
	for key, to := range map[string]*string{"name": &d.Name, "description": &d.Description} {
		switch text := object[key].(type) {
		case string:
			*to = text
		case nil:
		default:
			return Definition{}, fmt.Errorf("%q is not text", key)
		}
	}
	if d.Name == "" {
		return Definition{}, errors.New("no name")
	}
	for key, to := range map[string]*json.RawMessage{
		"inputSchema": &d.InputSchema, "outputSchema": &d.OutputSchema, "annotations": &d.Annotations,
	} {
		if object[key] == nil {
			continue
		}
		if _, ok := object[key].(map[string]any); !ok {
			return Definition{}, fmt.Errorf("%q is not an object", key)
		}
		text, err := json.Marshal(object[key])
		if err != nil {
			return Definition{}, err
		}
		*to = text
	}
	return d, nil
}

// Arguments returns the names of the tool's arguments as its input schema lists them, sorted.
func (d Definition) Arguments() []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(d.InputSchema, &schema) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}
