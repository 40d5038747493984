package zvmtest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

type wireCheckpoint struct {
	CheckpointIdentifier string
	TimeStamp            string
	Tag                  *string
	Type                 int
}

func (c *client) checkpoints(vpg *zvmtest.VPG, query string) []wireCheckpoint {
	c.t.Helper()
	a := c.get("/v1/vpgs/" + vpg.ID() + "/checkpoints" + query)
	if a.status != http.StatusOK {
		c.t.Fatalf("checkpoints: %d %s", a.status, a.body)
	}
	var list []wireCheckpoint
	a.into(c.t, &list)
	return list
}

// quiet is a VPG without automatic checkpoints.
func quiet() zvmtest.VPGConfig { return zvmtest.VPGConfig{CheckpointInterval: -1} }

func TestInsertIsAcceptedRunsAndAppends(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	id := c.insert(vpg, "ai:bot | x")
	if got := c.task(id); got.Type != "InsertTaggedCP" || got.Status.State != zvmtest.TaskInProgress || got.Completed != nil {
		t.Errorf("task at once = %+v", got)
	}
	s.Advance(2999 * time.Millisecond)
	if got := c.checkpoints(vpg, ""); len(got) != 0 {
		t.Errorf("list before the task is done = %+v", got)
	}
	s.Advance(time.Millisecond)
	want := taskStatus{Type: "InsertTaggedCP", Completed: ptr("2026-11-29T10:00:03.000Z")}
	want.Status.State, want.Status.Progress = zvmtest.TaskCompleted, 100
	if diff := cmp.Diff(want, c.task(id)); diff != "" {
		t.Errorf("task when due (-want +got):\n%s", diff)
	}
	wantList := []wireCheckpoint{{vpg.TaggedCheckpoints()[0].ID, "2026-11-29T10:00:03.000Z", ptr("ai:bot | x"), 1}}
	if diff := cmp.Diff(wantList, c.checkpoints(vpg, "")); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func ptr[T any](v T) *T { return &v }

func TestTagIsListedAfterTheLag(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithListLag(2*time.Second))
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	id := c.insert(vpg, "x")
	s.Advance(3 * time.Second)
	if got := c.task(id).Status.State; got != zvmtest.TaskCompleted || len(c.checkpoints(vpg, "")) != 0 {
		t.Errorf("state %d with %d checkpoints, want Completed and none yet", got, len(c.checkpoints(vpg, "")))
	}
	s.Advance(2 * time.Second)
	if n := len(c.checkpoints(vpg, "")); n != 1 {
		t.Errorf("after the lag there are %d checkpoints", n)
	}
}

func TestSecondInsertAtABusyVPGFailsInItsTaskAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg, other := s.AddVPG("web", quiet()), s.AddVPG("db", quiet())
	c := login(t, s)
	first, second, elsewhere := c.insert(vpg, "first"), c.insert(vpg, "second"), c.insert(other, "elsewhere")
	s.Advance(3 * time.Second)
	third := c.insert(vpg, "third")
	s.Advance(3 * time.Second)
	var got []int
	for _, id := range []string{first, second, elsewhere, third} {
		got = append(got, c.task(id).Status.State)
	}
	want := []int{zvmtest.TaskCompleted, zvmtest.TaskFailed, zvmtest.TaskCompleted, zvmtest.TaskCompleted}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if reason := c.task(second).CompleteReason; reason == "" {
		t.Error("the failed task gives no reason")
	}
	if got := []int{vpg.MaxInFlight(), other.MaxInFlight()}; !slices.Equal(got, []int{2, 1}) {
		t.Errorf("greatest numbers of running inserts = %v, want 2 and 1", got)
	}
	if n := len(vpg.TaggedCheckpoints()); n != 2 {
		t.Errorf("tags = %d, want first and third", n)
	}
}

func TestForeignInsertOccupiesTheVPG(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	foreign := vpg.RunForeignInsert("nightly")
	mine := c.insert(vpg, "mine")
	s.Advance(3 * time.Second)
	if f, m := c.task(foreign).Status.State, c.task(mine).Status.State; f != zvmtest.TaskCompleted || m != zvmtest.TaskFailed {
		t.Errorf("foreign %d, mine %d, want Completed and Failed", f, m)
	}
}

