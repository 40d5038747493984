package zvmtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// contract is the vendor's OpenAPI document, indexed without regard to case
// and to the names of path parameters.
type contract struct {
	operations map[string]*openapi3.Operation
	spelling   map[string]string // "METHOD /path" as the document has it
	sent       *fields           // what compare has met
}

func readContract(t *testing.T, path string) *contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatalf("ZVM_OPENAPI: %v", err)
	}
	c := &contract{operations: map[string]*openapi3.Operation{}, spelling: map[string]string{}, sent: newFields()}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			c.operations[operationKey(method, path)] = operation
			c.spelling[operationKey(method, path)] = method + " " + path
		}
	}
	return c
}

func operationKey(method, path string) string {
	segments := strings.Split(strings.ToLower(path), "/")
	for i, segment := range segments {
		switch {
		case segment == "{realm}":
			segments[i] = "zerto" // the document names the default realm
		case strings.HasPrefix(segment, "{"):
			segments[i] = "{}"
		}
	}
	return method + " " + strings.Join(segments, "/")
}

func (c *contract) operation(method, path string) *openapi3.Operation {
	return c.operations[operationKey(method, path)]
}

// template finds the operation of a path with ids in it. A literal segment is
// preferred to a parameter, as servers do.
func (c *contract) template(method, path string) *openapi3.Operation {
	want := strings.Split(strings.ToLower(path), "/")
	var best *openapi3.Operation
	fewest := len(want)
	for key, operation := range c.operations {
		rest, sameMethod := strings.CutPrefix(key, method+" ")
		got := strings.Split(rest, "/")
		if !sameMethod || len(got) != len(want) {
			continue
		}
		parameters, matched := 0, true
		for i := range got {
			if got[i] == "{}" {
				parameters++
			} else if got[i] != want[i] {
				matched = false
			}
		}
		if matched && parameters < fewest {
			best, fewest = operation, parameters
		}
	}
	return best
}

func queryNames(operation *openapi3.Operation) []string {
	var names []string
	for _, parameter := range operation.Parameters {
		if parameter.Value.In == openapi3.ParameterInQuery {
			names = append(names, parameter.Value.Name)
		}
	}
	return names
}

func equalFold(a string) func(string) bool {
	return func(b string) bool { return strings.EqualFold(a, b) }
}

// bodySchema is nil where the document has no request body.
func bodySchema(operation *openapi3.Operation, mediaType string) *openapi3.SchemaRef {
	if operation.RequestBody == nil {
		return nil
	}
	media := operation.RequestBody.Value.Content[mediaType]
	if media == nil {
		return nil
	}
	return media.Schema
}

func hasField(schema *openapi3.SchemaRef, path []string) bool {
	if schema == nil || len(path) == 0 {
		return schema != nil
	}
	_, property := property(schema.Value, path[0])
	return hasField(property, path[1:])
}

func property(schema *openapi3.Schema, name string) (string, *openapi3.SchemaRef) {
	for spelled, property := range schema.Properties {
		if strings.EqualFold(spelled, name) {
			return spelled, property
		}
	}
	return "", nil
}

// compare lists what an answer has that the document does not allow.
func (c *contract) compare(operation *openapi3.Operation, a answer, extras *usage) []string {
	response := operation.Responses.Status(a.status)
	if response == nil {
		return []string{fmt.Sprintf("status %d is not in the document", a.status)}
	}
	media := response.Value.Content["application/json"]
	if media == nil {
		if a.body != "" {
			return []string{"the document has no content, the answer has"}
		}
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		return []string{err.Error()}
	}
	s := speller{extras: extras, sent: c.sent}
	value = s.spell(media.Schema, value, "")
	err := media.Schema.Value.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsResponse(),
		openapi3.EnableFormatValidation(), openapi3.WithStringFormatValidator("date-time", openapi3.NewCallbackValidator(isDateTime)))
	return append(s.problems, flatten(err)...)
}

func isDateTime(text string) error {
	_, err := time.Parse(time.RFC3339, text)
	return err
}

func flatten(err error) []string {
	var several openapi3.MultiError
	var one *openapi3.SchemaError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &several):
		var all []string
		for _, inner := range several {
			all = append(all, flatten(inner)...)
		}
		return all
	case errors.As(err, &one):
		return []string{"/" + strings.Join(one.JSONPointer(), "/") + ": " + one.Reason}
	}
	return []string{err.Error()}
}

// fields says which fields of the document's objects were met.
type fields struct {
	mu   sync.Mutex
	all  map[string]*openapi3.Schema
	seen map[string]map[string]bool
}

func newFields() *fields {
	return &fields{all: map[string]*openapi3.Schema{}, seen: map[string]map[string]bool{}}
}

func (f *fields) add(short string, schema *openapi3.Schema, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[short] == nil {
		f.all[short], f.seen[short] = schema, map[string]bool{}
	}
	f.seen[short][name] = true
}

// missing lists the fields of an object that were never met.
func (f *fields) missing(short string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.all[short].Properties)) {
		if !f.seen[short][name] {
			names = append(names, name)
		}
	}
	return names
}

// speller rewrites keys as the document spells them, so that its validator
// can judge the values. Known extra fields are left out, and so is a null in
// the place of an object: a bare reference cannot say whether it may be null.
type speller struct {
	extras   *usage
	sent     *fields
	problems []string
}

func (s *speller) spell(schema *openapi3.SchemaRef, value any, at string) any {
	switch value := value.(type) {
	case []any:
		if schema.Value.Items == nil {
			return value
		}
		for i := range value {
			value[i] = s.spell(schema.Value.Items, value[i], at+"[]")
		}
	case map[string]any:
		return s.object(schema, value, at)
	}
	return value
}

func (s *speller) object(schema *openapi3.SchemaRef, object map[string]any, at string) any {
	spelled := map[string]any{}
	short := schema.Ref[strings.LastIndexAny(schema.Ref, "./")+1:]
	for key, value := range object {
		name, field := property(schema.Value, key)
		if field != nil {
			s.sent.add(short, schema.Value, name)
		}
		switch {
		case field == nil:
			row := strings.ToLower(short + "." + key)
			if !s.extras.use(row) {
				s.problems = append(s.problems, fmt.Sprintf("%s.%s is not in the document (row %q)", at, key, row))
			}
		case value == nil && field.Ref != "" && field.Value.Type.Is(openapi3.TypeObject):
		default:
			if _, twice := spelled[name]; twice {
				s.problems = append(s.problems, fmt.Sprintf("%s.%s is there twice", at, key))
			}
			spelled[name] = s.spell(field, value, at+"."+key)
		}
	}
	return spelled
}

// checkRequestBody validates a body exactly: the client spells as the
// document does.
func checkRequestBody(schema *openapi3.SchemaRef, body string) []string {
	switch {
	case schema == nil && body == "":
		return nil
	case schema == nil:
		return []string{"the document has no body, the request has"}
	}
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return []string{err.Error()}
	}
	return flatten(schema.Value.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsRequest()))
}

func unknownNames(names, documented []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(documented, name) })
}
