package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func insertBehaviours() []behaviour {
	return []behaviour{
		{"a tagged checkpoint stands in the journal under exactly its name", true, tagStands},
		{"a tagged checkpoint is newer than all before it", true, tagIsNewer},
		{"the task of an insert is listed and tells no other VPG", true, insertTaskListed},
		{"a tag of 200 bytes arrives whole", true, longTag},
		{"of two inserts at once each task tells the truth", true, twoInserts},
	}
}

// margin is the room left around a moment when a journal is searched for it.
const margin = 2 * time.Minute

// longestTag is what package rewind uses at most.
const longestTag = 200

// taggedPoint is a tagged checkpoint of ours, and what was before it.
type taggedPoint struct {
	vpg    zvm.VPG
	task   zvm.TaskID
	before []zvm.Checkpoint
	point  zvm.Checkpoint
	began  time.Time // server clock
	ended  time.Time
}

// tag is a name in the form that package rewind uses, and short: a ZVM that
// takes no long names fails the behaviour that is about them, and no other.
func tag(action string) string {
	return fmt.Sprintf("ai:conformance | %s | vm=target | change=%s | %s",
		action, rand.Text()[:8], time.Now().UTC().Format(time.RFC3339))
}

// insert puts a tagged checkpoint into a journal and reads it back.
func (s *suite) insert(ctx context.Context, v zvm.VPG, name string) (taggedPoint, error) {
	t := taggedPoint{vpg: v}
	var err error
	if t.began, err = s.Client.GetServerTime(ctx); err != nil {
		return t, err
	}
	if t.before, err = s.collect(ctx, v.ID, zvm.Window{From: t.began.Add(-margin)}); err != nil {
		return t, err
	}
	if t.task, err = s.Client.InsertCheckpoint(ctx, v.ID, name); err != nil {
		return t, err
	}
	if _, err = s.Client.GetTask(ctx, t.task); err != nil {
		s.answer(20, "the first look at a new task", "%s", refusal(err))
	} else {
		s.answer(20, "the first look at a new task", "visible at once")
	}
	if _, err = s.wait(ctx, t.task); err != nil {
		return t, err
	}
	completed := time.Now()
	err = s.shortly(ctx, func(ctx context.Context) (bool, error) {
		found, err := s.named(ctx, v.ID, t.began, name)
		if len(found) > 0 {
			t.point = found[0]
		}
		return len(found) > 0, err
	})
	if err != nil {
		return t, fmt.Errorf("the task is Completed and the tag is not in the journal: %w", err)
	}
	s.answer(15, "from a completed task to the tag in the list", "%v at most", time.Since(completed).Round(10*time.Millisecond))
	t.ended, err = s.Client.GetServerTime(ctx)
	return t, err
}

// named lists the checkpoints that carry exactly a name.
func (s *suite) named(ctx context.Context, vpg zvm.VPGID, since time.Time, name string) ([]zvm.Checkpoint, error) {
	var found []zvm.Checkpoint
	points, err := s.collect(ctx, vpg, zvm.Window{From: since.Add(-margin)})
	for _, point := range points {
		if point.Tag == name {
			found = append(found, point)
		}
	}
	return found, err
}

