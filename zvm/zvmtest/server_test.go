package zvmtest_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// recorder is a test that notes what Start does to it.
type recorder struct {
	cleanups []func()
	errors   []string
	fatal    []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = append(r.fatal, fmt.Sprintf(format, args...))
}

func (r *recorder) finish() string {
	for _, f := range r.cleanups {
		f()
	}
	return strings.Join(r.errors, "\n")
}

func TestStartFailsTheTestForWhatShouldNotHappen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		act  func(t *testing.T, s *zvmtest.Server, c *client)
		want string
	}{
		{"nothing", func(*testing.T, *zvmtest.Server, *client) {}, ""},
		{
			"an unknown route",
			func(_ *testing.T, _ *zvmtest.Server, c *client) { c.get("/v1/reports/recovery") },
			"unknown call: GET /v1/reports/recovery",
		},
		{
			"an empty id in a path",
			func(_ *testing.T, _ *zvmtest.Server, c *client) { c.get("/v1/vpgs//checkpoints") },
			"unknown call: GET /v1/vpgs//checkpoints",
		},
		{
			"a wrong method",
			func(_ *testing.T, _ *zvmtest.Server, c *client) { c.post("/v1/localsite", "{}") },
			"unknown call: POST /v1/localsite",
		},
		{
			"a live failover",
			func(_ *testing.T, s *zvmtest.Server, c *client) {
				c.post("/v1/vpgs/"+s.AddVPG("web", zvmtest.VPGConfig{}).ID()+"/Failover", "{}")
			},
			"forbidden call: POST /v1/vpgs/",
		},
		{
			"a live failover without a token",
			func(_ *testing.T, _ *zvmtest.Server, c *client) { c.token = ""; c.post("/v1/vpgs/x/failover", "{}") },
			"forbidden call: POST /v1/vpgs/x/failover",
		},
		{
			"an unused fault",
			func(_ *testing.T, s *zvmtest.Server, _ *client) { s.On("GET", "/v1/vms").CutAfter() },
			"never happened: fault on GET /v1/vms",
		},
		{
			"an unused outcome",
			func(_ *testing.T, s *zvmtest.Server, _ *client) { s.ScriptTask("Clone", zvmtest.TaskFailed, "") },
			"never happened: outcome of a task Clone",
		},
		{
			"a VM in four VPGs",
			func(_ *testing.T, s *zvmtest.Server, _ *client) {
				var vpgs []*zvmtest.VPG
				for i := range 4 {
					site := s.AddPeerSite(fmt.Sprint(i))
					vpgs = append(vpgs, s.AddVPG("web", zvmtest.VPGConfig{RecoverySite: site}))
				}
				s.AddVM("web01", vpgs...)
			},
			`VM "web01" is in 4 VPGs`,
		},
		{
			"two VPGs with one recovery site",
			func(_ *testing.T, s *zvmtest.Server, _ *client) {
				s.AddVM("web01", s.AddVPG("a", zvmtest.VPGConfig{}), s.AddVPG("b", zvmtest.VPGConfig{}))
			},
			`VM "web01" cannot be in VPG "b"`,
		},
		{
			"a site of nobody",
			func(_ *testing.T, s *zvmtest.Server, _ *client) {
				s.AddVPG("a", zvmtest.VPGConfig{RecoverySite: zvmtest.Site{ID: "x", Name: "Mars"}})
			},
			`site "Mars" is not of this server`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{}
			s := zvmtest.Start(r)
			tc.act(t, s, login(t, s))
			got := r.finish()
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("the test failed with %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestUnknownRouteIsAnHonestError(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(&recorder{})
	defer s.Close()
	c := login(t, s)
	a := c.get("/v1/license")
	want := `{"Message":"the simulator does not implement GET /v1/license"}`
	if a.status != http.StatusNotImplemented || a.body != want {
		t.Errorf("answer = %d %s, want 501 %s", a.status, a.body, want)
	}
	if diff := cmp.Diff([]string{"GET /v1/license"}, s.UnknownCalls()); diff != "" {
		t.Errorf("unknown calls (-want +got):\n%s", diff)
	}
}

func TestForbiddenCallsAreCountedAndRefused(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(&recorder{})
	defer s.Close()
	c := login(t, s)
	var want []string
	for _, op := range s.Support() {
		if op.Served {
			continue
		}
		path := strings.ReplaceAll(op.Path, "{id}", "x")
		if a := c.do(op.Method, path, "", nil); a.status != http.StatusForbidden {
			t.Errorf("%s %s = %d, want 403", op.Method, path, a.status)
		}
		want = append(want, op.Method+" "+path)
	}
	if diff := cmp.Diff(want, s.ForbiddenCalls()); diff != "" || len(want) < 10 {
		t.Errorf("forbidden calls (-want +got):\n%s", diff)
	}
}

func TestOptionsThatMakeNoSenseAreErrors(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]zvmtest.Option{
		"nil option":               nil,
		"nil clock":                zvmtest.WithClock(nil),
		"zero start":               zvmtest.WithManualClock(time.Time{}),
		"nil listener":             zvmtest.WithListener(nil),
		"prefix without slash":     zvmtest.WithPathPrefix("zvm"),
		"realm with a slash":       zvmtest.WithRealm("a/b"),
		"odd zone":                 zvmtest.WithUTCOffset(time.Second),
		"token without life":       zvmtest.WithTokenTTL(0),
		"refresh without life":     zvmtest.WithRefreshTTL(-1),
		"negative insert":          zvmtest.WithInsertTime(-1),
		"nil insert times":         zvmtest.WithInsertTimes(nil),
		"negative lag":             zvmtest.WithListLag(-1),
		"nil listener of requests": zvmtest.WithOnRequest(nil),
		"negative request log":     zvmtest.WithRequestLog(-1),
		"short interval":           zvmtest.WithCheckpointInterval(time.Millisecond),
		"nameless user":            zvmtest.WithUser("", "x", zvmtest.Admin),
		"roleless client":          zvmtest.WithServiceClient("x", "x", 0),
		"unknown switch":           zvmtest.WithSwitch(0),
		"unknown profile":          zvmtest.WithProfile(0),
		"contradiction":            zvmtest.WithSwitch(zvmtest.CheckpointsDescending, zvmtest.CheckpointsShuffled),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := zvmtest.New(opt); err == nil {
				s.Close()
				t.Error("New took it")
			}
			r := &recorder{}
			if s := zvmtest.Start(r, opt); s != nil || len(r.fatal) != 1 {
				t.Errorf("Start = %v with %q, want one fatal error", s, r.fatal)
			}
		})
	}
}

