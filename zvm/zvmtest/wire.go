package zvmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// reply is what a handler decides under the mutex. It is encoded and sent
// after the mutex is free.
type reply struct {
	status      int
	unknownID   bool   // an id named nothing
	value       any    // encoded as JSON
	raw         []byte // sent as it is, where contentType is set
	contentType string
	header      http.Header
	stream      func(w http.ResponseWriter, r *http.Request) // writes everything itself
	later       func() reply                                 // the rest of the work, done without the mutex
}

// errorBody is the shape of business errors (zvm-wire 9).
type errorBody struct {
	Message string
}

func ok(value any) reply { return reply{status: http.StatusOK, value: value} }

func fail(status int, message string) reply {
	return reply{status: status, value: errorBody{message}}
}

// unknownID is the answer for an id that names nothing.
func (s *Server) unknownID(what, id string) reply {
	rep := fail(http.StatusNotFound, what+" "+id+" was not found")
	if s.cfg.has(UnknownIDAs500) {
		rep = fail(http.StatusInternalServerError, "Exception occurred in API : "+what+" "+id+" was not found;")
	}
	rep.unknownID = true
	return rep
}

// problemDetails is the error body of ASP.NET (zvm-wire 9).
type problemDetails struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// shapeError gives an error the status and the shape that the switches want.
func (s *Server) shapeError(rep reply) reply {
	body, isError := rep.value.(errorBody)
	if !isError {
		return rep
	}
	if rep.status == http.StatusInternalServerError && !rep.unknownID && s.cfg.has(BusinessErrorsAs400) {
		rep.status = http.StatusBadRequest
	}
	if rep.status == http.StatusBadRequest && s.cfg.has(ProblemDetails) {
		rep.value = problemDetails{"about:blank", http.StatusText(rep.status), rep.status, body.Message}
	}
	return rep
}

// resourceLink is a link object; its keys are lower case in every release
// (zvm-wire 2.1).
type resourceLink struct {
	Href       string  `json:"href"`
	Identifier string  `json:"identifier"`
	Rel        *string `json:"rel"`
	Type       string  `json:"type"`
}

func (s *Server) link(path, id, kind string) resourceLink {
	return resourceLink{Href: s.url + "/v1/" + path, Identifier: id, Type: kind}
}

// topID is an id as it stands at the top level of an object; "" leaves it out
// together with omitempty.
func (s *Server) topID(id string) string {
	if s.cfg.has(IDsOnlyInLinks) {
		return ""
	}
	return id
}

const milliseconds = "2006-01-02T15:04:05.000Z"

// date writes an instant of a task.
func (s *Server) date(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(milliseconds)
	if s.cfg.has(LegacyDates) {
		text = "/Date(" + strconv.FormatInt(t.UnixMilli(), 10) + ")/"
	}
	return &text
}

func isoDate(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(milliseconds)
	return &text
}

// encode is the JSON body of a value in the server's key case.
func (s *Server) encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if s.cfg.has(CamelCaseKeys) {
		lowerKeys(body)
	}
	return body, nil
}

// lowerKeys turns the keys of a JSON text from PascalCase to camelCase in
// place, as the OpenAPI document spells them: IOPs is ioPs there.
func lowerKeys(b []byte) {
	for i := 0; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		start := i + 1
		for i++; i < len(b) && b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		if i+1 >= len(b) || b[i+1] != ':' || start >= i {
			continue
		}
		switch key := b[start:i]; {
		case string(key) == "IOPs":
			copy(key, "ioPs")
		case key[0] >= 'A' && key[0] <= 'Z':
			key[0] += 'a' - 'A'
		}
	}
}

// writeReply sends a reply that is not a stream.
func (s *Server) writeReply(w http.ResponseWriter, rep reply) {
	body, contentType := rep.raw, rep.contentType
	if contentType == "" && rep.value != nil {
		encoded, err := s.encode(rep.value)
		if err != nil {
			rep.status = http.StatusInternalServerError
		}
		body, contentType = encoded, "application/json; charset=utf-8"
	}
	h := w.Header()
	for key, values := range rep.header {
		h[key] = values
	}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rep.status)
	// A client that went away is the client's business.
	_, _ = w.Write(body)
}
