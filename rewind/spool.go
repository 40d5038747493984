package rewind

import (
	"fmt"
	"io"
	"os"
)

// spool holds a zip, which is read from its end, in the system's folder for temporary files ($TMPDIR), never in a
// destination's. It needs as much room there as the zip is long, and no memory. Where a file may lose its name while it is
// open, as on Unix, it has none from the start, so that even a process that is killed leaves nothing; elsewhere it goes when
// it is closed.
type spool struct {
	*os.File

	named bool
}

func newSpool() (spool, error) {
	file, err := os.CreateTemp("", ".rewind-*.zip")
	if err != nil {
		return spool{}, noRoom(err)
	}
	return spool{file, os.Remove(file.Name()) != nil}, nil
}

// Write says of an error that it is not one of the destination or of the server.
func (s spool) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	if err != nil {
		err = noRoom(err)
	}
	return n, err
}

func noRoom(err error) error {
	return fmt.Errorf("keeping the zip that the server sends in the folder for temporary files: %w", err)
}

// fill copies a zip and returns how long it is; most is what is too long.
func (s spool) fill(from io.Reader, most int64) (int64, error) {
	return io.Copy(struct{ io.Writer }{s}, io.LimitReader(from, most))
}

func (s spool) close() {
	_ = s.Close()
	if s.named { // else the name may be another file's by now
		_ = os.Remove(s.Name())
	}
}
