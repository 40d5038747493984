package rewind

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestASpoolLeavesNothing(t *testing.T) {
	t.Parallel()
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Name()); !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
		t.Errorf("a process that is killed leaves %s: %v", s.Name(), err)
	}
	n, err := s.fill(io.MultiReader(bytes.NewReader([]byte("zip")), bytes.NewReader([]byte("ped"))), 5)
	content := make([]byte, 5)
	_, readErr := s.ReadAt(content, 0)
	if n != 5 || string(content) != "zippe" || err != nil || readErr != nil {
		t.Errorf("holds %d bytes, %q, %v, %v", n, content, err, readErr)
	}
	s.close()
	if _, err := os.Stat(s.Name()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", s.Name(), err)
	}
}

// zip64Of is a zip of one stored file, with the headers that files of 4 GiB and more need (APPNOTE 4.5.3): size stands in
// them as it is given, whatever content holds.
func zip64Of(name string, content []byte, size uint64) []byte {
	const fills = 0xffffffff // says that the extra field has the number
	le := binary.LittleEndian
	sizes := le.AppendUint16(nil, 1)
	sizes = le.AppendUint16(sizes, 16)
	sizes = le.AppendUint64(le.AppendUint64(sizes, size), size)
	common := func(b []byte) []byte {
		b = le.AppendUint16(b, 45) // the version that knows zip64
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(b, crc32.ChecksumIEEE(content))
		b = le.AppendUint32(le.AppendUint32(b, fills), fills)
		return le.AppendUint16(le.AppendUint16(b, uint16(len(name))), uint16(len(sizes)))
	}
	z := common([]byte("PK\x03\x04"))
	z = append(append(append(z, name...), sizes...), content...)
	directory := len(z)
	z = common(le.AppendUint16([]byte(string(z)+"PK\x01\x02"), 45))
	z = append(z, make([]byte, 14)...)
	z = append(append(z, name...), sizes...)
	end := len(z)
	z = le.AppendUint64(append(z, "PK\x06\x06"...), 44)
	z = le.AppendUint16(le.AppendUint16(z, 45), 45)
	z = append(z, make([]byte, 8)...)
	z = le.AppendUint64(le.AppendUint64(z, 1), 1)
	z = le.AppendUint64(le.AppendUint64(z, uint64(end-directory)), uint64(directory))
	z = append(append(z, "PK\x06\x07"...), 0, 0, 0, 0)
	z = le.AppendUint32(le.AppendUint64(z, uint64(end)), 1)
	z = append(append(z, "PK\x05\x06"...), 0, 0, 0, 0)
	z = le.AppendUint16(le.AppendUint16(z, 0xffff), 0xffff)
	z = le.AppendUint32(le.AppendUint32(z, fills), fills)
	return append(z, 0, 0)
}

func TestAFileComesOutOfAZip64(t *testing.T) {
	t.Parallel()
	content := noise(relayBlock + 5)
	z := zip64Of("big.bin", content, uint64(len(content)))
	var got bytes.Buffer
	item := zvm.Item{Path: "V/big.bin", Size: int64(len(content))}
	n, err := copyFile(newRelay(&got, func() {}), &zvm.Download{Body: io.NopCloser(bytes.NewReader(z)), Size: -1}, item)
	if err != nil || n != item.Size || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("copied %d bytes, %v", n, err)
	}
}

// Five gibibytes are told from the one kilobyte that the low halves of the numbers would make.
func TestSizesAboveFourGibibytesCount(t *testing.T) {
	t.Parallel()
	const size = 5<<30 + 1024
	z := zip64Of("big.bin", noise(1024), size)
	entry, err := onlyEntry(bytes.NewReader(z), int64(len(z)), zvm.Item{Path: "V/big.bin"})
	if err != nil || entry.UncompressedSize64 != size {
		t.Fatalf("entry %+v, %v", entry, err)
	}
	for _, listed := range []int64{size, 1024} {
		body := io.NopCloser(bytes.NewReader(z))
		n, err := copyFile(newRelay(io.Discard, func() {}), &zvm.Download{Body: body, Size: -1}, zvm.Item{Path: "V/big.bin", Size: listed})
		if err == nil {
			t.Errorf("%d bytes passed for a file of %d", n, listed)
		}
	}
}

// counted tells how many bytes were read.
type counted struct {
	io.ReaderAt

	n int64
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.n += int64(n)
	return n, err
}

// A zip's directory stands in memory. One that names more than the file is not read to its end; a file that is such a zip comes back.
func TestTheDirectoryOfAZipIsReadInConstantMemory(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for range 40_000 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: "data.bin"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	archive := &counted{ReaderAt: bytes.NewReader(b.Bytes())}
	if _, err := onlyEntry(archive, int64(b.Len()), zvm.Item{Path: "Volume1/srv/data.bin"}); err == nil || archive.n > 1<<20 {
		t.Errorf("%v, after %d of %d bytes", err, archive.n, b.Len())
	}
	var got bytes.Buffer
	item := zvm.Item{Path: "Volume1/srv/data.bin", Size: int64(b.Len())}
	if _, err := copyZip(&got, &b, item); err != nil || int64(got.Len()) != item.Size {
		t.Errorf("%v, %d of %d bytes", err, got.Len(), item.Size)
	}
}
