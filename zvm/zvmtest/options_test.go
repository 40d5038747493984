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

func TestRunTimesOfTasks(t *testing.T) {
	t.Parallel()
	c, vpg, vms := tagged(t,
		zvmtest.WithMountTime(11*time.Second), zvmtest.WithUnmountTime(12*time.Second),
		zvmtest.WithTestTime(13*time.Second), zvmtest.WithCloneTime(14*time.Second),
		zvmtest.WithTokenTTL(time.Hour))
	path := "/v1/vpgs/" + vpg.ID()
	session := c.mount(vpg, vms[0], vpg.TaggedCheckpoints()[0].ID).text(t)
	c.post(path+"/FailoverTest", `{}`)
	c.post(path+"/CloneStart", `{}`)
	c.s.Advance(15 * time.Second)
	c.do(http.MethodDelete, "/v1/flrs/"+session, "", nil)
	c.post(path+"/FailoverTestStop", `{}`)
	c.s.Advance(15 * time.Second)
	got := map[string]time.Duration{}
	for _, task := range c.s.Tasks() {
		got[task.Type] = task.Completed.Sub(task.Started)
	}
	for kind, want := range map[string]time.Duration{
		"InsertTaggedCP": 3 * time.Second, "FlrJournalMount": 11 * time.Second, "FlrJournalUnmount": 12 * time.Second,
		"FailOverTest": 13 * time.Second, "StopFailOverTest": 13 * time.Second, "Clone": 14 * time.Second,
	} {
		if got[kind] != want {
			t.Errorf("%s ran for %v, want %v", kind, got[kind], want)
		}
	}
}

func TestQuickProfileNeedsNoPatience(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithProfile(zvmtest.Quick))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	c := login(t, s)
	id := c.insert(vpg, "x")
	s.Advance(20 * time.Millisecond)
	if got := c.task(id).Status.State; got != zvmtest.TaskCompleted {
		t.Errorf("state = %d", got)
	}
}

func TestRefreshTTL(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithRefreshTTL(time.Minute))
	c := newClient(t, s)
	_, first := c.tokens(passwordForm(s.Username(), s.Password(), "openid"))
	s.Advance(time.Minute)
	status, _ := c.tokens(url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {first.RefreshToken}})
	if first.RefreshExpiresIn != 60 || status != http.StatusBadRequest {
		t.Errorf("life %d s, then %d, want 60 s and 400", first.RefreshExpiresIn, status)
	}
}

func TestClockAndZoneAreTheCallers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	s := zvmtest.Start(t, zvmtest.WithClock(func() time.Time { return at }), zvmtest.WithUTCOffset(5*time.Hour+30*time.Minute))
	s.Advance(-time.Hour)
	s.Advance(time.Second)
	if got := s.Now().Format(time.RFC3339); got != "2026-02-28T23:00:01Z" {
		t.Errorf("Now = %s", got)
	}
	if a := login(t, s).get("/v1/serverDateTime/serverDateTimeLocal"); a.body != `"2026-03-01T04:30:01.000"` {
		t.Errorf("local time = %s", a.body)
	}
}

func TestLegacyDatesOfTasks(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSwitch(zvmtest.LegacyDates))
	c := login(t, s)
	id := c.insert(s.AddVPG("web", quiet()), "x")
	if body := c.get("/v1/tasks/" + id).body; !strings.Contains(body, `"Started":"/Date(1795946400000)/","Completed":null`) {
		t.Errorf("task = %s", body)
	}
}

func TestPanicOfACallbackIsReported(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	s := zvmtest.Start(r, zvmtest.WithInsertTimes(func(int) time.Duration { panic("no time") }))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	c := login(t, s)
	if a := c.post("/v1/vpgs/"+vpg.ID()+"/checkpoints", `{"checkpointName":"x"}`); a.status != http.StatusInternalServerError {
		t.Errorf("answer = %d, want 500", a.status)
	}
	if a := c.get("/v1/vpgs"); a.status != http.StatusOK {
		t.Errorf("afterwards the server answers %d", a.status)
	}
	if got := r.finish(); !strings.Contains(got, "panic in POST") || !strings.Contains(got, "no time") {
		t.Errorf("the test failed with %q", got)
	}
}

func TestUnknownCheckpointCannotBeLost(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	s := zvmtest.Start(r)
	s.AddVPG("web", quiet()).LoseCheckpoint("123")
	if got := r.finish(); !strings.Contains(got, "VPG web has no checkpoint 123 to lose") {
		t.Errorf("the test failed with %q", got)
	}
}

func TestCallsBeyondTheReachAreProblems(t *testing.T) {
	t.Parallel()
	s, err := zvmtest.New(zvmtest.WithReach("GET /v1/flrs/{id}", "POST /auth/realms/{realm}/protocol/openid-connect/token"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, path := range []string{"/v1/flrs/abc", "/v1/vms"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if diff := cmp.Diff([]string{"call beyond the reach: GET /v1/vms"}, s.Problems()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if _, err := zvmtest.New(zvmtest.WithReach("/v1/vms")); err == nil {
		t.Error("a call without a method was taken")
	}
}
