package zvmtest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestScriptedOutcomeOfATask(t *testing.T) {
	t.Parallel()
	for _, state := range []int{
		0, zvmtest.TaskWaitingForUserInput, zvmtest.TaskPaused, zvmtest.TaskFailed, zvmtest.TaskStopped,
		zvmtest.TaskCancelling, 99,
	} {
		s := start(t)
		vpg := s.AddVPG("web", quiet())
		c := login(t, s)
		s.ScriptTask("inserttaggedcp", state, "because")
		id := c.insert(vpg, "x")
		s.Advance(3 * time.Second)
		got := c.task(id)
		ended := state == zvmtest.TaskFailed || state == zvmtest.TaskStopped
		if got.Status.State != state || got.CompleteReason != "because" || (got.Completed != nil) != ended {
			t.Errorf("task scripted to state %d = %+v", state, got)
		}
		if n := len(vpg.TaggedCheckpoints()); n != 0 {
			t.Errorf("state %d left %d tags", state, n)
		}
	}
}

func TestProgressFollowsTheClock(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithInsertTime(10*time.Second))
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	id := c.insert(vpg, "x")
	var got []int
	for range 5 {
		got = append(got, c.task(id).Status.Progress)
		s.Advance(3 * time.Second)
	}
	if diff := cmp.Diff([]int{0, 30, 60, 90, 100}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestNewTaskIsHiddenForAWhile(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithTaskVisibleAfter(5*time.Second))
	c := login(t, s)
	id := c.insert(s.AddVPG("web", quiet()), "x")
	if a := c.get("/v1/tasks/" + id); a.status != http.StatusNotFound {
		t.Errorf("at once: %d, want 404", a.status)
	}
	s.Advance(5 * time.Second)
	if got := c.task(id).Status.State; got != zvmtest.TaskCompleted {
		t.Errorf("after 5 s: state %d", got)
	}
}

func TestFinishedTaskIsForgotten(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithTaskRetention(10*time.Second))
	c := login(t, s)
	id := c.insert(s.AddVPG("web", quiet()), "x")
	s.Advance(13 * time.Second)
	c.task(id)
	s.Advance(time.Millisecond)
	if a := c.get("/v1/tasks/" + id); a.status != http.StatusNotFound {
		t.Errorf("after the retention: %d, want 404", a.status)
	}
}

func TestTaskIDWithAColonHasToBeNormalised(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSwitch(zvmtest.TaskIDColon))
	c := login(t, s)
	id := c.insert(s.AddVPG("web", quiet()), "x")
	if !strings.Contains(id, ":") {
		t.Fatalf("id = %s", id)
	}
	if a := c.get("/v1/tasks/" + id); a.status != http.StatusNotFound {
		t.Errorf("with the colon: %d, want 404", a.status)
	}
	c.task(strings.Replace(id, ":", ".", 1))
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	for status, opts := range map[int][]zvmtest.Option{
		http.StatusNotFound:            nil,
		http.StatusInternalServerError: {zvmtest.WithSwitch(zvmtest.UnknownIDAs500)},
	} {
		s := start(t, opts...)
		c := login(t, s)
		for _, path := range []string{
			"/v1/tasks/x", "/v1/vpgs/x", "/v1/vms/x", "/v1/vpgs/x/checkpoints", "/v1/vpgs/x/checkpoints/stats",
			"/v1/flrs/x", "/v1/peersites/x", "/v1/virtualizationsites/x/vms", "/v1/vms/x/pointsInTime",
		} {
			if a := c.get(path); a.status != status || !strings.Contains(a.body, `"Message":`) {
				t.Errorf("%s = %d %s, want %d with a Message", path, a.status, a.body, status)
			}
		}
	}
}

func TestTaskFilters(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	c := login(t, s)
	c.insert(vpg, "done")
	s.Advance(5 * time.Second)
	c.mount(vpg, vm, vpg.TaggedCheckpoints()[0].ID)
	for query, want := range map[string]string{
		"":                    "InsertTaggedCP FlrJournalMount",
		"type=inserttaggedcp": "InsertTaggedCP",
		"status=1":            "FlrJournalMount",
		"status=Completed":    "InsertTaggedCP",
		"startedAfterDate=2026-11-29T10:00:05.000Z":      "FlrJournalMount",
		"STARTEDBEFOREDATE=2026-11-29T10:00:00.000Z":     "InsertTaggedCP",
		"completedAfterDate=2026-11-29T10:00:03.000Z":    "InsertTaggedCP",
		"completedAfterDate=2026-11-29T10:00:03.001Z":    "",
		"startedAfterDate=2026-11-29T10:00:05Z&status=6": "",
	} {
		var list []struct {
			Type            string
			RelatedEntities struct {
				Vpgs        []struct{ Identifier string }
				FlrSessions []struct{ Identifier string }
			}
		}
		c.get("/v1/tasks?"+query).into(t, &list)
		var types []string
		for _, one := range list {
			types = append(types, one.Type)
			if one.RelatedEntities.Vpgs[0].Identifier != vpg.ID() {
				t.Errorf("related entities = %+v", one.RelatedEntities)
			}
			if one.Type == "FlrJournalMount" && one.RelatedEntities.FlrSessions[0].Identifier != s.LiveFLRSessions()[0].ID {
				t.Errorf("related sessions = %+v", one.RelatedEntities)
			}
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
	}
	if a := c.get("/v1/tasks/types"); !strings.Contains(a.body, `"InsertTaggedCP"`) {
		t.Errorf("types = %s", a.body)
	}
	if got := s.Tasks(); len(got) != 2 || got[0].VPGID != vpg.ID() || got[0].InitiatedBy != s.Username() {
		t.Errorf("Tasks = %+v", got)
	}
}

func TestEventsAreTheTrailOfTasks(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	c.insert(vpg, "one")
	c.insert(vpg, "two")
	s.Advance(3 * time.Second)
	var got []struct {
		EventType                  int
		EventCompletedSuccessfully bool
		UserName                   string
	}
	c.get("/v1/events?vpgIdentifier="+vpg.ID()+"&eventType=12").into(t, &got)
	if len(got) != 2 || got[0].EventCompletedSuccessfully || !got[1].EventCompletedSuccessfully || got[1].UserName != s.Username() {
		t.Errorf("events = %+v, want the refused insert, then the good one", got)
	}
}

func TestServerTellsItsTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	for path, want := range map[string]string{
		"serverDateTimeUtc":   "2026-11-29T10:00:00.000Z",
		"serverDateTimeLocal": "2026-11-29T06:00:00.000",
		"dateTimeArgument?dateTime=" + url.QueryEscape("2026-11-29 x"): "",
		"dateTimeArgument?datetime=2026-11-29":                         "2026-11-29T04:00:00.000Z",
		"dateTimeArgument?dateTime=2026-11-29T10Z":                     "2026-11-29T10:00:00.000Z",
		"dateTimeArgument?dateTime=2026":                               "2026-01-01T04:00:00.000Z",
	} {
		a := c.get("/v1/serverDateTime/" + path)
		if want == "" {
			if a.status != http.StatusBadRequest {
				t.Errorf("%s = %d, want 400", path, a.status)
			}
			continue
		}
		if got := a.text(t); got != want {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
}
