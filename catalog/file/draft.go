package catalogfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// Drafts are entries for a person to review: what an MCP server says of its tools, made into a catalogue that believes
// none of it. No draft is read_only. A tool is mutating if it says so itself, else unknown.
type Drafts struct {
	Entries []catalog.Entry `json:"entries"`
	// Skipped are the tools that got no draft.
	Skipped []Skipped `json:"skipped"`

	comments [][]string
}

// Skipped is a tool that got no draft, and why.
type Skipped struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// Draft drafts entries for the tools of a server, under the key that it has in the host's settings. A tool that the
// catalogue knows already gets none, since a draft would replace what is known of it.
func Draft(known *catalog.Catalog, server string, tools []catalog.Definition) *Drafts {
	d := &Drafts{Entries: []catalog.Entry{}, Skipped: []Skipped{}}
	var drafted []catalog.Name
	for _, tool := range tools {
		entry := catalog.Entry{Server: server, Tool: tool.Name}
		if tool.DeniesReadOnly() {
			entry.Class = catalog.Mutating
		}
		name := catalog.Name{Server: server, Tool: tool.Name}
		switch _, err := catalog.New(entry); {
		case err != nil:
			d.skip(tool.Name, "hosts refuse its name, or that of the server")
		case known.ClassifyCall(name, nil).Entry != nil:
			d.skip(tool.Name, "the catalogue has it as "+known.Classify(name).Class.String())
		case slices.ContainsFunc(drafted, name.Same):
			d.skip(tool.Name, "another tool of this server has a name that hosts may spell alike")
		default:
			drafted = append(drafted, name)
			d.Entries = append(d.Entries, entry)
			d.comments = append(d.comments, ownWords(tool))
		}
	}
	return d
}

func (d *Drafts) skip(tool, reason string) { d.Skipped = append(d.Skipped, Skipped{tool, reason}) }

// Put puts the drafts into a file, each one below what its tool says of itself.
func (d *Drafts) Put(e *Edit) error {
	for i, entry := range d.Entries {
		if err := e.Put(entry, d.comments[i]...); err != nil {
			return err
		}
	}
	return nil
}

// Document returns a catalogue of the drafts alone. Without any it is an empty one.
func (d *Drafts) Document() ([]byte, error) {
	text, err := edited("draft", nil, d.Put)
	if text == nil && err == nil {
		text = []byte(emptyFile)
	}
	return text, err
}

// ownWords quotes what a tool says of itself. The server chose every character of it.
func ownWords(tool catalog.Definition) []string {
	lines := []string{"it says of itself: " + quotedUntrusted(tool.Description)}
	hints := tool.Hints()
	for _, hint := range []struct {
		name  string
		value *bool
	}{{"readOnlyHint", hints.ReadOnly}, {"destructiveHint", hints.Destructive}} {
		if hint.value != nil {
			lines[0] += fmt.Sprintf(", %s %t", hint.name, *hint.value)
		}
	}
	var arguments []string
	for _, arg := range tool.Arguments() {
		arguments = append(arguments, quotedUntrusted(arg))
	}
	if len(arguments) > 0 {
		const most = 20
		rest := ""
		if len(arguments) > most {
			arguments, rest = arguments[:most], " and more"
		}
		lines = append(lines, "its arguments: "+strings.Join(arguments, ", ")+rest)
	}
	return lines
}

// quotedUntrusted returns the beginning of a text in quotes, on one line, without characters that hide or forge text.
func quotedUntrusted(text string) string {
	const most = 160
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return strconv.Quote(string(runes))
}
