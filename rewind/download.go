package rewind

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// download streams one file into the sink and lets it appear only if it is whole.
func (s *Session) download(ctx context.Context, m mounted, item zvm.Item, sink Sink) (n int64, sum string, err error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	data, err := m.at.zvm.DownloadFLR(reading, m.session, item.Path)
	if err != nil {
		return 0, "", fmt.Errorf("downloading %s: %w", item.Path, err)
	}
	defer data.Body.Close() //nolint:errcheck // the body has been read to its end, or its error returned
	file, err := sink.open()
	if err != nil {
		return 0, "", err
	}
	defer file.discard()
	out := newRelay(io.MultiWriter(file, m.meter), stop)
	n, err = copyFile(out, data, item)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err) // the connection was closed because the caller left
		}
		return 0, "", fmt.Errorf("downloading %s, after %d bytes: %w", item.Path, n, err)
	}
	return n, out.sha256(), file.commit()
}
