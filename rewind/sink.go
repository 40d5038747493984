package rewind

import (
	"errors"
	"fmt"
	"io"
)

// Sink is where a recovered file goes. [ToFile], [ToRoot] and [ToWriter] make one.
type Sink interface {
	// Check refuses early what could only fail later: a destination that is taken, or that has no folder. [Session.Recover]
	// checks before it asks the ZVM for anything; whoever asks the ZVM before that can check first. It changes nothing.
	Check() error
	// open returns where to write. Commit or discard follows; discard after commit changes nothing.
	open() (pendingFile, error)
	// dest names the destination in results, empty when it has no name.
	dest() string
}

type pendingFile interface {
	io.Writer
	commit() error
	discard()
}

// DestinationError says that a file could not be put where it was to go. It is not there: an existing file, which is an
// error that matches [io/fs.ErrExist] unless [Replace] is given, is as it was.
type DestinationError struct {
	Dest string // as results name it
	Err  error
}

func (e *DestinationError) Error() string { return fmt.Sprintf("recovering to %s: %v", e.Dest, e.Err) }

// Unwrap returns what went wrong.
func (e *DestinationError) Unwrap() error { return e.Err }

// ToWriter writes to w as the bytes arrive. A failed recovery may have written some of them.
func ToWriter(w io.Writer) Sink { return writerSink{w} }

type writerSink struct{ io.Writer }

func (w writerSink) Check() error {
	if w.Writer == nil {
		return errors.New("rewind: ToWriter needs a writer")
	}
	return nil
}

func (w writerSink) open() (pendingFile, error) { return w, nil }
func (w writerSink) dest() string               { return "" }
func (w writerSink) commit() error              { return nil }
func (w writerSink) discard()                   {}

func checkSink(sink Sink) error {
	if sink == nil {
		return errors.New("rewind: Recover needs a sink: ToFile, ToRoot or ToWriter makes one")
	}
	return sink.Check()
}
