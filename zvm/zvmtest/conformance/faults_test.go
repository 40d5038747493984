package conformance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest/conformance"
)

// nobody is the id with which the suite asks for what does not exist.
const nobody = "5f0c7a52-93d1-4a0e-b7a6-2f1e8c3d9b40"

// TestSuiteNoticesFaults scripts what a ZVM must not do and no switch does.
// Each fault fails the behaviour that is about it, and no other.
func TestSuiteNoticesFaults(t *testing.T) {
	t.Parallel()
	checkpoints := "/v1/vpgs/*/checkpoints"
	for _, tc := range []struct {
		name  string
		fault func(s *zvmtest.Server)
		want  string
	}{
		{
			"a site without a name",
			func(s *zvmtest.Server) { s.On("GET", "/v1/localsite").Status(200, `{"SiteIdentifier":"a"}`) },
			"the site tells its id and name",
		},
		{
			"a clock that goes back",
			func(s *zvmtest.Server) {
				s.On("GET", "/v1/serverDateTime/serverDateTimeUtc").After(1).Status(200, `"2001-01-01T00:00:00.000Z"`)
			},
			"the clock moves forward",
		},
		{
			"an id that finds less than the name",
			func(s *zvmtest.Server) { s.On("GET", "/v1/vms").After(1).Status(200, `[]`) },
			"a VM is found by its id",
		},
		{
			"a VPG that cannot be read",
			func(s *zvmtest.Server) { s.On("GET", "/v1/vpgs/*").Status(403, `{"Message":"no"}`) },
			"each VPG of a VM can be read",
		},
		{
			"a VPG that its name does not find",
			func(s *zvmtest.Server) { s.On("GET", "/v1/vpgs").Status(200, `[]`) },
			"the VPGs of a VM are found by name",
		},
		{
			"an unknown VPG that is answered",
			func(s *zvmtest.Server) {
				s.On("GET", "/v1/vpgs/"+nobody).Status(200, `{"VpgIdentifier":"`+nobody+`","VpgName":"x","Status":1,"SubStatus":0}`)
			},
			"an unknown VPG is an error",
		},
		{
			"an unknown task that is answered",
			func(s *zvmtest.Server) {
				s.On("GET", "/v1/tasks/"+nobody+"."+nobody).Status(200, `{"Type":"Clone","Status":{"State":6}}`)
			},
			"an unknown task is an error",
		},
		{
			"tasks that cannot be listed",
			func(s *zvmtest.Server) { s.On("GET", "/v1/tasks").Status(403, `{"Message":"no"}`) },
			"tasks can be listed, and each of them read",
		},
		{
			"sessions that cannot be listed",
			func(s *zvmtest.Server) { s.On("GET", "/v1/flrs").Status(403, `{"Message":"no"}`) },
			"FLR sessions can be listed",
		},
		{
			"one of many reads that is refused",
			func(s *zvmtest.Server) { s.On("GET", "/v1/vpgs").After(2).Status(403, `{"Message":"no"}`) },
			"reads at the same time share one login",
		},
		{
			"time stamps of no known form",
			func(s *zvmtest.Server) {
				s.On("GET", checkpoints).Status(200, `[{"CheckpointIdentifier":"1","TimeStamp":"noon"},
					{"CheckpointIdentifier":"2","TimeStamp":"noon"},{"CheckpointIdentifier":"3","TimeStamp":"noon"}]`)
			},
			"a window of a journal holds what lies in it",
		},
		{
			"a narrow window without its checkpoints",
			func(s *zvmtest.Server) { s.On("GET", checkpoints).After(2).Status(200, `[]`) },
			"a narrower window leaves nothing out",
		},
		{
			"a checkpoint in the future",
			func(s *zvmtest.Server) {
				s.On("GET", checkpoints).After(4).Status(200, `[{"CheckpointIdentifier":"1","TimeStamp":"tomorrow"}]`)
			},
			"a window of the future is empty",
		},
		{
			"an insert that is Completed and not in the journal",
			func(s *zvmtest.Server) { s.ScriptTask("InsertTaggedCP", zvmtest.TaskCompleted, "") },
			"a tagged checkpoint stands in the journal under exactly its name",
		},
		{
			"a task that is not listed",
			func(s *zvmtest.Server) { s.On("GET", "/v1/tasks").After(1).Status(200, `[]`) },
			"the task of an insert is listed and tells no other VPG",
		},
		{
			"an insert that is refused and done",
			func(s *zvmtest.Server) { s.On("POST", checkpoints).After(3).StatusAfter(400, `{"Message":"no"}`) },
			"of two inserts at once each task tells the truth",
		},
		{
			"a session that is not listed",
			func(s *zvmtest.Server) { s.On("GET", "/v1/flrs").After(1).Status(200, `[]`) },
			"an FLR session tells what is mounted",
		},
		{
			"a mounted VM without a partition",
			func(s *zvmtest.Server) { s.On("POST", "/v1/flrs/*/browse").Status(200, `{"PathItems":[]}`) },
			"a mounted VM can be browsed",
		},
		{
			"a download that is cut",
			func(s *zvmtest.Server) { s.On("GET", "/v1/downloads/*").Truncate(1) },
			"a file arrives whole",
		},
		{
			"an unmount that is refused once",
			func(s *zvmtest.Server) { s.On("DELETE", "/v1/flrs/*").Status(500, `{"Message":"not now"}`) },
			"an unmounted session is listed no more",
		},
		{
			"a second unmount that is cut",
			func(s *zvmtest.Server) { s.On("DELETE", "/v1/flrs/*").After(1).CutAfter() },
			"a second unmount does no harm",
		},
		{
			"a start of a test that fails",
			func(s *zvmtest.Server) { s.ScriptTask("FailOverTest", zvmtest.TaskFailed, "no room") },
			"a failover test of one VM runs and is stopped",
		},
		{
			"a stop of a test that is refused once",
			func(s *zvmtest.Server) { s.On("POST", "/v1/vpgs/*/FailoverTestStop").Status(500, `{"Message":"no"}`) },
			"a failover test of one VM runs and is stopped",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := world(t, zvmtest.WithInsertTime(0))
			tc.fault(s)
			report, err := conformance.Check(t.Context(), target(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, report.Failed()); diff != "" {
				t.Errorf("failed behaviours (-want +got):\n%s\n%s", diff, report.Markdown())
			}
			if len(report.LeftOpen) > 0 {
				t.Errorf("left open: %v", report.LeftOpen)
			}
			nothingLeft(t, s)
		})
	}
}
