package gate

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxReason is below every host's limit (hooks 1.5: 10,000 characters) and short enough to be read.
const maxReason = 2000

// maxToolShown is how much of a tool's name a reason shows. Hosts allow 128 bytes at most.
const maxToolShown = 160

// String returns the quoted name of the tool, cut where no host would have let it grow.
func (c Call) String() string {
	name := c.Name.String()
	if len(name) > maxToolShown {
		name = strings.ToValidUTF8(name[:maxToolShown], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}

func (c Call) sentence(why string) string { return fmt.Sprintf("%s: %s.", c, why) }

// question is read by a person, who may know nothing of guards.
func (c Call) question(why string) string {
	return fmt.Sprintf("May the agent run %s? %s Zerto AI Rewind has not guarded this call and may be unable to take it back.", c, why)
}

// inWords writes a duration without the zero seconds of "30m0s".
func inWords(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// oneLine makes text from several sources one line of bounded length that shows nothing hidden. A host takes a reason
// of blanks for none.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "No reason is known."
	}
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
