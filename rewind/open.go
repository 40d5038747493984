package rewind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Stat looks at one file, folder or partition of a guarded VM as it was at the guard's checkpoint. It mounts and closes as
// [Session.Recover] does, and finds the path in the same way, with the same errors. What cannot be downloaded is a result.
func (s *Session) Stat(ctx context.Context, g *Guard, path string, opts ...PlaceOption) (*ListedItem, error) {
	wanted, from, err := s.chooseItem(ctx, g, path, opts)
	if err != nil {
		return nil, err
	}
	var found *ListedItem
	_, _, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		item, err := m.locate(ctx, wanted)
		if err == nil {
			listed := listedItem(item)
			found = &listed
		}
		return err
	})
	return found, err
}

// chooseItem reads a path that names something below the partitions' list, and picks what to mount.
func (s *Session) chooseItem(ctx context.Context, g *Guard, path string, opts []PlaceOption) (guestPath, covered, error) {
	wanted, err := parseGuestPath(path)
	if err != nil {
		return guestPath{}, covered{}, err
	}
	from, err := s.chooseMount(ctx, g, opts)
	if err == nil && wanted.isTop() && from.partition == "" {
		err = fmt.Errorf("rewind: %q names no file or folder", path)
	}
	return wanted, from, err
}

// GuestFile is a file of a mounted checkpoint that is being read. It holds an FLR session open until it is closed, until
// all of it was read, or until the context it was opened with ends.
type GuestFile struct {
	times  *laps
	item   ListedItem
	data   *io.PipeReader
	cancel context.CancelFunc

	ended    chan struct{} // closed once the session is; what follows is not read before that
	recovery *Recovery     // nil unless every byte was read
	open     error         // why the session is still open
}

// Open opens one file of a guarded VM for reading, as it was at the guard's checkpoint: it mounts the checkpoint, finds the
// path as [Session.Recover] does, with the same errors, and starts the download. Nothing is written anywhere, except that
// a file which the server sends in a zip passes through a temporary file.
//
// The size is checked against the server's list at the end: whoever reads up to [io.EOF] has read the whole file, and what
// was read before another error is not one. One goroutine downloads, and ends with the session. It is closed as soon as ctx
// ends, so that a file that nobody closes does not stay mounted longer than that.
func (s *Session) Open(ctx context.Context, g *Guard, path string, opts ...PlaceOption) (*GuestFile, error) {
	times := startLaps()
	wanted, from, err := s.chooseItem(ctx, g, path, opts)
	if err != nil {
		return nil, err
	}
	times.end("check")
	ctx, cancel := context.WithCancel(ctx)
	data, to := io.Pipe()
	f := &GuestFile{times: times, data: data, cancel: cancel, ended: make(chan struct{})}
	flowing := make(chan struct{})
	var failed error
	go func() {
		defer close(f.ended)
		defer cancel()
		// Whoever writes into the pipe waits for a reader, who may be gone.
		defer context.AfterFunc(ctx, func() { _ = to.CloseWithError(context.Cause(ctx)) })()
		failed = s.stream(ctx, f, recoveryOf(g, from), from, wanted, pipeSink{PipeWriter: to, flowing: flowing})
		_ = to.CloseWithError(failed)
		var left *LeftOpenError
		if errors.As(failed, &left) {
			f.open = left
		}
	}()
	select {
	case <-flowing:
		return f, nil
	case <-f.ended:
		return nil, failed
	}
}

// stream downloads into a pipe, and says in f what it found. A panic of a callback is an error: it would end the process from
// a goroutine that is not its owner's.
func (s *Session) stream(ctx context.Context, f *GuestFile, r *Recovery, from covered, wanted guestPath, to pipeSink) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &LeftOpenError{
				What: "an FLR session of checkpoint", ID: string(from.CheckpointID), MayBe: true, Command: s.sweepCommand(),
				Err: fmt.Errorf("rewind: reading a file panicked: %v", p),
			}
		}
	}()
	whole := false
	times := f.times
	r.FLRSessionID, r.Unmounted, err = s.withMount(ctx, from, func(ctx context.Context, m mounted) error {
		times.end("mount")
		item, err := m.locate(ctx, wanted)
		if err != nil {
			return err
		}
		if err := refuseFile(item); err != nil {
			return err
		}
		f.item = listedItem(item)
		times.end("browse")
		err = s.bring(ctx, m, r, item, to)
		times.end("download")
		whole = err == nil
		return err
	})
	times.end("unmount")
	r.Stages = times.times
	if whole {
		f.recovery = r
	}
	return err
}

func recoveryOf(g *Guard, from covered) *Recovery {
	return &Recovery{
		ChangeID: g.record.ChangeID, VM: from.vms[0].Name, VMID: from.vms[0].ID, VPGID: from.VPGID, CheckpointID: from.CheckpointID,
		RecoverySiteID: from.at.site, Tag: from.Tag, CheckpointTime: from.Timestamp,
	}
}

// bring downloads one file, tells of it, and notes in r what it is.
func (s *Session) bring(ctx context.Context, m mounted, r *Recovery, item zvm.Item, to Sink) error {
	r.GuestPath = item.Path
	r.Created, r.Accessed, r.Written = known(item.Created), known(item.Accessed), known(item.Written)
	return s.metered(m, item.Size, func(m mounted) (err error) {
		r.Bytes, r.SHA256, err = s.download(ctx, m, item, to)
		return err
	})
}

// refuseFile says why an item cannot be downloaded as a file.
func refuseFile(item zvm.Item) error {
	switch {
	case !item.Downloadable:
		return &NotDownloadableError{Path: item.Path, Reason: item.Reason}
	case item.Browsable:
		return &NotDownloadableError{Path: item.Path, Reason: ErrFolder.Error(), kind: ErrFolder}
	}
	return nil
}

// Item is what the server lists of the file.
func (f *GuestFile) Item() ListedItem { return f.item }

// Read reads as [io.Reader] says. It fails once the context that the file was opened with has ended.
func (f *GuestFile) Read(b []byte) (int, error) { return f.data.Read(b) }

// Close ends the reading, closes the FLR session and waits until the server no longer lists it, or says with a
// [*LeftOpenError] that it does. Closing again tells the same.
func (f *GuestFile) Close() error {
	f.cancel()
	_ = f.data.CloseWithError(fs.ErrClosed)
	<-f.ended
	return f.open
}

// Recovery is the evidence of a file that was read to its end, once the session is closed: ask after [GuestFile.Close]. It
// is nil unless every byte was read, and names no Dest.
func (f *GuestFile) Recovery() *Recovery {
	select {
	case <-f.ended:
		return f.recovery
	default:
		return nil
	}
}

// pipeSink hands a download to whoever reads the other end.
type pipeSink struct {
	*io.PipeWriter

	flowing chan struct{} // closed once the download has begun
}

func (p pipeSink) Check() error { return nil }
func (p pipeSink) dest() string { return "" }
func (p pipeSink) open() (pendingFile, error) {
	close(p.flowing)
	return p, nil
}

// commit is the end of a whole file: the reader learns of it before the session is closed.
func (p pipeSink) commit() error { return p.PipeWriter.Close() }
func (p pipeSink) discard()      {}
