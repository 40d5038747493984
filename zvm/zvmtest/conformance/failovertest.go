package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func testBehaviours() []behaviour {
	return []behaviour{
		{"a failover test of one VM runs and is stopped", true, testRuns},
	}
}

// startedTest is the failover test of the run.
type startedTest struct {
	vpg   zvm.VPGID
	start zvm.TaskID
}

func testRuns(ctx context.Context, s *suite) error {
	if !s.Test {
		return notApplicable("the target does not allow a failover test")
	}
	all, err := s.needTagged()
	if err != nil {
		return err
	}
	idle := slices.IndexFunc(all, func(t taggedPoint) bool { return t.vpg.FailoverTestStage == "" })
	if idle < 0 {
		return notApplicable("every VPG of the VM is in a failover test already")
	}
	t := all[idle]
	id, err := s.Client.StartFailoverTest(ctx, t.vpg.ID, t.point.ID, []zvm.VMID{s.rows[0].ID})
	if err != nil {
		return s.lost("a failover test of VPG "+string(t.vpg.ID), err)
	}
	s.test = startedTest{t.vpg.ID, id}
	if _, err := s.wait(ctx, id); err != nil {
		return err
	}
	running, err := s.Client.GetVPG(ctx, t.vpg.ID)
	switch {
	case err != nil:
		return err
	case running.FailoverTestStage == "":
		return errors.New("the start of the test is Completed and the VPG shows no test")
	}
	s.answer(37, "stage of a running failover test", "%s", running.FailoverTestStage)
	if err := s.stopTest(ctx, true); err != nil {
		return err
	}
	s.test = startedTest{}
	return s.traceOfTest(ctx, t)
}

// stopTest stops the test and waits until the VPG shows none. A test whose
// start has failed needs no stop.
func (s *suite) stopTest(ctx context.Context, success bool) error {
	var ended *task.Error
	if _, err := s.wait(ctx, s.test.start); errors.As(err, &ended) {
		return nil
	}
	id, err := s.Client.StopFailoverTest(ctx, s.test.vpg, success, "conformance suite")
	if err != nil {
		return err
	}
	if _, err := s.wait(ctx, id); err != nil {
		return err
	}
	return s.shortly(ctx, func(ctx context.Context) (bool, error) {
		v, err := s.Client.GetVPG(ctx, s.test.vpg)
		return v.FailoverTestStage == "", err
	})
}

// traceOfTest notes what the test left on the tag of its checkpoint.
func (s *suite) traceOfTest(ctx context.Context, t taggedPoint) error {
	points, err := s.collect(ctx, t.vpg.ID, zvm.Window{From: t.began.Add(-margin)})
	if err != nil {
		return err
	}
	for _, point := range points {
		if point.ID == t.point.ID {
			s.answer(16, "the tag of a tested checkpoint", "%s", changeOf(t.point.Tag, point.Tag))
			return nil
		}
	}
	return errors.New("the tested checkpoint is gone")
}
