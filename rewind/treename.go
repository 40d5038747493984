package rewind

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// longestName is what file systems take as one name, in bytes.
const longestName = 255

// whyUnsafe says why a guest's name is not one that every operating system writes as that very name, empty when it is. A
// tree may be copied on from where it is written, so that the rules do not depend on where that is.
func whyUnsafe(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "it has no name of its own"
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case len(name) > longestName:
		return "the name is longer than 255 bytes"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name holds a control character"
	case strings.ContainsAny(name, `/\:*?"<>|`):
		return "the name holds a character that Windows gives a meaning of its own"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "the name ends in a dot or a blank, which Windows drops"
	case isDevice(name):
		return "the name is that of a device on Windows"
	}
	return ""
}

// bearsName reports whether the name of a zip's entry is a file's: the end of its path in the session, from the start of
// some part on, since a server may give no folders, those below one that was asked for, or all (zvm-wire 6.5). Each folder
// in it passes the rules of [whyUnsafe], so that no name is absolute, has a drive letter or leads upwards. The file's own
// name is what was asked for, and need not pass them: nothing is written under an entry's name.
func bearsName(entry string, item zvm.Item) bool {
	if entry == item.Name() {
		return true // a Linux guest's may hold backslashes
	}
	entry = slashed(entry)
	if !strings.HasSuffix("/"+item.Path, "/"+entry) {
		return false
	}
	folders := strings.Split(entry, "/")
	return !slices.ContainsFunc(folders[:len(folders)-1], func(f string) bool { return whyUnsafe(f) != "" })
}

// slashed puts the one separator in the place of the other, which old writers of zips use.
func slashed(entry string) string { return strings.ReplaceAll(entry, `\`, "/") }

// isDevice reports whether Windows opens a device under a name: the extension and the blanks before it do not count, and
// superscript digits count as digits.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if number, is := strings.CutPrefix(stem, port); is && utf8.RuneCountInString(number) == 1 {
			return strings.Contains("0123456789¹²³", number)
		}
	}
	return false
}

// folded makes names equal that some file system takes for one, composed and decomposed letters apart: see [WithNormalForm].
// What it misses costs a whole tree and no file: nothing that exists is replaced.
func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToUpper(strings.ToLower(name))), "ß", "ss")
}

func countFolded(items []zvm.Item, normal normalForm) map[string]int {
	n := make(map[string]int, len(items))
	for _, i := range items {
		n[folded(normal.of(i.Name()))]++
	}
	return n
}
