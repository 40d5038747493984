package rewind

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// journal is what stands of ours in the journal of one VPG.
type journal struct {
	tags  map[zvm.CheckpointID]standing
	marks map[LeftoverKind][]mark // in the order in which they were written
	// theirs are the checkpoints that were asked about and stand there without a tag of ours.
	theirs map[zvm.CheckpointID]bool
}

func (j journal) ours() bool { return len(j.tags) > 0 || len(j.marks) > 0 }

// readJournal holds on to nothing but our own rows, of which there are few, and to those that the sessions are of.
func (s *Session) readJournal(ctx context.Context, vpg VPGProtection, now time.Time, of []zvm.FLRSession) (journal, error) {
	j := journal{tags: map[zvm.CheckpointID]standing{}, marks: map[LeftoverKind][]mark{}, theirs: map[zvm.CheckpointID]bool{}}
	marked := map[zvm.CheckpointID]zvm.Checkpoint{}
	for cp, err := range s.rows(ctx, vpg, time.Time{}, now) {
		if err != nil {
			return journal{}, err
		}
		tag, isTag := ParseTag(cp.Tag)
		_, isMark := parseMark(cp.Tag)
		switch {
		case isTag && !cp.Time.IsZero():
			j.tags[cp.ID] = standing{cp, tag}
		case isMark && !cp.Time.IsZero():
			marked[cp.ID] = cp
		}
		if !isTag && slices.ContainsFunc(of, func(f zvm.FLRSession) bool { return f.Checkpoint == cp.ID }) {
			j.theirs[cp.ID] = true
		}
	}
	for _, cp := range slices.SortedFunc(maps.Values(marked), compareCheckpoints) {
		m, _ := parseMark(cp.Tag)
		j.marks[m.kind] = append(j.marks[m.kind], m)
	}
	return j, nil
}

// startReach is how long after its mark a start is taken for the one that was announced. The mark is written, listed, and
// followed by the start at once.
const startReach = 10 * time.Minute

// startUnder returns the start that a mark announced, or what leaves in doubt that it is: the mark was taken back, there are
// several, or it was initiated by somebody who did not write the mark. An error always comes with a doubt.
func (s *Session) startUnder(ctx context.Context, vpg zvm.VPGID, m mark, starts []zvm.Task) (start zvm.Task, doubt string, err error) {
	switch {
	case m.checkpoint == "":
		return zvm.Task{}, "the last one that was announced did not start", nil
	case len(starts) == 0:
		return zvm.Task{}, "the server no longer lists its start", nil
	case len(starts) > 1:
		return zvm.Task{}, "several were started since one was announced", nil
	}
	start = starts[0]
	switch {
	case start.Started.IsZero() || start.Started.After(m.at.Add(startReach)):
		return start, "it was started long after ours was announced", nil
	case start.InitiatedBy == "":
		return start, "the server does not say who started it", nil
	}
	writers, err := s.insertersAt(ctx, vpg, m.at, start.Started)
	switch {
	case err != nil:
		return start, "who announced it cannot be looked up", fmt.Errorf("looking up who announced a start: %w", err)
	case len(writers) == 0:
		return start, "the server no longer lists who announced it", nil
	case slices.ContainsFunc(writers, func(by string) bool { return by != start.InitiatedBy }):
		return start, fmt.Sprintf("%s started it, and others inserted checkpoints then", shown(start.InitiatedBy)), nil
	}
	return start, "", nil
}

// mountedByAnother returns who mounted a session when the server shows that it was not whoever wrote its tag. What the
// server no longer knows is no evidence against the tag.
func (s *Session) mountedByAnother(ctx context.Context, vpg zvm.VPGID, session zvm.SessionID, st standing) (string, error) {
	mounts, err := s.zvm.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeFLRMount, StartedAfter: st.tag.Time})
	if err != nil {
		return "", fmt.Errorf("looking up who mounted FLR session %s: %w", shown(string(session)), err)
	}
	i := slices.IndexFunc(mounts, func(t zvm.Task) bool {
		return slices.ContainsFunc(t.FLRSessions, func(id zvm.SessionID) bool { return sameID(id, session) })
	})
	if i < 0 || mounts[i].InitiatedBy == "" {
		return "", nil
	}
	writers, err := s.insertersAt(ctx, vpg, st.tag.Time, st.tag.Time.Add(startReach))
	if err != nil {
		return "", fmt.Errorf("looking up who tagged checkpoint %s: %w", st.ID, err)
	}
	if len(writers) == 0 || slices.Contains(writers, mounts[i].InitiatedBy) {
		return "", nil
	}
	return mounts[i].InitiatedBy, nil
}

// insertersAt returns who inserted checkpoints at a VPG in a span of time, "" for one of whom the server does not say.
func (s *Session) insertersAt(ctx context.Context, vpg zvm.VPGID, from, to time.Time) ([]string, error) {
	inserts, err := s.insertsAt(ctx, vpg, from)
	var by []string
	for _, t := range inserts {
		if t.State == task.Completed && !t.Started.After(to) {
			by = append(by, t.InitiatedBy)
		}
	}
	return by, err
}
