package rewind

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync"
)

// What is read ahead of a destination at most, and how much at a time: little enough for a processor's cache, and often
// enough that neither the destination nor the hash runs dry while another process has the processor.
const (
	relayBlock  = 64 << 10
	relayBlocks = 128
)

// relay copies a file to its destination and into a hash. A large one keeps three goroutines at work: one reads and
// deciphers ahead, one hashes, and the caller's own writes, since the destination may be the caller's code and may panic.
// The other two have ended when ReadFrom returns.
type relay struct {
	to   io.Writer
	sum  hash.Hash
	stop func() // makes a read return that waits for the server
}

func newRelay(to io.Writer, stop func()) *relay { return &relay{to: to, sum: sha256.New(), stop: stop} }

// sha256 is the sum of what was written, in hexadecimal.
func (r *relay) sha256() string { return hex.EncodeToString(r.sum.Sum(nil)) }

func (r *relay) Write(b []byte) (int, error) {
	n, err := r.to.Write(b)
	_, _ = r.sum.Write(b[:n]) // a hash takes everything
	return n, err
}

// ReadFrom is what [io.Copy] calls.
func (r *relay) ReadFrom(from io.Reader) (n int64, err error) {
	if few, ok := from.(*io.LimitedReader); ok && few.N <= relayBlock {
		return io.Copy(struct{ io.Writer }{r}, from)
	}
	ahead := newReadAhead(from)
	hashing := make(chan []byte, relayBlocks)
	var working sync.WaitGroup
	defer working.Wait()
	defer close(hashing)
	working.Go(ahead.run)
	working.Go(func() {
		for block := range hashing {
			_, _ = r.sum.Write(block)
			ahead.free <- block[:relayBlock]
		}
	})
	ended := false
	defer func() {
		if !ended {
			close(ahead.unwanted)
			r.stop()
		}
	}()
	for block := range ahead.full {
		written, err := r.to.Write(block)
		n += int64(written)
		if err == nil && written < len(block) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return n, err
		}
		hashing <- block
	}
	ended = true
	return n, ahead.failure
}

// readAhead fills blocks from a reader for as long as there are free ones, and makes no more of them than it needs. A block
// is in one place at a time, and every channel holds all of them, so that handing one on never waits.
type readAhead struct {
	from       io.Reader
	made       int
	free, full chan []byte
	unwanted   chan struct{} // closed when nobody takes what is read
	failure    error         // why the reading ended, nil at the end of the file; read after full is closed
}

func newReadAhead(from io.Reader) *readAhead {
	return &readAhead{from: from, free: make(chan []byte, relayBlocks), full: make(chan []byte, relayBlocks), unwanted: make(chan struct{})}
}

func (a *readAhead) run() {
	defer close(a.full)
	for block := a.next(); block != nil; block = a.next() {
		n := 0
		var err error
		for n < len(block) && err == nil {
			var more int
			more, err = a.from.Read(block[n:])
			n += more
		}
		if n > 0 {
			a.full <- block[:n]
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				a.failure = err
			}
			return
		}
	}
}

// next is a block to fill, nil when nobody wants another.
func (a *readAhead) next() []byte {
	select {
	case block := <-a.free:
		return block
	default:
	}
	if a.made < relayBlocks {
		a.made++
		return make([]byte, relayBlock)
	}
	select {
	case block := <-a.free:
		return block
	case <-a.unwanted:
		return nil
	}
}
