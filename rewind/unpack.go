package rewind

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// copyFile copies one file's bytes out of a download, which may be the file or a zip that holds it (zvm-wire 6.5). A file
// that is a zip itself is told from its container by its size, so that a zip of a file whose size is not known is refused:
// it may be either. Of a file whose size is known no more than one byte over it is written, and another number of bytes
// is an error.
func copyFile(to io.Writer, data *zvm.Download, item zvm.Item) (int64, error) {
	from := bufio.NewReader(data.Body)
	magic, err := from.Peek(4)
	zipped := err == nil && string(magic) == "PK\x03\x04"
	switch {
	case zipped && item.Size < 0:
		return 0, &NotDownloadableError{
			Path:   item.Path,
			Reason: "the server sent a zip and tells no size: whether that is the file or holds it cannot be known",
		}
	case zipped && (data.Size != item.Size || mayBeContainer(from, item)):
		return copyZip(to, from, item)
	case item.Size < 0:
		return io.Copy(to, from)
	}
	return copyExactly(to, from, item.Size)
}

// copyExactly copies size bytes. It reads to the end, so that whatever checks the data there does.
func copyExactly(to io.Writer, from io.Reader, size int64) (int64, error) {
	n, err := io.Copy(to, io.LimitReader(from, size+1))
	switch {
	case err != nil:
		return n, err
	case n > size:
		return n, fmt.Errorf("the server sends more than the %d bytes that it lists", size)
	case n < size:
		return n, fmt.Errorf("got %d bytes of a file of %d", n, size)
	}
	return n, nil
}

// mayBeContainer reports whether a zip as long as the file is may yet be the file's container: its first entry bears the
// file's name then. It looks ahead only, as far as a name reaches.
func mayBeContainer(from *bufio.Reader, item zvm.Item) bool {
	const fixed, nameLength = 30, 26 // of a local file header (APPNOTE 4.3.7)
	head, err := from.Peek(fixed)
	if err != nil {
		return false
	}
	head, err = from.Peek(fixed + int(binary.LittleEndian.Uint16(head[nameLength:])))
	return err != nil || bearsName(string(head[fixed:]), item)
}

// copyZip spools a zip, which is read from its end, and copies the file: what the zip holds, or the zip.
func copyZip(to io.Writer, from io.Reader, item zvm.Item) (n int64, err error) {
	spool, err := newSpool()
	if err != nil {
		return 0, err
	}
	defer spool.close()
	most := largestContainer(item.Size)
	size, err := spool.fill(from, most)
	switch {
	case err != nil:
		return 0, err
	case size == most:
		return 0, fmt.Errorf("the server sends a zip of %d bytes and more for a file of %d", size, item.Size)
	}
	entry, err := onlyEntry(spool, size, item)
	contained := err == nil && entry.UncompressedSize64 == uint64(item.Size) //nolint:gosec // never negative here
	switch {
	case size == item.Size && !contained:
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		return copyExactly(to, spool, item.Size)
	case err != nil:
		return 0, err
	}
	content, err := entry.Open()
	if err != nil {
		return 0, err
	}
	n, err = copyExactly(to, content, item.Size)
	return n, errors.Join(err, content.Close())
}

// largestContainer bounds a zip of one file: what compression may add to bytes that do not shrink, and the headers, in
// which the name stands twice.
func largestContainer(size int64) int64 {
	const headers = 512 << 10
	if size > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return size + size>>8 + headers
}

// frugal reads so much of a zip and no more until it is open: the directory is held in memory, however long it was made.
type frugal struct {
	io.ReaderAt

	left int64
	open bool
}

func (f *frugal) ReadAt(b []byte, at int64) (int, error) {
	if f.open {
		return f.ReaderAt.ReadAt(b, at)
	}
	if f.left < int64(len(b)) {
		return 0, errors.New("its directory is too long")
	}
	n, err := f.ReaderAt.ReadAt(b, at)
	f.left -= int64(n)
	return n, err
}

// openZip reads the directory of a zip that should hold a number of files.
func openZip(archive io.ReaderAt, size int64, files int) (*zip.Reader, error) {
	const end, entry = 256 << 10, 8 << 10 // the end has a comment of up to 64 KiB, and is looked for in two steps
	reading := &frugal{ReaderAt: archive, left: end + int64(files)*entry}
	z, err := zip.NewReader(reading, size)
	reading.open = true
	return z, err
}

// onlyEntry returns the one file that a zip holds, if it is what was asked for.
func onlyEntry(archive io.ReaderAt, size int64, item zvm.Item) (*zip.File, error) {
	z, err := openZip(archive, size, 1)
	if err != nil {
		return nil, fmt.Errorf("reading the zip the server sent: %w", err)
	}
	var files []*zip.File
	for _, f := range z.File {
		if !f.FileInfo().IsDir() {
			files = append(files, f)
		}
	}
	if len(files) != 1 {
		return nil, &NotDownloadableError{Path: item.Path, Reason: fmt.Sprintf("the server sent a zip of %d files for it", len(files))}
	}
	if why := whyNotAsked(files[0], item); why != "" {
		return nil, &NotDownloadableError{Path: item.Path, Reason: fmt.Sprintf("the server sent a zip of %q for it, which %s", files[0].Name, why)}
	}
	return files[0], nil
}

// whyNotAsked says why an entry of a zip is not the file that was asked for, empty when it is.
func whyNotAsked(entry *zip.File, item zvm.Item) string {
	const encrypted = 1 << 0 // of the flags (APPNOTE 4.4.4)
	switch {
	case !entry.Mode().IsRegular():
		return "is a link or a device"
	case entry.Flags&encrypted != 0:
		return "is encrypted"
	case !bearsName(entry.Name, item):
		return "is another name"
	}
	return ""
}