func TestInsertAtAVPGThatDoesNotProtect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		opts   []zvmtest.Option
		status int
		state  int
	}{
		{"fails in its task", nil, 200, zvmtest.TaskFailed},
		{"is refused at once by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.InsertRefusedByHTTP)}, 500, 0},
		{"is lost without a word by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.InsertSilentlyLost)}, 200, zvmtest.TaskCompleted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			vpg := s.AddVPG("web", quiet())
			vpg.SetStatus(1, 25)
			c := login(t, s)
			a := c.post("/v1/vpgs/"+vpg.ID()+"/checkpoints", `{"checkpointName":"x"}`)
			if a.status != tc.status {
				t.Fatalf("status = %d, want %d", a.status, tc.status)
			}
			s.Advance(3 * time.Second)
			if tc.status == 200 {
				if got := c.task(a.text(t)).Status.State; got != tc.state {
					t.Errorf("state = %d, want %d", got, tc.state)
				}
			}
			if n := len(vpg.TaggedCheckpoints()); n != 0 {
				t.Errorf("there are %d tags", n)
			}
		})
	}
}

func TestInsertFailsIfTheVPGStopsProtectingMeanwhile(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	id := c.insert(vpg, "x")
	s.Advance(time.Second)
	vpg.BitmapSync(true)
	s.Advance(2 * time.Second)
	if got := c.task(id).Status.State; got != zvmtest.TaskFailed {
		t.Errorf("state = %d, want Failed", got)
	}
}

func TestInsertBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, tc := range []struct {
		name, body string
		opts       []zvmtest.Option
		status     int
		tag        string
	}{
		{"any case of the name", `{"CHECKPOINTNAME":"x"}`, nil, 200, "x"},
		{"byte order mark", "\xef\xbb\xbf" + `{"checkpointName":"x"}`, nil, 200, "x"},
		{"odd characters", `{"checkpointName":"a | \"ü\" <&> 100%"}`, nil, 200, `a | "ü" <&> 100%`},
		{"a long tag", `{"checkpointName":"` + long + `"}`, nil, 200, long},
		{"a long tag, refused", `{"checkpointName":"` + long + `"}`, []zvmtest.Option{zvmtest.WithSwitch(zvmtest.LongTagRefused)}, 500, ""},
		{"a long tag, cut", `{"checkpointName":"` + long + `"}`, []zvmtest.Option{zvmtest.WithSwitch(zvmtest.LongTagTruncated)}, 200, long[:80]},
		{"no name", `{}`, nil, 500, ""},
		{"no body", ``, nil, 400, ""},
		{"no JSON", `name`, nil, 400, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			vpg := s.AddVPG("web", quiet())
			c := login(t, s)
			if a := c.post("/v1/vpgs/"+vpg.ID()+"/checkpoints", tc.body); a.status != tc.status {
				t.Fatalf("answer = %d %s, want %d", a.status, a.body, tc.status)
			}
			s.Advance(3 * time.Second)
			got := c.checkpoints(vpg, "")
			if tc.tag == "" && len(got) > 0 || tc.tag != "" && (len(got) != 1 || *got[0].Tag != tc.tag) {
				t.Errorf("list = %+v, want tag %q", got, tc.tag)
			}
		})
	}
}

func TestBodyNeedsItsContentType(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	a := c.do(http.MethodPost, "/v1/vpgs/"+vpg.ID()+"/checkpoints", "text/plain", strings.NewReader(`{"checkpointName":"x"}`))
	if a.status != http.StatusUnsupportedMediaType {
		t.Errorf("answer = %d, want 415", a.status)
	}
}

