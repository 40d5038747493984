package rewind

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func noise(n int) []byte {
	b := make([]byte, n)
	for i, rng := 0, rand.New(rand.NewPCG(1, 2)); i < n; i++ {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestRelayCopiesAndHashesWhateverTheSize(t *testing.T) {
	t.Parallel()
	const many = relayBlock * relayBlocks
	for _, size := range []int{0, 1, relayBlock - 1, relayBlock, relayBlock + 1, many, 3*many + 7} {
		want := noise(size)
		for name, from := range map[string]io.Reader{
			"limited":         io.LimitReader(bytes.NewReader(want), int64(size)+1),
			"in small pieces": iotest.HalfReader(io.LimitReader(bytes.NewReader(want), int64(size)+1)),
			"end with data":   iotest.DataErrReader(bytes.NewReader(want)),
		} {
			var got bytes.Buffer
			r := newRelay(&got, func() { t.Errorf("%s: %d bytes were stopped", name, size) })
			n, err := io.Copy(r, from)
			sum := sha256.Sum256(want)
			if err != nil || n != int64(size) || !bytes.Equal(got.Bytes(), want) || r.sha256() != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %d bytes: copied %d, %v", name, size, n, err)
			}
		}
	}
}

func TestRelaySaysWhatFailedAfterHowMuch(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	var got bytes.Buffer
	r := newRelay(&got, func() { t.Error("a reading that had ended was stopped") })
	const size = 5*relayBlock + 3
	n, err := io.Copy(r, io.MultiReader(bytes.NewReader(noise(size)), iotest.ErrReader(cut)))
	if !errors.Is(err, cut) || n != size || got.Len() != size {
		t.Errorf("a cut reading: %d bytes, %v", n, err)
	}
	for want, w := range map[error]io.Writer{cut: errorWriter{cut}, io.ErrShortWrite: shortWriter{}} {
		n, err := io.Copy(newRelay(w, func() {}), io.LimitReader(bytes.NewReader(noise(size)), size+1))
		if !errors.Is(err, want) || n > relayBlock {
			t.Errorf("%d bytes, %v, want %v", n, err, want)
		}
	}
}

type errorWriter struct{ err error }

func (w errorWriter) Write([]byte) (int, error) { return 0, w.err }

type shortWriter struct{}

func (shortWriter) Write(b []byte) (int, error) { return len(b) - 1, nil }

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("scripted") }

// A destination that fails or panics while the server is silent ends the reading, and leaves no goroutine: synctest
// fails the test for one.
func TestRelayStopsASilentReading(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]io.Writer{"fails": errorWriter{io.ErrClosedPipe}, "panics": panicWriter{}} {
		synctest.Test(t, func(t *testing.T) {
			silent, server := io.Pipe()
			go func() { _, _ = server.Write(noise(relayBlock)) }()
			defer func() {
				if p := recover(); (p != nil) != (name == "panics") {
					t.Errorf("%s: recovered %v", name, p)
				}
			}()
			if _, err := io.Copy(newRelay(w, func() { _ = server.Close() }), silent); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
