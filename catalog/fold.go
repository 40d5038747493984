package catalog

import (
	"strings"
	"unicode"
)

const keySeparator = "\x00"

// maxKeyLength holds a folded server, the separator and a folded tool.
const maxKeyLength = 2*maxNameLength + len(keySeparator)

// appendFolded appends name as every host could have rewritten it: lower case, with an underscore for each ASCII
// character that is neither letter nor digit. It is false for what no entry can be named: nothing, more than
// maxNameLength bytes, control characters, and non-ASCII letters, whose case folding could turn one name into another.
func appendFolded(dst []byte, name string) ([]byte, bool) {
	if name == "" || len(name) > maxNameLength {
		return dst, false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case ' ' <= c && c <= '~':
			c = '_'
		default:
			return dst, false
		}
		dst = append(dst, c)
	}
	return dst, true
}

// appendKey appends the index key of n. A built-in has an empty server part, which no server folds to, and its tool
// name gets no underscores: a host does not rewrite its own names, while "server-tool" of another may look like one.
func appendKey(dst []byte, n Name) ([]byte, bool) {
	ok := true
	if n.BuiltIn {
		ok = n.Server == "" && strings.IndexFunc(n.Tool, notWord) < 0
	} else {
		dst, ok = appendFolded(dst, n.Server)
	}
	if !ok {
		return dst, false
	}
	return appendFolded(append(dst, keySeparator...), n.Tool)
}

// Same reports whether a host may spell the two names alike, so that they are one tool to every catalogue. A name that no
// entry can have is the same as none.
func (n Name) Same(other Name) bool {
	key, ok := appendKey(nil, n)
	otherKey, otherOK := appendKey(nil, other)
	return ok && otherOK && n.BuiltIn == other.BuiltIn && string(key) == string(otherKey)
}

func notWord(r rune) bool {
	return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
}

// fold returns the folded name, or "" for what no entry can be named.
func fold(name string) string {
	folded, ok := appendFolded(nil, name)
	if !ok {
		return ""
	}
	return string(folded)
}

// list folds the names of an entry, which it takes over.
func list(e *Entry) *listed {
	l := &listed{Entry: *e}
	tool := keySeparator + fold(e.Tool)
	if e.BuiltIn {
		l.keys = []string{tool}
		return l
	}
	l.servers, l.keys = make([]string, 1+len(e.Aliases)), make([]string, 1+len(e.Aliases))
	for i := range l.servers {
		server := e.Server
		if i > 0 {
			server = e.Aliases[i-1]
		}
		l.servers[i] = fold(server)
		l.keys[i] = l.servers[i] + tool
	}
	return l
}

// alike reports whether two argument names differ only in case and punctuation, as dry_run and dryRun do. Which of the
// two a server reads cannot be known, so a call that has both or the other is garbled.
func alike(a, b string) bool {
	return a == b || strings.EqualFold(lettersAndDigits(a), lettersAndDigits(b))
}

func lettersAndDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