func TestWindowsOfTheList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		from string
		to   string
		want string
	}{
		{"bounds are included", nil, "2026-11-29T10:00:10.000Z", "2026-11-29T10:00:20.000Z", "10 15 20"},
		{"bounds are left out by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DateBoundsExclusive)}, "2026-11-29T10:00:10.000Z", "2026-11-29T10:00:20.000Z", "15"},
		{"milliseconds count", nil, "2026-11-29T10:00:10.001Z", "2026-11-29T10:00:20.000Z", "15 20"},
		{"open end", nil, "2026-11-29T10:00:50Z", "", "50 55"},
		{"open begin", nil, "", "2026-11-29T10:00Z", "0"},
		{"without Z it is the server's local time", nil, "2026-11-29T06:00:50", "", "50 55"},
		{"an offset", nil, "2026-11-29T12:00:50+02:00", "", "50 55"},
		{"descending by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.CheckpointsDescending)}, "2026-11-29T10:00:50Z", "", "55 50"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			// The clock stands on a whole second, and so the first automatic
			// checkpoint is one second after.
			s.Advance(59 * time.Second)
			vpg := s.AddVPG("web", zvmtest.VPGConfig{JournalAge: time.Minute})
			c := login(t, s)
			query := url.Values{}
			for name, value := range map[string]string{"STARTDATE": tc.from, "endDate": tc.to} {
				if value != "" {
					query.Set(name, value)
				}
			}
			var seconds []string
			for _, one := range c.checkpoints(vpg, "?"+query.Encode()) {
				at, err := time.Parse("2006-01-02T15:04:05.000Z", one.TimeStamp)
				if err != nil {
					t.Fatal(err)
				}
				seconds = append(seconds, fmt.Sprint(at.Second()))
			}
			if got := strings.Join(seconds, " "); got != tc.want {
				t.Errorf("seconds = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWindowThatIsNoDateIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", quiet())
	if a := login(t, s).get("/v1/vpgs/" + vpg.ID() + "/checkpoints?startDate=yesterday"); a.status != http.StatusBadRequest {
		t.Errorf("answer = %d, want 400", a.status)
	}
}

func TestTimeStampSwitches(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want string
	}{
		{"whole seconds with a fraction", nil, "2026-11-29T10:00:00.000Z"},
		{"whole seconds", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.TimestampsWithoutFraction)}, "2026-11-29T10:00:00Z"},
		{"milliseconds", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.TimestampsInMilliseconds)}, "2026-11-29T10:00:00.700Z"},
		{"legacy", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.LegacyDates)}, "/Date(1795946400000)/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, append(tc.opts, zvmtest.WithInsertTime(200*time.Millisecond))...)
			vpg := s.AddVPG("web", quiet())
			c := login(t, s)
			s.Advance(500 * time.Millisecond)
			c.insert(vpg, "x")
			s.Advance(200 * time.Millisecond)
			if got := c.checkpoints(vpg, "")[0].TimeStamp; got != tc.want {
				t.Errorf("TimeStamp = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestShuffledListHoldsTheSameCheckpoints(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSwitch(zvmtest.CheckpointsShuffled))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	var got []string
	for _, one := range login(t, s).checkpoints(vpg, "") {
		got = append(got, one.CheckpointIdentifier)
	}
	if slices.IsSorted(got) {
		t.Error("the list is in order")
	}
	slices.Sort(got)
	var want []string
	for _, one := range vpg.Checkpoints(time.Time{}, time.Time{}) {
		want = append(want, one.ID)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestCheckpointsAgeOut(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithTokenTTL(24*time.Hour))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{History: time.Hour, JournalAge: 24 * time.Hour})
	c := login(t, s)
	c.insert(vpg, "x")
	s.Advance(3 * time.Second)
	tag := vpg.TaggedCheckpoints()[0]
	if n := len(c.checkpoints(vpg, "")); n != 3600/5+1 {
		t.Errorf("an hour holds %d checkpoints", n)
	}
	s.Advance(time.Hour + time.Second)
	if got := vpg.TaggedCheckpoints(); len(got) != 0 {
		t.Errorf("the tag outlived the history: %+v", got)
	}
	if got := c.checkpoints(vpg, "?endDate="+tag.Time.Format(time.RFC3339)); len(got) != 0 {
		t.Errorf("older than the history: %+v", got)
	}
}

func TestBitmapSyncKeepsOldCheckpointsAndAddsNone(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{JournalAge: time.Minute})
	before := vpg.Checkpoints(time.Time{}, time.Time{})
	vpg.BitmapSync(true)
	s.Advance(time.Minute)
	if diff := cmp.Diff(before, vpg.Checkpoints(time.Time{}, time.Time{})); diff != "" {
		t.Errorf("during the sync (-want +got):\n%s", diff)
	}
	vpg.BitmapSync(false)
	s.Advance(time.Minute)
	if got := len(vpg.Checkpoints(time.Time{}, time.Time{})); got != len(before)+12 {
		t.Errorf("a minute after the sync there are %d checkpoints, want %d", got, len(before)+12)
	}
}

