package install

import (
	"errors"
	"fmt"
	"strings"
)

// shellLine returns a line that starts a program from whichever shell the host has. Bash, cmd and PowerShell quote in
// different ways, so that on Windows, where it may be any of them, a path that needs quotes is refused.
func shellLine(system string, words ...string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		if system == "windows" {
			word = strings.ReplaceAll(word, `\`, "/") // Git Bash eats backslashes
		}
		switch {
		case word == "" || strings.ContainsAny(word, "\x00\n\r"):
			return "", fmt.Errorf("%q cannot stand in a command line", word)
		case strings.IndexFunc(word, needsQuotes) < 0:
		case system == "windows":
			return "", fmt.Errorf("this host starts the hook through a shell, and no quoting of %q is right in all shells of Windows; "+
				"put zerto-rewind into a folder whose path has only letters, digits, dots, dashes and underscores", word)
		default:
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted[i] = word
	}
	return strings.Join(quoted, " "), nil
}

func needsQuotes(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/:._-+@", r)
}

var errNotWords = errors.New("the command line is more than words")

// words takes a line of plain words apart, as sh does. Anything that a shell would do more with is an error.
func words(system, line string) ([]string, error) {
	var all []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '"' && (r == '$' || r == '`'):
			return nil, errNotWords
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '\\' && system != "windows":
			if i++; i == len(runes) {
				return nil, errNotWords
			}
			word.WriteRune(runes[i])
			inWord = true
		case r == ' ' || r == '\t':
			if inWord {
				all = append(all, word.String())
				word.Reset()
				inWord = false
			}
		case strings.ContainsRune("|&;<>()$`*?[]{}~#!\n", r):
			return nil, errNotWords
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errNotWords
	}
	if inWord {
		all = append(all, word.String())
	}
	return all, nil
}
