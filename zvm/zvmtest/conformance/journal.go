package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func journalBehaviours() []behaviour {
	return []behaviour{
		{"a window of a journal holds what lies in it", false, windowHolds},
		{"a narrower window leaves nothing out", false, narrowerWindow},
		{"a window of the future is empty", false, futureIsEmpty},
	}
}

// collect lists a window of a journal.
func (s *suite) collect(ctx context.Context, vpg zvm.VPGID, w zvm.Window) ([]zvm.Checkpoint, error) {
	var all []zvm.Checkpoint
	for point, err := range s.Client.ListCheckpoints(ctx, vpg, w) {
		if err != nil {
			return nil, err
		}
		all = append(all, point)
	}
	return all, nil
}

// recent lists the last minutes of the first VPG's journal.
func (s *suite) recent(ctx context.Context) (zvm.VPGID, []zvm.Checkpoint, error) {
	rows, err := s.need()
	if err != nil {
		return "", nil, err
	}
	now, err := s.Client.GetServerTime(ctx)
	if err != nil {
		return "", nil, err
	}
	points, err := s.collect(ctx, rows[0].VPG, zvm.Window{From: now.Add(-10 * time.Minute), To: now})
	if err == nil && len(points) < 3 {
		err = notApplicable("the journal got fewer than three checkpoints in ten minutes")
	}
	return rows[0].VPG, points, err
}

func windowHolds(ctx context.Context, s *suite) error {
	_, points, err := s.recent(ctx)
	if err != nil {
		return err
	}
	s.answer(13, "order of the checkpoint list", "%s", orderOf(points))
	ids := map[zvm.CheckpointID]bool{}
	for _, point := range points {
		if point.Time.Raw != "" {
			return fmt.Errorf("the time stamp %q was not understood", point.Time.Raw)
		}
		if ids[point.ID] {
			return errors.New("one checkpoint id came twice")
		}
		ids[point.ID] = true
	}
	byID(points)
	if !slices.IsSortedFunc(points, func(a, b zvm.Checkpoint) int { return a.Time.Compare(b.Time.Time) }) {
		return errors.New("ids and time stamps are not in the same order")
	}
	return nil
}

func byID(points []zvm.Checkpoint) {
	slices.SortFunc(points, func(a, b zvm.Checkpoint) int { return a.ID.Compare(b.ID) })
}

func orderOf(points []zvm.Checkpoint) string {
	oldestFirst := func(a, b zvm.Checkpoint) int { return a.Time.Compare(b.Time.Time) }
	newestFirst := func(a, b zvm.Checkpoint) int { return b.Time.Compare(a.Time.Time) }
	switch {
	case slices.IsSortedFunc(points, oldestFirst):
		return "oldest first"
	case slices.IsSortedFunc(points, newestFirst):
		return "newest first"
	}
	return "none"
}

// narrowerWindow leaves room on both sides, as package rewind does, and then
// none, to see whether bounds are inclusive.
func narrowerWindow(ctx context.Context, s *suite) error {
	vpg, points, err := s.recent(ctx)
	if err != nil {
		return err
	}
	byID(points)
	inner := points[1 : len(points)-1]
	from, to := inner[0].Time.Time, inner[len(inner)-1].Time.Time
	got, err := s.collect(ctx, vpg, zvm.Window{From: from.Add(-2 * time.Second), To: to.Add(2 * time.Second)})
	if err != nil {
		return err
	}
	for _, want := range inner {
		if !slices.ContainsFunc(got, func(c zvm.Checkpoint) bool { return c.ID == want.ID }) {
			return fmt.Errorf("a checkpoint of %v is missing between %v and %v", want.Time, from, to)
		}
	}
	exact, err := s.collect(ctx, vpg, zvm.Window{From: from, To: from})
	if err == nil {
		s.answer(13, "a window whose bounds are the time stamp of one checkpoint", "%d checkpoints", len(exact))
	}
	return err
}

func futureIsEmpty(ctx context.Context, s *suite) error {
	rows, err := s.need()
	if err != nil {
		return err
	}
	now, err := s.Client.GetServerTime(ctx)
	if err != nil {
		return err
	}
	points, err := s.collect(ctx, rows[0].VPG, zvm.Window{From: now.Add(time.Hour), To: now.Add(2 * time.Hour)})
	if err == nil && len(points) > 0 {
		err = fmt.Errorf("%d checkpoints lie in the future", len(points))
	}
	return err
}