func TestResyncRemovesEveryCheckpoint(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	c := login(t, s)
	c.insert(vpg, "x")
	s.Advance(3 * time.Second)
	vpg.Resync()
	if got := c.checkpoints(vpg, ""); len(got) != 0 {
		t.Errorf("after the resync: %+v", got)
	}
	a := c.get("/v1/vpgs/" + vpg.ID() + "/checkpoints/stats")
	if want := `{"Earliest":null,"Latest":null}`; a.body != want {
		t.Errorf("stats = %s, want %s", a.body, want)
	}
}

func TestLostCheckpointIsGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{JournalAge: time.Minute})
	all := vpg.Checkpoints(time.Time{}, time.Time{})
	vpg.LoseCheckpoint(all[3].ID)
	want := slices.Delete(slices.Clone(all), 3, 4)
	if diff := cmp.Diff(want, vpg.Checkpoints(time.Time{}, time.Time{})); diff != "" {
		t.Errorf("after the loss (-want +got):\n%s", diff)
	}
}

func TestStatsAreTheEndsOfTheList(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	c := login(t, s)
	list := c.checkpoints(vpg, "")
	var got struct{ Earliest, Latest wireCheckpoint }
	c.get("/v1/vpgs/"+vpg.ID()+"/checkpoints/stats").into(t, &got)
	if diff := cmp.Diff([]wireCheckpoint{list[0], list[len(list)-1]}, []wireCheckpoint{got.Earliest, got.Latest}); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestLongJournalIsListedWhole(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{History: day, JournalAge: day})
	a := login(t, s).get("/v1/vpgs/" + vpg.ID() + "/checkpoints")
	if got := strings.Count(a.body, `"CheckpointIdentifier"`); got != 17_280 {
		t.Errorf("a day holds %d checkpoints, want 17280", got)
	}
	first, _, _ := strings.Cut(a.body, "},")
	last := a.body[strings.LastIndex(a.body, "{"):]
	if !strings.HasPrefix(first, `[{"CheckpointIdentifier":"780000"`) || !strings.HasSuffix(last, "}]") {
		t.Errorf("ends = %s … %s", first, last)
	}
}

func TestInsertTimesAreAskedPerInsert(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithInsertTimes(func(n int) time.Duration { return time.Duration(n+1) * time.Second }))
	vpg := s.AddVPG("web", quiet())
	c := login(t, s)
	for n := range 3 {
		id := c.insert(vpg, strconv.Itoa(n))
		s.Advance(time.Duration(n)*time.Second + 999*time.Millisecond)
		if got := c.task(id).Status.State; got != zvmtest.TaskInProgress {
			t.Errorf("insert %d ended early", n)
		}
		s.Advance(time.Millisecond)
		if got := c.task(id).Status.State; got != zvmtest.TaskCompleted {
			t.Errorf("insert %d did not end in time", n)
		}
	}
}

func TestAutomaticCheckpointsOfAConfiguration(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		cfg  zvmtest.VPGConfig
		want int // at the start
		more int // a minute later
	}{
		{"default", nil, zvmtest.VPGConfig{}, 720, 732},
		{"empty journal", nil, zvmtest.VPGConfig{JournalAge: -1}, 0, 12},
		{"none", nil, zvmtest.VPGConfig{CheckpointInterval: -1}, 0, 0},
		{"none on the server", []zvmtest.Option{zvmtest.WithCheckpointInterval(-1)}, zvmtest.VPGConfig{}, 0, 0},
		{"interval of the server", []zvmtest.Option{zvmtest.WithCheckpointInterval(20 * time.Second)}, zvmtest.VPGConfig{JournalAge: -1}, 0, 3},
		{"interval of the VPG", nil, zvmtest.VPGConfig{CheckpointInterval: 30 * time.Second, JournalAge: -1}, 0, 2},
		{"not protecting from the start", nil, zvmtest.VPGConfig{SubStatus: 4, JournalAge: time.Minute}, 12, 12},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			vpg := s.AddVPG("web", tc.cfg)
			count := func() int { return len(vpg.Checkpoints(time.Time{}, time.Time{})) }
			first := count()
			s.Advance(time.Minute)
			if got := count(); first != tc.want || got != tc.more {
				t.Errorf("checkpoints = %d, then %d, want %d and %d", first, got, tc.want, tc.more)
			}
		})
	}
}
