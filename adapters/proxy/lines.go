package proxyadapter

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxLine is the longest message that is read from either side, as the official SDK's own limit is (mcp 1.7).
const maxLine = 16 << 20

var errTooLong = errors.New("the message is longer than 16 MiB")

// lineReader reads messages, each of which is one line.
type lineReader struct{ from *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line that is not blank, without its end. A line that is too long is skipped, and errTooLong
// returned for it. A last line without an end counts.
func (r *lineReader) next() ([]byte, error) {
	for {
		var line []byte
		tooLong := false
		for {
			part, err := r.from.ReadSlice('\n')
			if len(line)+len(part) > maxLine {
				tooLong, line = true, nil
			}
			if !tooLong {
				line = append(line, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) && !tooLong {
				return nil, err
			}
			break
		}
		if tooLong {
			return nil, errTooLong
		}
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

// lineWriter writes messages, one at a time.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(append(bytes.Clone(line), '\n'))
	return err
}