func tagStands(ctx context.Context, s *suite) error {
	able, err := s.protecting()
	if err != nil {
		return err
	}
	for _, v := range able {
		t, err := s.insert(ctx, v, tag("one"))
		if err != nil {
			return fmt.Errorf("VPG %s: %w", v.Name, err)
		}
		s.tagged = append(s.tagged, t)
		found, err := s.named(ctx, v.ID, t.began, t.point.Tag)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("the tag stands %d times in the journal of VPG %s", len(found), v.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) needTagged() ([]taggedPoint, error) {
	if len(s.tagged) == 0 {
		return nil, notApplicable("no tagged checkpoint was made")
	}
	return s.tagged, nil
}

func tagIsNewer(_ context.Context, s *suite) error {
	all, err := s.needTagged()
	if err != nil {
		return err
	}
	for _, t := range all {
		for _, old := range t.before {
			if old.ID.Compare(t.point.ID) >= 0 {
				return errors.New("its id is not greater than one before it")
			}
		}
		at := t.point.Time.Time
		if at.Before(t.began.Add(-margin)) || at.After(t.ended.Add(margin)) {
			return fmt.Errorf("its time stamp %v is not near the insert, which ran from %v to %v", at, t.began, t.ended)
		}
		s.answer(15, "time stamp of the tag, after the request by", "%v, and the insert took %v",
			at.Sub(t.began).Round(time.Second), t.ended.Sub(t.began).Round(time.Second))
	}
	return nil
}

func insertTaskListed(ctx context.Context, s *suite) error {
	all, err := s.needTagged()
	if err != nil {
		return err
	}
	for _, t := range all {
		tasks, err := s.Client.ListTasks(ctx, zvm.TaskFilter{Type: zvm.TypeInsertTaggedCP, StartedAfter: t.began.Add(-margin)})
		if err != nil {
			return err
		}
		mine := slices.IndexFunc(tasks, func(one zvm.Task) bool { return one.ID == t.task })
		if mine < 0 {
			return errors.New("the task is not listed")
		}
		vpgs := tasks[mine].VPGs
		if len(vpgs) > 0 && !slices.ContainsFunc(vpgs, func(id zvm.VPGID) bool { return sameID(id, t.vpg.ID) }) {
			return errors.New("the task tells another VPG")
		}
	}
	return nil
}

func longTag(ctx context.Context, s *suite) error {
	able, err := s.protecting()
	if err != nil {
		return err
	}
	name := tag("long")
	name += strings.Repeat("x", longestTag-len(name))
	_, err = s.insert(ctx, able[0], name)
	if err != nil {
		s.answer(12, "a tag of 200 bytes", "not stored whole")
		return err
	}
	s.answer(12, "a tag of 200 bytes with blanks and | = : +", "stored as it was sent")
	return nil
}

// twoInserts sends two inserts back to back. Whether both succeed is the
// ZVM's business; that a task says so of exactly those that did, is not.
func twoInserts(ctx context.Context, s *suite) error {
	able, err := s.protecting()
	if err != nil {
		return err
	}
	began, err := s.Client.GetServerTime(ctx)
	if err != nil {
		return err
	}
	names := [2]string{tag("two a"), tag("two b")}
	var ids [2]zvm.TaskID
	var refused [2]error
	for i, name := range names {
		ids[i], refused[i] = s.Client.InsertCheckpoint(ctx, able[0].ID, name)
	}
	var seen [2]string
	for i, name := range names {
		seen[i], err = s.truthOf(ctx, able[0].ID, began, name, ids[i], refused[i])
		if err != nil {
			return fmt.Errorf("insert %d of two: %w", i+1, err)
		}
	}
	s.answer(18, "two inserts back to back at one VPG", "%s; %s", seen[0], seen[1])
	return nil
}

// truthOf compares what became of an insert with the journal.
func (s *suite) truthOf(ctx context.Context, vpg zvm.VPGID, since time.Time, name string, id zvm.TaskID, refused error) (string, error) {
	if refused != nil {
		found, err := s.named(ctx, vpg, since, name)
		if err == nil && len(found) > 0 {
			err = errors.New("refused, and stands in the journal")
		}
		return "refused with " + refusal(refused), err
	}
	status, err := s.wait(ctx, id)
	var ended *task.Error
	if errors.As(err, &ended) {
		s.answer(21, "reason of a failed insert", "%q", ended.Reason)
		found, err := s.named(ctx, vpg, since, name)
		if err == nil && len(found) > 0 {
			err = errors.New("the task failed, and the tag stands in the journal")
		}
		return ended.State.String(), err
	}
	if err != nil {
		return "", err
	}
	return status.State.String(), s.shortly(ctx, func(ctx context.Context) (bool, error) {
		found, err := s.named(ctx, vpg, since, name)
		return len(found) == 1, err
	})
}