func TestCertificateIsTheOneThatIsPublished(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CAPEM()) {
		t.Fatal("CAPEM holds no certificate")
	}
	host := strings.TrimPrefix(s.URL(), "https://")
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sum := sha256.Sum256(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw)
	if got := hex.EncodeToString(sum[:]); got != s.CertSHA256() {
		t.Errorf("CertSHA256 = %s, the certificate has %s", s.CertSHA256(), got)
	}
}

func TestPathPrefixHoldsTheWholeAPI(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(&recorder{}, zvmtest.WithPathPrefix("/zvm/"))
	defer s.Close()
	if !strings.HasSuffix(s.URL(), "/zvm") {
		t.Fatalf("URL = %s", s.URL())
	}
	c := login(t, s)
	if a := c.get("/v1/localsite"); a.status != http.StatusOK {
		t.Errorf("with the prefix: %d", a.status)
	}
	if a := c.get(strings.TrimSuffix(s.URL(), "/zvm") + "/v1/localsite"); a.status != http.StatusNotImplemented {
		t.Errorf("without the prefix: %d, want 501", a.status)
	}
	if got := s.Count("GET", "/v1/localsite"); got != 2 {
		t.Errorf("Count = %d, want 2: patterns know no prefix", got)
	}
}

func TestOneSeedGivesOneSetOfIDs(t *testing.T) {
	t.Parallel()
	ids := func(seed uint64) []string {
		s := start(t, zvmtest.WithSeed(seed))
		vpg := s.AddVPG("web", zvmtest.VPGConfig{})
		return []string{s.LocalSite().ID, vpg.ID(), s.AddVM("web01", vpg).ID(), vpg.RunForeignInsert("x")}
	}
	if diff := cmp.Diff(ids(7), ids(7)); diff != "" {
		t.Errorf("one seed, two runs (-first +second):\n%s", diff)
	}
	for i, id := range ids(8) {
		if id == ids(7)[i] {
			t.Errorf("two seeds share %s", id)
		}
	}
}

func TestTokensOfAnotherServerAreRefused(t *testing.T) {
	t.Parallel()
	one, two := zvmtest.Start(t), zvmtest.Start(t)
	c := newClient(t, two)
	c.token = login(t, one).token
	if a := c.get("/v1/localsite"); a.status != http.StatusUnauthorized {
		t.Errorf("answer = %d, want 401", a.status)
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t)
	c := login(t, s)
	s.On("GET", "/v1/vms").Hang()
	done := make(chan error)
	go func() {
		_, err := c.try(http.MethodGet, "/v1/vms", "", nil)
		done <- err
	}()
	for s.Count("GET", "/v1/vms") == 0 {
		c.get("/v1/localsite")
	}
	s.Close()
	s.Close()
	if err := <-done; err == nil {
		t.Error("the hanging request was answered")
	}
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL(), "https://")); err == nil {
		t.Error("the port is still open")
	}
}

func TestListenerIsUsed(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := zvmtest.Start(t, zvmtest.WithListener(l))
	if want := "https://" + l.Addr().String(); s.URL() != want {
		t.Errorf("URL = %s, want %s", s.URL(), want)
	}
	login(t, s)
	s.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close the listener says %v", err)
	}
}

func TestManyServersAndClientsAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			s := zvmtest.Start(t, zvmtest.WithProfile(zvmtest.Quick))
			vpg := s.AddVPG("web", zvmtest.VPGConfig{JournalAge: time.Minute})
			vm := s.AddVM("web01", vpg)
			c := login(t, s)
			var calls sync.WaitGroup
			for i := range 2 {
				calls.Go(func() {
					_ = vm.Guest().WriteFile(fmt.Sprintf("/tmp/%d", i), []byte("x"))
					c.insert(vpg, fmt.Sprint(i))
					c.get("/v1/vpgs/" + vpg.ID() + "/checkpoints")
					c.get("/v1/tasks")
					vpg.Checkpoints(s.Now().Add(-time.Minute), s.Now())
				})
			}
			calls.Wait()
		})
	}
	wg.Wait()
}
