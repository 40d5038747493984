package zvmtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestFaultAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		script func(f *zvmtest.Fault)
		status int
		body   string
		header [2]string
	}{
		{"status", func(f *zvmtest.Fault) { f.Status(503, "") }, 503, "", [2]string{"Content-Type", ""}},
		{"status with a body", func(f *zvmtest.Fault) { f.Status(500, `{"Message":"x"}`) }, 500, `{"Message":"x"}`, [2]string{"Content-Type", "application/json; charset=utf-8"}},
		{"status with a header", func(f *zvmtest.Fault) { f.Header("Retry-After", "7").Status(429, "") }, 429, "", [2]string{"Retry-After", "7"}},
		{"garbage", func(f *zvmtest.Fault) { f.Garbage("<html>", "text/html") }, 200, "<html>", [2]string{"Content-Type", "text/html"}},
		{"redirect", func(f *zvmtest.Fault) { f.Redirect("https://127.0.0.1:1/x") }, 307, "", [2]string{"Location", "https://127.0.0.1:1/x"}},
		{"redirect of a page", func(f *zvmtest.Fault) { f.Header("Location", "/login").Status(302, "") }, 302, "", [2]string{"Location", "/login"}},
		{"page of a proxy", func(f *zvmtest.Fault) { f.Answer(503, "<html>", "text/html") }, 503, "<html>", [2]string{"Content-Type", "text/html"}},
		{"wrong content type", func(f *zvmtest.Fault) { f.ContentType("text/html") }, 200, "[]", [2]string{"Content-Type", "text/html"}},
		{"drip", func(f *zvmtest.Fault) { f.Drip(1, time.Microsecond) }, 200, "[]", [2]string{"Content-Length", "2"}},
		{"delay, then the truth", func(f *zvmtest.Fault) { f.Delay(time.Millisecond) }, 200, "[]", [2]string{"Content-Type", "application/json; charset=utf-8"}},
		{"a header on the truth", func(f *zvmtest.Fault) { f.Header("X-Y", "z") }, 200, "[]", [2]string{"X-Y", "z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := login(t, s)
			tc.script(s.On("GET", "/v1/vms"))
			a := c.get("/v1/vms")
			if a.status != tc.status || a.body != tc.body || a.header.Get(tc.header[0]) != tc.header[1] {
				t.Errorf("answer = %d %q %v", a.status, a.body, a.header)
			}
			if a := c.get("/v1/vms"); a.status != http.StatusOK || a.body != "[]" {
				t.Errorf("next answer = %d %q, want the truth", a.status, a.body)
			}
		})
	}
}

func TestFaultsTakeTurns(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(&recorder{})
	defer s.Close()
	c := login(t, s)
	s.On("GET", "/v1/vms").After(1).Times(2).Status(503, "")
	s.On("", "/v1/*").After(1).Status(504, "")
	s.On("GET", "/v1/vms").Times(0).Status(500, "")
	var got []int
	for range 6 {
		got = append(got, c.get("/v1/vms").status)
	}
	if diff := cmp.Diff([]int{200, 503, 503, 504, 200, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fault on GET /v1/vms"}, s.Unused()); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func TestFaultWithoutEndActsOnAndOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	s.On("GET", "/v1/VMS").Always().Status(503, "")
	for range 3 {
		if a := c.get("/v1/vms"); a.status != 503 {
			t.Errorf("answer = %d", a.status)
		}
	}
	if got := s.Unused(); len(got) != 0 {
		t.Errorf("unused = %v", got)
	}
}

func TestFaultsAroundAWrite(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		script    func(f *zvmtest.Fault)
		status    int // 0: the connection is cut
		processed bool
	}{
		{"cut before", func(f *zvmtest.Fault) { f.CutBefore() }, 0, false},
		{"cut after", func(f *zvmtest.Fault) { f.CutAfter() }, 0, true},
		{"answer instead", func(f *zvmtest.Fault) { f.Status(502, "") }, 502, false},
		{"answer after", func(f *zvmtest.Fault) { f.StatusAfter(502, "") }, 502, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			vpg := s.AddVPG("web", quiet())
			c := login(t, s)
			tc.script(s.On("POST", "/v1/vpgs/*/checkpoints"))
			a, err := c.try(http.MethodPost, "/v1/vpgs/"+vpg.ID()+"/checkpoints", "application/json", strings.NewReader(`{"checkpointName":"x"}`))
			if (err != nil) != (tc.status == 0) || a.status != tc.status {
				t.Errorf("answer = %d, %v", a.status, err)
			}
			s.Advance(3 * time.Second)
			if got := len(vpg.TaggedCheckpoints()) == 1; got != tc.processed {
				t.Errorf("processed = %v, want %v", got, tc.processed)
			}
		})
	}
}

