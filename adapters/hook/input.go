package hookadapter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxInput bounds what is kept of an input, in bytes as they arrive.
const maxInput = 20 << 20

var errTooLarge = fmt.Errorf("it is larger than %d MiB", maxInput>>20)

// input is what a host writes. One goroutine reads it: first one JSON value, then whatever else comes, since a host may
// take an input that was left unread for a failure of the hook.
type input struct {
	value chan reading
	ended chan struct{}
}

// reading is the one JSON value, as UTF-8, or why there is none and how the input begins.
type reading struct {
	text []byte
	err  error
}

// headSize is how much is kept of an input that could not be read.
const headSize = 4 << 10

func readInput(r io.Reader, limit int) *input {
	in := &input{value: make(chan reading, 1), ended: make(chan struct{})}
	go func() {
		defer close(in.ended)
		defer func() {
			if recover() != nil {
				in.value <- reading{err: errors.New("the input failed")}
			}
		}()
		capped := &cappedReader{r: r, left: limit}
		text, err := readValue(capped)
		if err != nil {
			text = capped.head
		}
		in.value <- reading{text, err}
		_, _ = io.Copy(io.Discard, r) // the answer does not depend on it
	}()
	return in
}

// drain waits until the input has ended, for the patience given at most.
func (in *input) drain(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-in.ended:
	case <-ctx.Done():
	}
}

// readValue reads one JSON value and not a byte of what has not arrived yet. What has arrived behind it may only be
// blank.
func readValue(r io.Reader) ([]byte, error) {
	text, err := asUTF8(r)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(text)
	var value json.RawMessage
	switch err := decoder.Decode(&value); {
	case errors.Is(err, errTooLarge):
		return nil, errTooLarge
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it ends before it is complete")
	case err != nil:
		// The decoder's words would quote the input.
		return nil, errors.New("it is not JSON")
	}
	rest, err := io.ReadAll(decoder.Buffered())
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the JSON value")
	}
	if !utf8.Valid(value) {
		return nil, errors.New("it is not valid UTF-8")
	}
	return value, nil
}

// asUTF8 takes away a byte order mark and decodes UTF-16 that has one. Windows programs write both.
func asUTF8(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	// Two bytes are enough to tell, and no JSON object is shorter.
	mark, err := buffered.Peek(2)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty")
		}
		return nil, errors.New("the input failed")
	}
	switch {
	case mark[0] == 0xFF && mark[1] == 0xFE:
		_, err = buffered.Discard(2)
		return &utf16Reader{r: buffered, low: 0, high: 1}, err
	case mark[0] == 0xFE && mark[1] == 0xFF:
		_, err = buffered.Discard(2)
		return &utf16Reader{r: buffered, low: 1, high: 0}, err
	case mark[0] != 0xEF:
		return buffered, nil
	}
	if mark, err := buffered.Peek(3); err != nil || mark[1] != 0xBB || mark[2] != 0xBF {
		return nil, errors.New("it is not JSON")
	}
	_, err = buffered.Discard(3)
	return buffered, err
}

// cappedReader fails with errTooLarge where io.LimitReader would feign an end.
type cappedReader struct {
	r    io.Reader
	left int
	head []byte // the first bytes that were read
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLarge
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	if room := headSize - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(n, room)]...)
	}
	return n, err
}

// utf16Reader decodes UTF-16 as it arrives. What is no UTF-16 becomes a byte that no UTF-8 has.
type utf16Reader struct {
	r         io.Reader
	low, high int    // where in a unit its low and high byte are
	encoded   []byte // read, and not yet a whole character
	decoded   []byte
	err       error
}

const neverUTF8 = 0xFF

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.decoded) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		var chunk [4 << 10]byte
		n, err := u.r.Read(chunk[:])
		u.encoded, u.err = append(u.encoded, chunk[:n]...), err
		u.decode()
	}
	n := copy(p, u.decoded)
	u.decoded = u.decoded[n:]
	return n, nil
}

func (u *utf16Reader) decode() {
	unit := func(i int) rune { return rune(u.encoded[i+u.low]) | rune(u.encoded[i+u.high])<<8 }
	u.decoded = u.decoded[:0]
	at := 0
	for ; at+2 <= len(u.encoded); at += 2 {
		r := unit(at)
		if !utf16.IsSurrogate(r) {
			u.decoded = utf8.AppendRune(u.decoded, r)
			continue
		}
		if at+4 > len(u.encoded) && u.err == nil {
			break
		}
		pair := rune(utf8.RuneError)
		if at+4 <= len(u.encoded) {
			pair = utf16.DecodeRune(r, unit(at+2))
		}
		if pair == utf8.RuneError {
			u.decoded = append(u.decoded, neverUTF8)
			continue
		}
		u.decoded = utf8.AppendRune(u.decoded, pair)
		at += 2
	}
	u.encoded = append(u.encoded[:0], u.encoded[at:]...)
	if errors.Is(u.err, io.EOF) && len(u.encoded) > 0 {
		u.decoded, u.encoded = append(u.decoded, neverUTF8), nil
	}
}
