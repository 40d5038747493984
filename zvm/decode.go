package zvm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
)

const (
	// maxAnswer bounds an answer that is held in memory as a whole. Lists are not.
	maxAnswer = 64 << 20
	// shownText is how many characters of an unusable answer an error shows.
	shownText = 200
	// shownHead is how many bytes of an unusable list an error keeps.
	shownHead = 4 * shownText
)

// formatError is an answer that is not of the form the API has.
type formatError string

func (e formatError) Error() string { return string(e) }

const (
	errMarkup   = formatError("the answer is a page for humans")
	errEmpty    = formatError("the answer is empty")
	errTrailing = formatError("the answer goes on after its end")
	errNotList  = formatError("the answer is not a list")
	errTooLarge = formatError("the answer is larger than the limit")
	errStuck    = formatError("an element of the list was not read")
	errPart     = formatError("the answer is a part of a file, and the whole was asked for")
)

// malformed reports whether err says that an answer has the wrong form.
func malformed(err error) bool {
	var format formatError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &format) || errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF)
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return body, err
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func withoutBOM(b []byte) []byte { return bytes.TrimPrefix(b, byteOrderMark) }

// decode decodes a whole answer.
func decode(body []byte, out any) error {
	body = bytes.TrimSpace(withoutBOM(body))
	switch {
	case len(body) == 0:
		return errEmpty
	case body[0] == '<':
		return errMarkup
	}
	return json.Unmarshal(body, out)
}

// markup reports whether an answer is HTML or XML.
func markup(h http.Header, body []byte) bool {
	kind := strings.ToLower(h.Get("Content-Type"))
	if strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "application/xhtml") {
		return true
	}
	return bytes.HasPrefix(bytes.TrimSpace(withoutBOM(body)), []byte("<"))
}

// listReader reads a JSON array element by element. It keeps the head of the body for error messages, and the failure of the
// transport apart from those of the decoder.
type listReader struct {
	body    io.Reader
	left    int64
	head    []byte
	failure error
}

func newListReader(body io.Reader, limit int64) *listReader {
	return &listReader{body: body, left: limit}
}

func (l *listReader) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	l.head = append(l.head, p[:min(n, shownHead+scrubMargin-len(l.head))]...)
	if l.left -= int64(n); l.left < 0 {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.failure = err
	}
	return n, err
}

func (l *listReader) each(f func(*json.Decoder) error) error {
	r := bufio.NewReader(l)
	if start, _ := r.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		_, _ = r.Discard(len(byteOrderMark))
	}
	dec := json.NewDecoder(r)
	switch first, err := dec.Token(); {
	case errors.Is(err, io.EOF):
		return errEmpty
	case err != nil:
		return err
	case first == nil:
		return atEnd(dec)
	case first != json.Delim('['):
		return errNotList
	}
	for dec.More() {
		before := dec.InputOffset()
		switch err := f(dec); {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if dec.InputOffset() == before {
			return errStuck
		}
	}
	if _, err := dec.Token(); errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	return atEnd(dec)
}

// atEnd reads to the end of the body: only there it is known that the body arrived whole.
func atEnd(dec *json.Decoder) error {
	switch _, err := dec.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil && !malformed(err):
		return err
	}
	return errTrailing
}

// reason is why a server refuses, as far as its body says so.
type reason struct {
	message    string
	code       string
	structured bool // the body is JSON that gives a reason
}

// readReason reads the shapes of zvm-wire 9. Of any other it takes the beginning. Secrets are taken out before anything is cut.
func readReason(body []byte, secrets scrubber) reason {
	body = bytes.TrimSpace(withoutBOM(body))
	var text string
	if json.Unmarshal(body, &text) == nil {
		return reason{message: secrets.text(cleanMessage(text)), structured: text != ""}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return reason{message: plainText(body, shownText, secrets)}
	}
	r := reasonOf(object)
	if r.message == "" {
		return reason{message: plainText(body, shownText, secrets)}
	}
	r.message, r.code = secrets.text(r.message), secrets.text(r.code)
	return r
}

func reasonOf(object map[string]json.RawMessage) reason {
	fields := make(map[string]json.RawMessage, len(object))
	for k, v := range object {
		fields[strings.ToLower(k)] = v
	}
	var r reason
	for _, key := range []string{"message", "errormessage", "detail", "title", "error_description", "error", "faultstring"} {
		if text := scalar(fields[key]); text != "" {
			r.message = cleanMessage(text)
			break
		}
	}
	for _, key := range []string{"errorcode", "faultcode", "error"} {
		if text := scalar(fields[key]); text != "" && cleanMessage(text) != r.message {
			r.code = text
			break
		}
	}
	var invalid map[string][]string
	if json.Unmarshal(fields["errors"], &invalid) == nil {
		for _, field := range sortedKeys(invalid) {
			r.message += "; " + field + ": " + strings.Join(invalid[field], ", ")
		}
	}
	var nested map[string]json.RawMessage
	if r.message == "" && json.Unmarshal(fields["error"], &nested) == nil {
		delete(nested, "error")
		return reasonOf(nested)
	}
	r.message = strings.TrimPrefix(r.message, "; ")
	r.structured = r.message != ""
	return r
}

// scalar returns a JSON string or number as text, and nothing for everything else.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// cleanMessage takes off the frame that older servers put around their reasons (zvm-wire 9).
func cleanMessage(text string) string {
	text = strings.TrimSpace(text)
	if rest, framed := strings.CutPrefix(text, "Exception occurred in API"); framed {
		if rest := strings.Trim(rest, " :;"); rest != "" {
			return rest
		}
	}
	return text
}

var (
	invisibleMarkup = regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)\s*>|<!--.*?-->`)
	anyTag          = regexp.MustCompile(`(?s)<[^>]*>`)
)

// plainText returns the first characters of body as a person would see them. Secrets are taken out before the tags are, because they may
// look like tags, and again after, because that joins what was apart.
func plainText(body []byte, limit int, secrets scrubber) string {
	text := secrets.text(strings.ToValidUTF8(string(withoutBOM(body)), ""))
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		if visible := anyTag.ReplaceAllString(invisibleMarkup.ReplaceAllString(text, " "), " "); strings.TrimSpace(visible) != "" {
			text = html.UnescapeString(visible)
		}
	}
	return printable(secrets.text(strings.Join(strings.Fields(text), " ")), limit)
}
