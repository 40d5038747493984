//go:build !race

// The race detector makes half a minute of inflating four gibibytes.

package rewind

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"io"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Every byte of a file beyond four gibibytes comes out of a zip that is streamed, with its sizes behind the data (cases B49).
func TestAFileOfMoreThanFourGibibytesComesOutOfAZip(t *testing.T) {
	t.Parallel()
	if seed := flag.Lookup("seed"); seed != nil && seed.Value.String() != seed.DefValue {
		return // it asks no simulated ZVM: one run of many is enough
	}
	const size, crc = 4<<30 + 1, 0x41d912ff
	made := deflatedZeros(t, "huge.img", size, crc)
	body := io.NopCloser(bytes.NewReader(made))
	n, err := copyFile(io.Discard, &zvm.Download{Body: body, Size: -1}, zvm.Item{Path: "V/srv/huge.img", Size: size})
	if n != size || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// deflatedZeros is a zip of size zeros, made of one block again and again: what a block of zeros becomes depends on nothing.
func deflatedZeros(t *testing.T, name string, size uint64, crc uint32) []byte {
	t.Helper()
	const block = 16 << 20
	var deflated bytes.Buffer
	deflate, err := flate.NewWriter(&deflated, flate.BestCompression)
	must(t, err)
	_, err = deflate.Write(make([]byte, block))
	must(t, err)
	must(t, deflate.Flush())
	whole := bytes.Clone(deflated.Bytes())
	deflated.Reset()
	_, err = deflate.Write(make([]byte, size%block))
	must(t, err)
	must(t, deflate.Close())
	content := append(bytes.Repeat(whole, int(size/block)), deflated.Bytes()...)

	var made bytes.Buffer
	z := zip.NewWriter(&made)
	const sizesBehind = 1 << 3 // a data descriptor (APPNOTE 4.3.9)
	entry, err := z.CreateRaw(&zip.FileHeader{
		Name: name, Method: zip.Deflate, Flags: sizesBehind,
		CRC32: crc, CompressedSize64: uint64(len(content)), UncompressedSize64: size,
	})
	must(t, err)
	_, err = entry.Write(content)
	must(t, err)
	must(t, z.Close())
	return made.Bytes()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
