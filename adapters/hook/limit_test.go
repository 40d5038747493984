package hookadapter

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// counted counts what was taken of a text.
type counted struct {
	io.Reader
	taken int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.taken += n
	return n, err
}

func TestInputIsReadToItsEndWhateverItHolds(t *testing.T) {
	t.Parallel()
	const object = `{"a":"bcd"}`
	for behaviour, tt := range map[string]struct {
		text  string
		limit int
		want  error
	}{
		"as much as the limit":    {object, len(object), nil},
		"one byte more":           {object, len(object) - 1, errTooLarge},
		"far more":                {object + strings.Repeat(" ", 1<<20), 5, errTooLarge},
		"more behind the value":   {object + strings.Repeat(" ", 1<<20), len(object), nil},
		"what is no JSON":         {strings.Repeat("x", 1<<20), 1 << 20, errors.New("it is not JSON")},
		"a mark alone":            {"\xff\xfe", 100, errors.New("it ends before it is complete")},
		"a mark at the limit":     {"\xef\xbb\xbf" + object, 3, errTooLarge},
		"UTF-16 beyond the limit": {"\xff\xfe{\x00}\x00", 5, errTooLarge},
	} {
		stdin := &counted{Reader: strings.NewReader(tt.text)}
		in := readInput(stdin, tt.limit)
		got := <-in.value
		in.drain(t.Context(), 1<<40)
		if (got.err == nil) != (tt.want == nil) || tt.want != nil && got.err.Error() != tt.want.Error() {
			t.Errorf("%s: error %v, want %v", behaviour, got.err, tt.want)
		}
		if stdin.taken != len(tt.text) {
			t.Errorf("%s: %d bytes were left unread, which a host takes for a failure of the hook", behaviour, len(tt.text)-stdin.taken)
		}
	}
}
