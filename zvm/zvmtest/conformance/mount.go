package conformance

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func mountBehaviours() []behaviour {
	return []behaviour{
		{"a VM can be mounted from a tagged checkpoint", true, mountGetsReady},
		{"an FLR session tells what is mounted", true, sessionTells},
		{"a mounted VM can be browsed", true, browsable},
		{"a file arrives whole", true, fileArrives},
		{"an unmounted session is listed no more", true, unmountEnds},
		{"a second unmount does no harm", true, secondUnmount},
	}
}

// openSession is the FLR session of the run.
type openSession struct {
	id     zvm.SessionID
	ended  zvm.SessionID // the same, once it is closed
	target zvm.FLRTarget
	ready  bool
	file   *zvm.Item // a small file found by browsing
}

func mountGetsReady(ctx context.Context, s *suite) error {
	all, err := s.needTagged()
	if err != nil {
		return err
	}
	local := slices.IndexFunc(all, func(t taggedPoint) bool { return t.vpg.Local() })
	if local < 0 {
		return notApplicable("no VPG of the VM is replicated locally")
	}
	target := zvm.FLRTarget{VPG: all[local].vpg.ID, VM: s.rows[0].ID, Checkpoint: all[local].point.ID}
	id, err := s.Client.MountFLR(ctx, target)
	if err != nil {
		return s.lost("an FLR session of VM "+string(target.VM), err)
	}
	s.session = openSession{id: id, target: target}
	var seen []string
	err = s.poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := s.Client.GetFLRSession(ctx, id)
		if err != nil {
			return false, err
		}
		if !slices.Contains(seen, now.Status) {
			seen = append(seen, now.Status)
		}
		if now.Failed() {
			return false, errors.New("the session says " + now.Status)
		}
		return now.Ready(), nil
	})
	s.answer(22, "statuses of an FLR session", "%s", strings.Join(seen, ", "))
	s.session.ready = err == nil
	return err
}

func (s *suite) needSession() (openSession, error) {
	if !s.session.ready {
		return openSession{}, notApplicable("nothing is mounted")
	}
	return s.session, nil
}

func sessionTells(ctx context.Context, s *suite) error {
	open, err := s.needSession()
	if err != nil {
		return err
	}
	listed, err := s.Client.ListFLRSessions(ctx, open.target.VM)
	if err != nil {
		return err
	}
	for _, one := range listed {
		if one.ID != open.id {
			continue
		}
		if one.FLRTarget != open.target {
			return errors.New("it is listed with another VPG, VM or checkpoint")
		}
		return nil
	}
	return errors.New("it is not listed")
}

// maxBrowsed bounds how many folders are looked into for a small file, and
// maxFile what a small file is.
const (
	maxBrowsed = 40
	maxFile    = 1 << 20
)

func browsable(ctx context.Context, s *suite) error {
	open, err := s.needSession()
	if err != nil {
		return err
	}
	roots, err := s.Client.BrowseFLR(ctx, open.id, "")
	switch {
	case err != nil:
		return err
	case len(roots.Items) == 0:
		return errors.New("it has no partition")
	}
	queue := roots.Items
	for browsed := 0; len(queue) > 0 && browsed < maxBrowsed && s.session.file == nil; browsed++ {
		folder := queue[0]
		queue = queue[1:]
		if !folder.Browsable {
			continue
		}
		if s.OmitNames || strings.Contains(folder.Path, "/") {
			s.scrub.name("path", folder.Path)
		}
		inside, err := s.Client.BrowseFLR(ctx, open.id, folder.Path)
		if err != nil {
			return err
		}
		for _, item := range inside.Items {
			if !strings.HasPrefix(item.Path, folder.Path+"/") {
				return errors.New("an item is not under the folder that holds it")
			}
			if item.Downloadable && !item.Browsable && item.Size > 0 && item.Size <= maxFile {
				s.session.file = &item
			}
		}
		queue = append(queue, inside.Items...)
	}
	s.answer(25, "the roots of a mounted VM", "%s", s.shownPaths(roots.Items))
	return nil
}

func (s *suite) shownPaths(items []zvm.Item) string {
	if s.OmitNames {
		return fmt.Sprintf("%d", len(items))
	}
	var paths []string
	for _, item := range items {
		paths = append(paths, fmt.Sprintf("%q (%s)", item.Path, item.Type))
	}
	return strings.Join(paths, ", ")
}

func fileArrives(ctx context.Context, s *suite) error {
	open, err := s.needSession()
	if err != nil {
		return err
	}
	if open.file == nil {
		return notApplicable("no small file was found")
	}
	download, err := s.Client.DownloadFLR(ctx, open.id, open.file.Path)
	if err != nil {
		return err
	}
	defer func() { _ = download.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(download.Body, 4*maxFile))
	if err != nil {
		return err
	}
	form := "raw"
	if int64(len(data)) != open.file.Size && bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		form = "a zip"
		if data, err = onlyEntry(data); err != nil {
			return err
		}
	}
	s.answer(29, "the download of one file", "%s; announced size %s", form, announced(download.Size))
	if int64(len(data)) != open.file.Size {
		return fmt.Errorf("%d bytes came, %d were listed", len(data), open.file.Size)
	}
	return nil
}

func announced(size int64) string {
	if size < 0 {
		return "none"
	}
	return "given"
}

func onlyEntry(archive []byte) ([]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	if len(r.File) != 1 {
		return nil, fmt.Errorf("the zip of one file has %d entries", len(r.File))
	}
	entry, err := r.File[0].Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = entry.Close() }()
	return io.ReadAll(io.LimitReader(entry, 4*maxFile))
}

func unmountEnds(ctx context.Context, s *suite) error {
	if s.session.id == "" {
		return notApplicable("nothing was mounted")
	}
	if err := s.unmount(ctx); err != nil {
		return err
	}
	s.session = openSession{ended: s.session.id}
	return nil
}

// unmount closes the session and waits until it is listed no more.
func (s *suite) unmount(ctx context.Context) error {
	id := s.session.id
	taskID, err := s.Client.UnmountFLR(ctx, id)
	if err != nil && !errors.Is(err, zvm.ErrNotFound) {
		return err
	}
	if taskID != "" {
		var ended *task.Error
		if _, err := s.wait(ctx, taskID); errors.As(err, &ended) {
			return err
		}
	}
	return s.shortly(ctx, func(ctx context.Context) (bool, error) {
		all, err := s.Client.ListFLRSessions(ctx, "")
		return !slices.ContainsFunc(all, func(f zvm.FLRSession) bool { return f.ID == id }), err
	})
}

func secondUnmount(ctx context.Context, s *suite) error {
	if s.session.ended == "" {
		return notApplicable("nothing was unmounted")
	}
	_, err := s.Client.UnmountFLR(ctx, s.session.ended)
	if err == nil {
		s.answer(30, "a second DELETE of an FLR session", "accepted")
		return nil
	}
	s.answer(30, "a second DELETE of an FLR session", "%s", refusal(err))
	if errors.Is(err, zvm.ErrOutcomeUnknown) {
		return err
	}
	return nil
}
