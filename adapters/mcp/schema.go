package mcpadapter

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaFor infers the schema of T without null unions, which some clients answer by dropping the argument.
func schemaFor[T any]() (*jsonschema.Schema, error) {
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time"},
	}})
	if err != nil {
		return nil, fmt.Errorf("mcpadapter: schema of %v: %w", reflect.TypeFor[T](), err)
	}
	withoutNull(schema)
	return schema, nil
}

func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if kept := slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" }); len(kept) == 1 {
		s.Type, s.Types = kept[0], nil
	}
	withoutNull(s.Items)
	for _, property := range s.Properties {
		withoutNull(property)
	}
}

// resultSchema describes an answer: the properties of Out, or those of a refusal alone. A client that checks structured
// content against the schema checks that of a tool error too.
func resultSchema[Out any]() (*jsonschema.Schema, error) {
	schema, err := schemaFor[Out]()
	if err != nil {
		return nil, err
	}
	refusal, err := schemaFor[refusal]()
	if err != nil {
		return nil, err
	}
	schema.OneOf = []*jsonschema.Schema{
		{Required: schema.Required},
		{Required: refusal.Required},
	}
	schema.Required = nil
	for name, property := range refusal.Properties {
		schema.Properties[name] = property
		schema.PropertyOrder = append(schema.PropertyOrder, name)
	}
	return schema, nil
}
