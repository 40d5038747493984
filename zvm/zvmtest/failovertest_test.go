package zvmtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// tagged is a VPG with two VMs and the tag "mark" in its journal.
func tagged(t *testing.T, opts ...zvmtest.Option) (*client, *zvmtest.VPG, []*zvmtest.VM) {
	t.Helper()
	s := start(t, opts...)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vms := []*zvmtest.VM{s.AddVM("web01", vpg), s.AddVM("web02", vpg)}
	c := login(t, s)
	c.insert(vpg, "mark")
	s.Advance(8 * time.Second)
	return c, vpg, vms
}

func (c *client) stage(vpg *zvmtest.VPG) string {
	c.t.Helper()
	var got struct {
		ActiveProcesses struct {
			Test *struct{ Stage string } `json:"RunningFailOverTestApi"`
		} `json:"ActiveProcessesApi"`
	}
	c.get("/v1/vpgs/"+vpg.ID()).into(c.t, &got)
	if got.ActiveProcesses.Test == nil {
		return ""
	}
	return got.ActiveProcesses.Test.Stage
}

func TestFailoverTestFromStartToStop(t *testing.T) {
	t.Parallel()
	c, vpg, vms := tagged(t)
	mark := vpg.TaggedCheckpoints()[0]
	began := c.s.Now()
	startTask := c.post("/v1/vpgs/"+vpg.ID()+"/FailoverTest",
		fmt.Sprintf(`{"checkpointIdentifier":%q,"vmIdentifiers":[%q]}`, mark.ID, vms[1].ID())).text(t)
	stages := []string{c.stage(vpg)}
	if a := c.post("/v1/vpgs/"+vpg.ID()+"/FailoverTestStop", `{}`); a.status != http.StatusInternalServerError {
		t.Errorf("stop while starting = %d, want 500", a.status)
	}
	c.s.Advance(5 * time.Second)
	stages = append(stages, c.stage(vpg))
	want := []zvmtest.Test{{
		VPGID: vpg.ID(), CheckpointID: mark.ID, VMIDs: []string{vms[1].ID()}, Stage: zvmtest.TestRunning, Began: began,
	}}
	if diff := cmp.Diff(want, c.s.LiveTests()); diff != "" {
		t.Errorf("live tests (-want +got):\n%s", diff)
	}
	stopTask := c.post("/v1/vpgs/"+vpg.ID()+"/FailoverTestStop", `{"failoverTestSuccess":true,"failoverTestSummary":"fine"}`).text(t)
	stages = append(stages, c.stage(vpg))
	c.s.Advance(5 * time.Second)
	stages = append(stages, c.stage(vpg))
	if diff := cmp.Diff([]string{"Starting", "InTest", "Stopping", ""}, stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if a, b := c.task(startTask), c.task(stopTask); a.Type != "FailOverTest" || b.Type != "StopFailOverTest" || b.Status.State != zvmtest.TaskCompleted {
		t.Errorf("tasks = %+v, %+v", a, b)
	}
	want[0].Stage, want[0].Ended, want[0].Success, want[0].Summary = "", c.s.Now(), ptr(true), "fine"
	if diff := cmp.Diff(want, c.s.Tests()); diff != "" || len(c.s.LiveTests()) != 0 {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if body := c.get("/v1/vpgs").body; !strings.Contains(body, `"LastTest":"2026-11-29T10:00:18.000Z"`) {
		t.Errorf("LastTest is not set: %s", body)
	}
}

func TestTagAfterAStoppedTest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want string
	}{
		{"is extended", nil, "mark, Tested at 2026-11-29 10:00:08"},
		{"is replaced by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.TestTagReplaces)}, "Tested at 2026-11-29 10:00:08"},
		{"is left alone by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.TestTagNone)}, "mark"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, vpg, _ := tagged(t, tc.opts...)
			c.post("/v1/vpgs/"+vpg.ID()+"/FailoverTest", fmt.Sprintf(`{"checkpointIdentifier":%q}`, vpg.TaggedCheckpoints()[0].ID))
			c.s.Advance(5 * time.Second)
			c.do(http.MethodPost, "/v1/vpgs/"+vpg.ID()+"/FailoverTestStop", "", nil)
			c.s.Advance(5 * time.Second)
			if got := vpg.TaggedCheckpoints()[0].Tag; got != tc.want {
				t.Errorf("tag = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInsertWorksDuringATest(t *testing.T) {
	t.Parallel()
	c, vpg, _ := tagged(t)
	c.post("/v1/vpgs/"+vpg.ID()+"/FailoverTest", `{}`)
	c.s.Advance(5 * time.Second)
	id := c.insert(vpg, "during")
	c.s.Advance(3 * time.Second)
	if got := c.task(id).Status.State; got != zvmtest.TaskCompleted {
		t.Errorf("state = %d", got)
	}
}

func TestSecondFailoverTest(t *testing.T) {
	t.Parallel()
	c, vpg, _ := tagged(t)
	path := "/v1/vpgs/" + vpg.ID() + "/FailoverTest"
	c.post(path, `{}`)
	if a := c.post(path, `{}`); a.status != http.StatusInternalServerError {
		t.Errorf("second test = %d, want 500", a.status)
	}
	c, vpg, _ = tagged(t, zvmtest.WithSwitch(zvmtest.SecondTestFailsAsTask))
	path = "/v1/vpgs/" + vpg.ID() + "/FailoverTest"
	c.post(path, `{}`)
	if got := c.task(c.post(path, `{}`).text(t)).Status.State; got != zvmtest.TaskFailed {
		t.Errorf("second test by switch = state %d, want Failed", got)
	}
}

func TestFailedTestTasks(t *testing.T) {
	t.Parallel()
	c, vpg, _ := tagged(t)
	path := "/v1/vpgs/" + vpg.ID() + "/FailoverTest"
	c.s.ScriptTask("FailOverTest", zvmtest.TaskFailed, "no host")
	c.post(path, `{}`)
	c.s.Advance(5 * time.Second)
	if live := c.s.LiveTests(); len(live) != 0 {
		t.Errorf("a test that did not start lives: %+v", live)
	}
	c.post(path, `{}`)
	c.s.Advance(5 * time.Second)
	c.s.ScriptTask("StopFailOverTest", zvmtest.TaskFailed, "busy")
	c.post(path+"Stop", `{}`)
	c.s.Advance(5 * time.Second)
	if live := c.s.LiveTests(); len(live) != 1 || live[0].Stage != zvmtest.TestRunning {
		t.Errorf("after a failed stop: %+v", live)
	}
}

func TestTestAndCloneRefuseWhatIsNotThere(t *testing.T) {
	t.Parallel()
	c, vpg, _ := tagged(t)
	empty := c.s.AddVPG("empty", quiet())
	for _, tc := range []struct {
		path, body string
		want       int
	}{
		{"x/FailoverTest", `{}`, 404},
		{"x/FailoverTestStop", `{}`, 404},
		{"x/CloneStart", `{}`, 404},
		{"x/CloneAbort", ``, 404},
		{vpg.ID() + "/FailoverTest", `{"checkpointIdentifier":"1"}`, 500},
		{vpg.ID() + "/CloneStart", `{"checkpointId":"1"}`, 500},
		{vpg.ID() + "/FailoverTest", `{"vmIdentifiers":["x"]}`, 404},
		{vpg.ID() + "/CloneStart", `{"vmIdentifiers":["x"]}`, 404},
		{vpg.ID() + "/FailoverTest", ``, 400},
		{vpg.ID() + "/CloneStart", ``, 400},
		{vpg.ID() + "/FailoverTestStop", `{}`, 500},
		{vpg.ID() + "/FailoverTestStop", `{`, 400},
		{vpg.ID() + "/CloneAbort", ``, 500},
		{empty.ID() + "/FailoverTest", `{}`, 500},
		{empty.ID() + "/CloneStart", `{}`, 500},
	} {
		if a := c.post("/v1/vpgs/"+tc.path, tc.body); a.status != tc.want {
			t.Errorf("%s %s = %d %s, want %d", tc.path, tc.body, a.status, a.body, tc.want)
		}
	}
	if n := len(c.s.Tests()) + len(c.s.Clones()); n != 0 {
		t.Errorf("tests and clones = %d", n)
	}
}

func TestCloneUsesTheCheckpointThatItsKeyNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, key string
		marked    bool // the clone is of the marked checkpoint
	}{
		{"checkpointId", "checkpointId", true},
		{"any case of it", "CHECKPOINTID", true},
		{"the key of another call is ignored", "checkpointIdentifier", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, vpg, vms := tagged(t)
			mark := vpg.TaggedCheckpoints()[0]
			latest := vpg.Checkpoints(c.s.Now().Add(-4*time.Second), c.s.Now())[0]
			task := c.post("/v1/vpgs/"+vpg.ID()+"/CloneStart", fmt.Sprintf(`{%q:%q,"vmIdentifiers":[%q]}`, tc.key, mark.ID, vms[0].ID())).text(t)
			if n := len(c.s.Clones()); n != 0 {
				t.Errorf("clones at once = %d", n)
			}
			c.s.Advance(5 * time.Second)
			if got := c.task(task); got.Type != "Clone" || got.Status.State != zvmtest.TaskCompleted {
				t.Errorf("task = %+v", got)
			}
			want := zvmtest.Clone{
				VPGID: vpg.ID(), SiteID: c.s.LocalSite().ID, CheckpointID: latest.ID,
				SourceVMIDs: []string{vms[0].ID()}, Completed: c.s.Now(),
				VMs: []zvmtest.ClonedVM{{Name: "web01 " + latest.Time.Format("2006-01-02 15-04-05")}},
			}
			if tc.marked {
				want.CheckpointID, want.VMs[0].Name = mark.ID, "web01 2026-11-29 10-00-03"
			}
			ignoreID := cmpopts.IgnoreFields(zvmtest.ClonedVM{}, "ID")
			if diff := cmp.Diff([]zvmtest.Clone{want}, c.s.Clones(), ignoreID); diff != "" {
				t.Errorf("clones (-want +got):\n%s", diff)
			}
			if body := c.get("/v1/virtualizationsites/" + c.s.LocalSite().ID + "/vms").body; !strings.Contains(body, want.VMs[0].Name) {
				t.Errorf("the site does not list the clone: %s", body)
			}
		})
	}
}

func TestCloneUnknownKeySwitch(t *testing.T) {
	t.Parallel()
	c, vpg, _ := tagged(t, zvmtest.WithSwitch(zvmtest.CloneUnknownKeyRefused))
	if a := c.post("/v1/vpgs/"+vpg.ID()+"/CloneStart", `{"checkpointIdentifier":"1"}`); a.status != http.StatusBadRequest {
		t.Errorf("answer = %d, want 400", a.status)
	}
}

func TestCloneAbort(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
	}{
		{"answers nothing", nil},
		{"answers a task by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.CloneAbortAnswersTask)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, vpg, _ := tagged(t, tc.opts...)
			path := "/v1/vpgs/" + vpg.ID()
			task := c.post(path+"/CloneStart", `{}`).text(t)
			if a := c.post(path+"/CloneStart", `{}`); a.status != http.StatusInternalServerError {
				t.Errorf("second clone = %d, want 500", a.status)
			}
			a := c.do(http.MethodPost, path+"/CloneAbort", "", nil)
			if a.status != http.StatusOK || (a.body == "") != (tc.opts == nil) {
				t.Errorf("answer = %d %q", a.status, a.body)
			}
			if got := c.task(task); got.Status.State != zvmtest.TaskStopped || got.CompleteReason == "" {
				t.Errorf("task = %+v, want Stopped", got)
			}
			c.s.Advance(time.Minute / 2)
			if n := len(c.s.Clones()); n != 0 {
				t.Errorf("an aborted clone left %d", n)
			}
		})
	}
}
