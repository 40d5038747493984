package hookadapter

import (
	"fmt"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// needsHuman words a question that nobody can be asked as a denial that tells what it takes.
func needsHuman(h host, j judgement) string {
	parts := []string{"This needs a human, and nobody can be asked in this session.", j.verdict.Reason}
	if j.verdict.ApproveCommand != "" {
		parts = append(parts, "A person can approve this one call at a terminal with: "+j.verdict.ApproveCommand+" .")
	}
	if h.elsewhere != "" {
		parts = append(parts, h.elsewhere)
	}
	return strings.Join(parts, " ")
}

// maxShown is how much of a name is worth showing. Hosts allow 128 bytes at most.
const maxShown = 160

func quotedName(name catalog.Name) string {
	text := name.String()
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