func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, path string }{
		{"of a download", ""},
		{"of a JSON answer", "/v1/localsite"},
		{"of a streamed list", "/v1/vpgs/*/checkpoints"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := mountNow(t, twoFiles())
			path := strings.Replace(tc.path, "*", m.vpg.ID(), 1)
			if path == "" {
				path = m.download(oneFile).text(t)
			}
			whole := m.get(path).body
			m.s.On("GET", strings.Replace(path, m.vpg.ID(), "*", 1)).Truncate(3)
			a, err := m.try(http.MethodGet, path, "", nil)
			if !errors.Is(err, io.ErrUnexpectedEOF) || a.status != http.StatusOK || a.body != whole[:3] {
				t.Errorf("answer = %d %q, %v; want the first 3 bytes of %.20q and an unexpected end", a.status, a.body, err, whole)
			}
		})
	}
}

func TestDripSendsPieceByPiece(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	const pause = 20 * time.Millisecond
	s.On("GET", "/v1/tasks/types").Drip(100, pause)
	began := time.Now()
	slow := c.get("/v1/tasks/types")
	took, pieces := time.Since(began), (len(slow.body)+99)/100
	if truth := c.get("/v1/tasks/types"); slow.body != truth.body || pieces < 3 || took < time.Duration(pieces)*pause {
		t.Errorf("%d bytes in %d pieces took %v", len(slow.body), pieces, took)
	}
}

func TestDripEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	s.On("GET", "/v1/tasks/types").Drip(1, time.Hour)
	done := make(chan error, 1)
	go func() {
		_, err := c.try(http.MethodGet, "/v1/tasks/types", "", nil)
		done <- err
	}()
	for s.Count("GET", "/v1/tasks/types") == 0 {
		c.get("/v1/vpgs")
	}
	s.Close()
	if err := <-done; err == nil {
		t.Error("the answer arrived whole")
	}
}

func TestHangLastsAsLongAsTheClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := login(t, s)
	s.On("GET", "/v1/vms").Hang()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/v1/vms", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		resp, err := c.http.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for s.Count("GET", "/v1/vms") == 0 {
		c.get("/v1/localsite")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

func TestRequestLogIsRedacted(t *testing.T) {
	t.Parallel()
	m := mountNow(t, twoFiles(), zvmtest.WithServiceClient("agent", "MARKER-client", zvmtest.Admin))
	m.grant(url.Values{"grant_type": {"client_credentials"}, "client_id": {"agent"}, "client_secret": {"MARKER-client"}})
	m.grant(url.Values{"grant_type": {"refresh_token"}, "client_id": {"zerto-client"}, "refresh_token": {"MARKER-refresh"}})
	m.get(m.download(oneFile).text(t) + "?x=1")
	log := m.s.Requests()
	for _, r := range log {
		text := strings.Join(append(slices.Collect(headerValues(r.Header)), r.Path, r.Body, r.Query, r.Fault), "\n")
		if strings.Contains(text, "MARKER-") {
			t.Errorf("secret in %s %s: %s", r.Method, r.Path, text)
		}
	}
	last := log[len(log)-1]
	if last.Path != "/v1/downloads/[redacted]" || last.Query != "x=1" || last.Status != 200 || last.Header.Get("Authorization") != "[redacted]" {
		t.Errorf("last request = %+v", last)
	}
	if first := log[0]; !strings.Contains(first.Body, "username="+m.s.Username()) || !first.Time.Equal(m.s.Now().Add(-3*time.Second)) {
		t.Errorf("first request = %+v", first)
	}
	if n := m.s.Count("GET", "/v1/downloads/*"); n != 1 {
		t.Errorf("downloads = %d", n)
	}
}

func headerValues(h http.Header) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, values := range h {
			for _, v := range values {
				if !yield(v) {
					return
				}
			}
		}
	}
}

func TestMaxInFlightCountsOverlaps(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t)
	c := login(t, s)
	s.On("GET", "/v1/vms").Times(3).Hang()
	c.get("/v1/vpgs")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/v1/vms", nil)
			if err != nil {
				return
			}
			if resp, err := c.http.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	for s.Count("GET", "/v1/vms") < 3 {
		c.get("/v1/vpgs")
	}
	c.get("/v1/vpgs")
	cancel()
	wg.Wait()
	if got := []int{s.MaxInFlight("GET", "/v1/vms"), s.MaxInFlight("", "/v1/vpgs"), s.MaxInFlight("", "/v1/**")}; !slices.Equal(got, []int{3, 1, 4}) {
		t.Errorf("greatest overlaps = %v, want 3, 1 and 4", got)
	}
}
