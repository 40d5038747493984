package zvm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// link is the wire's reference to another resource. Its keys are lower case even where all others are not.
type link struct {
	Href       string `json:"href"`
	Identifier string `json:"identifier"`
	Type       string `json:"type"`
}

// id returns the identifier without the query part some servers append to it (zvm-wire 2.2).
func (l *link) id() string {
	if l == nil {
		return ""
	}
	id, _, _ := strings.Cut(l.Identifier, "?")
	return id
}

// site returns the identifier of a site link, from its address when it has no identifier of its own.
func (l *link) site() SiteID {
	if id := l.id(); id != "" || l == nil {
		return SiteID(id)
	}
	if _, id, found := strings.Cut(l.Href, "/peersites/"); found {
		return SiteID(id)
	}
	return ""
}

// oneID settles an id that a record may carry twice. An id that is missing or contradicts itself is an error: it must
// never reach a URL.
func oneID(what, own, linked string) (string, error) {
	switch {
	case own == "" && linked == "":
		return "", fmt.Errorf("the server sent a %s without an identifier", what)
	case own != "" && linked != "" && !strings.EqualFold(own, linked):
		return "", fmt.Errorf("the server sent a %s with two identifiers, %q and %q", what, own, linked)
	case own != "":
		return own, nil
	}
	return linked, nil
}

// enum is a wire enumeration: a number, a numeric string or a name. Text holds a name that has no number here.
type enum struct {
	Number int
	Text   string
}

// unknownEnum is the number of a value that is missing or has a name this package does not know.
const unknownEnum = -1

func decodeEnum(data []byte, names []string) enum {
	var n json.Number
	if json.Unmarshal(data, &n) == nil && n != "" {
		if i, err := strconv.Atoi(n.String()); err == nil {
			return enum{Number: i}
		}
		return enum{unknownEnum, n.String()}
	}
	var s string
	if json.Unmarshal(data, &s) != nil || s == "" {
		return enum{Number: unknownEnum}
	}
	for i, name := range names {
		if strings.EqualFold(name, s) {
			return enum{Number: i}
		}
	}
	return enum{unknownEnum, s}
}

// errSeveralIDs: an answer that names several things says of none that it is the one.
const errSeveralIDs = formatError("the answer holds several ids")

// createdID reads the answer to a write that creates something: a JSON string, an object holding the id under one of
// the keys, or the bare text (zvm-wire 4.4, 6.2). No id is an error, and so are several that differ.
func createdID(body []byte, keys ...string) (string, error) {
	var s string
	if json.Unmarshal(body, &s) == nil {
		return validID(s)
	}
	if trimmed := bytes.TrimSpace(body); json.Valid(body) && trimmed[0] == '{' {
		return idOfObject(trimmed, keys)
	}
	return validID(strings.Trim(strings.TrimSpace(string(body)), `"{} `))
}

// idOfObject looks at every member, because a map would keep one of several of the same name. object is valid JSON.
func idOfObject(object []byte, keys []string) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	_, _ = dec.Token()
	found := ""
	for dec.More() {
		var value json.RawMessage
		name, _ := dec.Token()
		if err := dec.Decode(&value); err != nil {
			return "", err
		}
		named := func(key string) bool { text, _ := name.(string); return strings.EqualFold(text, key) }
		var s string
		if !slices.ContainsFunc(keys, named) || json.Unmarshal(value, &s) != nil || s == "" {
			continue
		}
		id, err := validID(s)
		if err != nil {
			return "", err
		}
		if found != "" && !strings.EqualFold(dotted(found), dotted(id)) {
			return "", errSeveralIDs
		}
		found = firstNonEmpty(found, id)
	}
	if found == "" {
		return "", fmt.Errorf("the answer has none of %s", strings.Join(keys, ", "))
	}
	return found, nil
}

func validID(s string) (string, error) {
	s = strings.TrimSpace(s)
	if strings.Trim(s, ".") == "" {
		return "", errors.New("the answer holds no id")
	}
	for _, r := range s {
		if !(r == '-' || r == '.' || r == ':' || r == '_' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return "", errors.New("the answer is not an id")
		}
	}
	return s, nil
}

// oneOrMany decodes a JSON array, a single object, or null (zvm-wire 6.1).
func oneOrMany[T any](data []byte) ([]T, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil, nil
	}
	if data[0] == '[' {
		var many []T
		err := json.Unmarshal(data, &many)
		return many, err
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return nil, err
	}
	return []T{one}, nil
}
