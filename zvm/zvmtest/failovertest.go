package zvmtest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Stages of a failover test (zvm-wire 7.2).
const (
	TestStarting = "Starting"
	TestRunning  = "InTest"
	TestStopping = "Stopping"
)

// failoverTest is a test of a VPG, from its start until its stop is done.
type failoverTest struct {
	vpg        *VPG
	checkpoint checkpoint
	vms        []string
	stage      string
	began      time.Time
	ended      time.Time
	success    *bool
	summary    string
}

// Test is a copy of one failover test.
type Test struct {
	VPGID        string
	CheckpointID string
	VMIDs        []string
	Stage        string    // "" after it ended
	Began        time.Time // when its start was asked for
	Ended        time.Time // zero while it lives
	Success      *bool     // as told by the stop, nil if it did not say
	Summary      string
}

// LiveTests lists the failover tests that have begun and not ended.
func (s *Server) LiveTests() []Test {
	return slices.DeleteFunc(s.Tests(), func(t Test) bool { return t.Stage == "" })
}

// Tests lists every failover test so far.
func (s *Server) Tests() []Test {
	s.lock()
	defer s.mu.Unlock()
	var all []Test
	for _, t := range s.tests {
		all = append(all, Test{
			VPGID: t.vpg.id, CheckpointID: t.checkpoint.public().ID, VMIDs: slices.Clone(t.vms), Stage: t.stage,
			Began: t.began, Ended: t.ended, Success: t.success, Summary: t.summary,
		})
	}
	return all
}

// chooseCheckpoint finds the checkpoint of a body, or the latest one.
func (s *Server) chooseCheckpoint(vpg *VPG, id *string, now time.Time) (checkpoint, reply) {
	frozen := vpg.journal.at(now, span{})
	if id != nil && *id != "" {
		c, found := frozen.find(*id)
		if !found {
			return c, fail(http.StatusInternalServerError, "failed parsing as a valid CheckPoint Identifier: "+*id)
		}
		return c, reply{}
	}
	c, found := frozen.latest()
	if !found {
		return c, fail(http.StatusInternalServerError, "VPG "+vpg.name+" has no checkpoint")
	}
	return c, reply{}
}

// chooseVMs checks the VMs of a body; none means all.
func (s *Server) chooseVMs(vpg *VPG, wanted []string) ([]*VM, reply) {
	if len(wanted) == 0 {
		return slices.Clone(vpg.vms), reply{}
	}
	var chosen []*VM
	for _, id := range wanted {
		i := slices.IndexFunc(vpg.vms, func(vm *VM) bool { return strings.EqualFold(vm.id, id) })
		if i < 0 {
			return nil, s.unknownID("VM", id)
		}
		chosen = append(chosen, vpg.vms[i])
	}
	return chosen, reply{}
}

func handleTestStart(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	var body struct {
		CheckpointIdentifier *string
		VMIdentifiers        []string `json:"VmIdentifiers"`
	}
	if err := c.decode(&body); err != nil {
		return fail(http.StatusBadRequest, "failed parsing as a valid CheckPoint Identifier")
	}
	point, refusal := s.chooseCheckpoint(vpg, body.CheckpointIdentifier, c.now)
	if refusal.status != 0 {
		return refusal
	}
	vms, refusal := s.chooseVMs(vpg, body.VMIdentifiers)
	if refusal.status != 0 {
		return refusal
	}
	if refusal := s.testRefusal(vpg); refusal != "" {
		return fail(http.StatusInternalServerError, refusal)
	}
	t := &task{kind: "FailOverTest", user: c.account.name, vpg: vpg}
	if vpg.test != nil {
		message := "a failover test of VPG " + vpg.name + " is running"
		if !s.cfg.has(SecondTestFailsAsTask) {
			return fail(http.StatusInternalServerError, message)
		}
		t.finish = func(time.Time) (int, string) { return TaskFailed, message }
		return s.answerTask(s.startTask(t, c.now, 0))
	}
	test := &failoverTest{vpg: vpg, checkpoint: point, stage: TestStarting, began: c.now}
	for _, vm := range vms {
		test.vms = append(test.vms, vm.id)
	}
	vpg.test = test
	s.tests = append(s.tests, test)
	t.finish = func(time.Time) (int, string) { return TaskCompleted, "" }
	t.cleanup = func() {
		if t.state == TaskCompleted {
			test.stage = TestRunning
			return
		}
		test.stage, test.ended, vpg.test = "", t.completed, nil
	}
	return s.answerTask(s.startTask(t, c.now, s.cfg.testTime))
}

// testRefusal says what a test may not run beside, or "".
func (s *Server) testRefusal(vpg *VPG) string {
	mounted := slices.ContainsFunc(s.mounts, func(m *flrSession) bool { return m.vpg == vpg })
	switch {
	case mounted && s.cfg.has(TestRefusedWhileMounted):
		return "a VM of VPG " + vpg.name + " is mounted"
	case vpg.cloning != nil && s.cfg.has(TestAndCloneExclude):
		return "VPG " + vpg.name + " is being cloned"
	}
	return ""
}

func handleTestStop(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	var body struct {
		FailoverTestSuccess *bool
		FailoverTestSummary *string
	}
	// Old clients send no body (zvm-wire 7.1).
	if len(c.body) > 0 {
		if err := c.decode(&body); err != nil {
			return fail(http.StatusBadRequest, "the body is no stop of a failover test")
		}
	}
	test := vpg.test
	if test == nil || test.stage != TestRunning {
		return fail(http.StatusInternalServerError, "no failover test of VPG "+vpg.name+" can be stopped now")
	}
	test.stage, test.success = TestStopping, body.FailoverTestSuccess
	if body.FailoverTestSummary != nil {
		test.summary = *body.FailoverTestSummary
	}
	t := &task{kind: "StopFailOverTest", user: c.account.name, vpg: vpg}
	t.finish = func(time.Time) (int, string) { return TaskCompleted, "" }
	t.cleanup = func() {
		if t.state != TaskCompleted {
			test.stage = TestRunning
			return
		}
		test.stage, test.ended = "", t.completed
		vpg.test, vpg.lastTest = nil, t.completed
		s.tagTested(test)
	}
	return s.answerTask(s.startTask(t, c.now, s.cfg.testTime))
}

// tagTested leaves the trace of a test on its checkpoint (zvm-wire 4.5).
func (s *Server) tagTested(test *failoverTest) {
	tag := "Tested at " + test.began.Format("2006-01-02 15:04:05")
	switch {
	case s.cfg.has(TestTagNone):
		return
	case test.checkpoint.tag != nil && !s.cfg.has(TestTagReplaces):
		tag = *test.checkpoint.tag + ", " + tag
	}
	test.vpg.journal.retag(test.checkpoint.id, tag)
}
