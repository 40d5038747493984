// Package catalogfile is the catalogue on disk: a user's own file, which a person reads and writes too.
//
// The file is JSON with comments and trailing commas; what it may say, [catalog.Load] describes. [Open] reads it.
// [Update], [Rule] and [AddMutating] change it, and only what they have to: comments, order, indentation, line endings,
// the file's mode and the links that lead to it stay as they are. Several processes may change one file at once and none
// loses what another wrote. A file that is damaged is reported and kept, never replaced.
package catalogfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// MaxSize is how many bytes a catalogue file may have: 4 MiB, which is some 20,000 tools.
const MaxSize = 4 << 20

// maxNesting is more than a catalogue needs, and keeps a hostile file from exhausting the stack.
const maxNesting = 64

// File is a catalogue file as it stood when it was read.
type File struct {
	Path string
	// Catalog is what the file alone says; [catalog.Merge] lays it over the built-in data. Rulings that have expired are
	// void in it.
	Catalog *catalog.Catalog
	Policy  Policy
	// VMAliases are a user's own names for VMs: as a tool call may write one, and the VM that it means at the ZVM.
	VMAliases map[string]string
}

// Policy is [catalog.Policy] with its age as a duration.
type Policy struct {
	OnMutating catalog.OnMutating
	MaxAge     time.Duration // how old a guard may be that lets a call run; zero means the default
	LocalVM    string        // the protected VM that the agent's own machine is, if it is one
}

// DamagedError says that a file is no valid catalogue. Nothing has been changed in it.
type DamagedError struct {
	Path string
	// Problems joins one error for each thing that is wrong, which has the file's name and wraps a [*catalog.LoadError]
	// where it has a place.
	Problems error
}

// Error has one line for each problem: "path:line:column: problem".
func (e *DamagedError) Error() string { return e.Problems.Error() }

// Unwrap returns the problems.
func (e *DamagedError) Unwrap() error { return e.Problems }

func damaged(path string, err error) *DamagedError {
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		problems = joined.Unwrap()
	}
	named := make([]error, len(problems))
	for i, problem := range problems {
		named[i] = fmt.Errorf("%s:%w", path, problem)
	}
	return &DamagedError{path, errors.Join(named...)}
}

// Open reads a catalogue file as it stands at a moment. An error that is a [fs.ErrNotExist] means that there is none, a
// [*DamagedError] that it is no valid catalogue.
func Open(path string, now time.Time) (*File, error) {
	data, _, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, now)
}

// Parse is [Open] for the content of a file that was read already. The path serves for errors alone.
func Parse(path string, data []byte, now time.Time) (*File, error) {
	doc, err := load(data)
	if err != nil {
		return nil, damaged(path, err)
	}
	current, err := doc.Catalog.AsOf(moment(now))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{
		Path: path, Catalog: current, VMAliases: doc.VMAliases,
		Policy: Policy{
			OnMutating: doc.Policy.OnMutating,
			MaxAge:     time.Duration(doc.Policy.MaxAgeSeconds) * time.Second,
			LocalVM:    doc.Policy.LocalVM,
		},
	}, nil
}

// moment is how a catalogue writes a time.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// read returns the content and mode of a regular file. Anything else might never end.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, 0, err
	}
	if len(data) > MaxSize {
		return nil, 0, fmt.Errorf("%s: a catalogue has at most %d bytes", path, MaxSize)
	}
	return data, info.Mode().Perm(), nil
}

// load reads a document with comments. Its errors have places, and join a [*catalog.LoadError] each.
func load(data []byte) (*catalog.Document, error) {
	data = withoutMark(data)
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return catalog.LoadDocument(data) // which says how it is encoded instead
	}
	if at := tooDeep(data); at >= 0 {
		return nil, problemAt(data, at, "nested too deep for a catalogue")
	}
	value, err := parseComments(data)
	switch {
	case err == nil:
		value.Standardize() // keeps the place of everything but comments
		return catalog.LoadDocument(value.Pack())
	case onlyComments(data):
		return catalog.LoadDocument(nil)
	}
	return nil, syntaxProblem(data, err)
}

func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// parseComments parses a copy. A comment may end with the file.
func parseComments(data []byte) (hujson.Value, error) {
	return hujson.Parse(append(bytes.Clone(data), '\n'))
}

func onlyComments(data []byte) bool {
	_, err := parseComments(append(bytes.Clone(data), "\nnull"...))
	return err == nil
}

// syntaxProblem takes the place out of a parser's error, which has it in its text alone.
func syntaxProblem(data []byte, err error) error {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return problemAt(data, 0, err.Error())
	}
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(data[at:], '\n')
		if next < 0 { // the line that parsing has put there
			at = len(data)
			break
		}
		at += next + 1
	}
	return problemAt(data, at+column-1, errors.Unwrap(err).Error())
}

func problemAt(data []byte, at int, problem string) error {
	before := data[:min(at, len(data))]
	return &catalog.LoadError{
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1,
		Problem: problem,
	}
}

// tooDeep returns where brackets are nested too deep, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '[', '{':
			if depth++; depth > maxNesting {
				return at
			}
		case ']', '}':
			depth--
		case '"':
			for at++; at < len(data) && data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
		case '/':
			at += commentLength(data[at:])
		}
	}
	return -1
}

// commentLength returns the length of the comment that text begins with, less one; zero if it begins with none.
func commentLength(text []byte) int {
	end := ""
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(text, []byte("/*")):
		end = "*/"
	default:
		return 0
	}
	if length := bytes.Index(text[2:], []byte(end)); length >= 0 {
		return 2 + length + len(end) - 1
	}
	return len(text) - 1
}
