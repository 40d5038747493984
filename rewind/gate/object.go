package gate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The JSON package keeps the last of two equal names and, in a struct, takes a name in any case. A tool's server may do
// otherwise, and then the gate would judge another call than the one that runs. So what is ambiguous is refused.

// Members returns the members of text that is one JSON object. The error says what is ambiguous in it: two names that
// are equal, or differ in case alone, or one that a reader in C takes for another, since it ends at a NUL there.
func Members(object []byte) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	folded := map[string]bool{}
	err := eachMember(json.NewDecoder(bytes.NewReader(object)), func(decoder *json.Decoder, name string) error {
		if strings.Contains(name, "\x00") {
			return fmt.Errorf("the name %.40q holds a NUL", name)
		}
		if folded[foldCase(name)] {
			return fmt.Errorf("the name %.40q occurs more than once", name)
		}
		folded[foldCase(name)] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		all[name] = value
		return nil
	})
	return all, err
}

// Arguments decodes a JSON object as the arguments of a [Call], with json.Number for numbers. It refuses what [Members]
// does, and text that is not whole characters. Within a value, only equal names are refused: there, names may be data.
func Arguments(object []byte) (map[string]any, error) {
	if !utf8.Valid(object) || HasLoneSurrogate(object) {
		return nil, errors.New("it holds half of a character")
	}
	fields, err := Members(object)
	if err != nil {
		return nil, err
	}
	args := make(map[string]any, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) { // so that the same text is refused in the same words
		decoder := json.NewDecoder(bytes.NewReader(fields[name]))
		decoder.UseNumber()
		if args[name], err = strictValue(decoder); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func strictValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		err := eachName(decoder, func(name string) error {
			if _, twice := object[name]; twice {
				return fmt.Errorf("the name %.40q occurs more than once", name)
			}
			value, err := strictValue(decoder)
			object[name] = value
			return err
		})
		return object, err
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := strictValue(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

// eachMember reads text that is one JSON object and nothing else.
func eachMember(decoder *json.Decoder, read func(decoder *json.Decoder, name string) error) error {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	if err := eachName(decoder, func(name string) error { return read(decoder, name) }); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// eachName reads the rest of an object whose brace was read.
func eachName(decoder *json.Decoder, readValue func(name string) error) error {
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return errors.New("it is not JSON")
		}
		if err := readValue(name); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// foldCase returns one spelling for all names that differ in case alone, by the rules of Unicode, under which "ſ" is an
// "s".
func foldCase(name string) string {
	folded := []rune(name)
	for i, r := range folded {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		folded[i] = least
	}
	return string(folded)
}

// HasLoneSurrogate reports whether valid JSON escapes half of a character. The decoder would put U+FFFD in its place.
func HasLoneSurrogate(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		r, escaped := escapedUnit(text[i:])
		i++ // what is escaped begins nothing
		if !escaped || !utf16.IsSurrogate(r) {
			continue
		}
		low, escaped := escapedUnit(text[i+5:])
		if !escaped || utf16.DecodeRune(r, low) == unicode.ReplacementChar {
			return true
		}
		i += 10
	}
	return false
}

// escapedUnit reads a \uXXXX that text begins with.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var unit [2]byte
	if _, err := hex.Decode(unit[:], text[2:6]); err != nil {
		return 0, false
	}
	return rune(unit[0])<<8 | rune(unit[1]), true
}
