package hookadapter

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
)

// needsHuman words a question that nobody can be asked as a denial that tells what it takes.
func needsHuman(h host, j judgement) string {
	parts := []string{"This needs a human, and nobody can be asked in this session.", j.verdict.Reason}
	if command := approval(j); command != "" {
		parts = append(parts, "A person can approve it at a terminal with: "+command+".")
	}
	if h.elsewhere != "" {
		parts = append(parts, h.elsewhere)
	}
	return strings.Join(parts, " ")
}

// approval returns the command line by which a person approves the call, or "" where its names do not belong on one.
func approval(j judgement) string {
	words := []string{"zerto-rewind", "approve", "--server", gate.ServerOf(j.name), "--tool", j.name.Tool}
	for _, target := range j.verdict.Targets {
		words = append(words, "--target", target)
	}
	words = append(words, "--ttl", "10m")
	for i, word := range words {
		if word == "" || len(word) > maxShown || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return ""
		}
		words[i] = shellWord(word)
	}
	return strings.Join(words, " ")
}

// maxShown is how much of a name is worth showing. Hosts allow 128 bytes at most.
const maxShown = 160

func shellWord(word string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:,@", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quotedName(name catalog.Name) string {
	text := name.String()
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
