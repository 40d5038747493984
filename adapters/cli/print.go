package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// lineWriter lets goroutines that write whole lines take turns.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}

// result prints a command's result: the document in JSON mode, else what text writes.
func (a *app) result(document any, text func(*table)) error {
	if a.json {
		return a.document(document)
	}
	a.bar.hide()
	t := &table{}
	text(t)
	_, err := io.WriteString(a.io.Out, t.String())
	return err
}

// document prints one JSON document. Names keep every byte that JSON can carry, and characters stay readable: nothing
// here ends up in a web page.
func (a *app) document(v any) error {
	encoder := json.NewEncoder(a.io.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// say prints a line for a person on stderr.
func (a *app) say(format string, args ...any) {
	a.bar.hide()
	fmt.Fprintf(a.io.Err, "%s\n", plain(fmt.Sprintf(format, args...)))
}

// table is text in aligned columns. Every cell is made plain.
type table struct{ lines [][]string }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = plain(c)
	}
	t.lines = append(t.lines, cells)
}

func (t *table) blank() { t.lines = append(t.lines, nil) }

// String returns the lines. A line of one cell, or none, ends the columns above it.
func (t *table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range t.lines {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a strings.Builder does not fail
	return trimLines(b.String())
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// plain returns text that a terminal prints as it is: control and bidi characters, invisible ones, line separators and
// bytes that are no UTF-8 are escaped, since a guest or a server may have chosen them to forge or hide a line.
func plain(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// moment prints a time of the server in whole seconds UTC, and a dash for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
