package rewind

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// download streams one file into the sink and lets it appear only if it is whole.
func (s *Session) download(ctx context.Context, m mounted, item zvm.Item, sink Sink) (n int64, sum string, err error) {
	data, err := s.zvm.DownloadFLR(ctx, m.session, item.Path)
	if err != nil {
		return 0, "", fmt.Errorf("downloading %s: %w", item.Path, err)
	}
	defer data.Body.Close() //nolint:errcheck // the body has been read to its end, or its error returned
	s.progress(Event{Stage: StageDownloading, VPGName: m.vpgName, Session: m.session, Bytes: item.Size})
	file, err := sink.open()
	if err != nil {
		return 0, "", err
	}
	defer func() {
		if err != nil {
			file.discard()
		}
	}()
	hash := sha256.New()
	n, err = copyFile(io.MultiWriter(file, hash), data, item)
	if err == nil && item.Size >= 0 && n != item.Size {
		err = fmt.Errorf("got %d bytes of a file of %d", n, item.Size)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err) // the connection was closed because the caller left
		}
		return 0, "", fmt.Errorf("downloading %s, after %d bytes: %w", item.Path, n, err)
	}
	return n, hex.EncodeToString(hash.Sum(nil)), file.commit()
}

// copyFile copies one file's bytes out of a download, which may be the file or a zip that holds it. A file that is a zip
// itself is told from its container by its size.
func copyFile(to io.Writer, data *zvm.Download, item zvm.Item) (int64, error) {
	from := bufio.NewReader(data.Body)
	magic, err := from.Peek(4)
	zipped := err == nil && string(magic) == "PK\x03\x04" && (item.Size < 0 || data.Size != item.Size)
	if !zipped {
		return io.Copy(to, from)
	}
	spool, err := os.CreateTemp("", ".rewind-*.zip")
	if err != nil {
		return 0, err
	}
	defer os.Remove(spool.Name()) //nolint:errcheck // a temporary file of ours
	defer spool.Close()           //nolint:errcheck // read only from here on
	size, err := io.Copy(spool, from)
	if err != nil {
		return 0, err
	}
	if size == item.Size { // the file is a zip, and the server did not announce its size
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		return io.Copy(to, spool)
	}
	return copyEntry(to, spool, size, item.Size)
}

// copyEntry copies the one file that a zip holds, checked against the zip's own checksum. Its name does not matter: the
// destination was chosen by whoever asked. No more than one byte over the expected size is unpacked, if that is known.
func copyEntry(to io.Writer, archive io.ReaderAt, size, expected int64) (int64, error) {
	z, err := zip.NewReader(archive, size)
	if err != nil {
		return 0, fmt.Errorf("reading the zip the server sent: %w", err)
	}
	var files []*zip.File
	for _, f := range z.File {
		if !f.FileInfo().IsDir() {
			files = append(files, f)
		}
	}
	if len(files) != 1 || !files[0].Mode().IsRegular() {
		return 0, fmt.Errorf("the server sent a zip of %d files for one file", len(files))
	}
	entry, err := files[0].Open()
	if err != nil {
		return 0, err
	}
	var content io.Reader = entry
	if expected >= 0 {
		content = io.LimitReader(entry, expected+1)
	}
	n, err := io.Copy(to, content)
	return n, errors.Join(err, entry.Close())
}
