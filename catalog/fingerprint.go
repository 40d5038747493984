package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Definition is a tool as its MCP server describes it in tools/list. The JSON parts may be nil.
type Definition struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// Fingerprint tells two definitions of a tool apart, and in which parts they differ. Each part is the SHA-256 of that
// part in lower-case hex; of a part that a definition lacks, or that is null, it is that of nothing.
type Fingerprint struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	InputSchema  string `json:"inputSchema"`
	OutputSchema string `json:"outputSchema"`
	Annotations  string `json:"annotations"`
}

// Fingerprint returns the definition's fingerprint. Blanks between tokens, the order of an object's keys and the way a
// character is escaped make no difference to it; the spelling of a number does. It fails when a part is not one valid
// JSON document, or gives a key twice, since then two readers may find two definitions in it.
func (d Definition) Fingerprint() (Fingerprint, error) {
	var problems []error
	hash := func(part string, text json.RawMessage) string {
		canonical, err := canonicalJSON(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", part, err))
		}
		return sum(canonical)
	}
	if !utf8.ValidString(d.Name + d.Description) {
		problems = append(problems, errors.New("name or description is not UTF-8"))
	}
	f := Fingerprint{
		Name: sum([]byte(d.Name)), Description: sum([]byte(d.Description)),
		InputSchema:  hash("input schema", d.InputSchema),
		OutputSchema: hash("output schema", d.OutputSchema),
		Annotations:  hash("annotations", d.Annotations),
	}
	if len(problems) > 0 {
		return Fingerprint{}, errors.Join(problems...)
	}
	return f, nil
}

// Changed returns in words the parts in which the two differ: none when they are equal.
func (f Fingerprint) Changed(other Fingerprint) []string {
	var parts []string
	for _, part := range []struct{ name, one, other string }{
		{"name", f.Name, other.Name},
		{"description", f.Description, other.Description},
		{"input schema", f.InputSchema, other.InputSchema},
		{"output schema", f.OutputSchema, other.OutputSchema},
		{"annotations", f.Annotations, other.Annotations},
	} {
		if part.one != part.other {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// String returns one SHA-256 over all parts, in hex after "sha256:".
func (f Fingerprint) String() string {
	return "sha256:" + sum([]byte(strings.Join([]string{f.Name, f.Description, f.InputSchema, f.OutputSchema, f.Annotations}, "\n")))
}

func (f Fingerprint) check() error {
	for _, part := range []string{f.Name, f.Description, f.InputSchema, f.OutputSchema, f.Annotations} {
		if len(part) != hex.EncodedLen(sha256.Size) || strings.Trim(part, "0123456789abcdef") != "" {
			return errors.New("each part of a fingerprint is a SHA-256 in lower-case hex, and all five are needed")
		}
	}
	return nil
}

// Hints are what a tool says of itself. They are claims of its server, and nil where it makes none.
type Hints struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
}

// Hints reads the annotations. What is not of the form that MCP gives them is no hint.
func (d Definition) Hints() Hints {
	var h Hints
	if json.Unmarshal(d.Annotations, &h) != nil {
		return Hints{}
	}
	return h
}

// DeniesReadOnly reports whether the tool says of itself that it may change something.
func (d Definition) DeniesReadOnly() bool {
	h := d.Hints()
	return h.ReadOnly != nil && !*h.ReadOnly || h.Destructive != nil && *h.Destructive
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// canonicalJSON returns one spelling for all that mean the same, and nothing for nothing and null.
func canonicalJSON(text json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	value, err := strictValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	if value == nil {
		return nil, nil
	}
	return json.Marshal(value) // sorts keys
}

const maxSchemaNesting = 200

// strictValue reads one value as [json.Unmarshal] does, but refuses a key that is given twice.
func strictValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	open, isOpen := token.(json.Delim)
	if !isOpen {
		return token, nil
	}
	if depth == maxSchemaNesting {
		return nil, errors.New("nested too deep")
	}
	object, list := map[string]any{}, []any{}
	for d.More() {
		if open == '[' {
			item, err := strictValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
			continue
		}
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if _, taken := object[key]; taken {
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		if object[key], err = strictValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if open == '[' {
		return list, nil
	}
	return object, nil
}
