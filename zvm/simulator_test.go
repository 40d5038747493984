package zvm_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func connect(t *testing.T, s *zvmtest.Server, opts ...zvm.Option) *zvm.Client {
	t.Helper()
	opts = append([]zvm.Option{
		zvm.WithRootCAs(s.CertPool()),
		zvm.WithRetry(zvm.RetryPolicy{Max: 3, MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond}),
	}, opts...)
	c, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// together runs f in n goroutines that start at the same moment.
func together(n int, f func()) {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			<-gate
			f()
		})
	}
	close(gate)
	wg.Wait()
}

func TestSimulatorSeesOneLoginForManyCallers(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t, zvmtest.WithManualClock(time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)))
	s.AddVM("web01", s.AddVPG("web", zvmtest.VPGConfig{}))
	c := connect(t, s)
	list := func() {
		if vms, err := c.ListVMs(t.Context(), zvm.VMFilter{}); err != nil || len(vms) != 1 {
			t.Errorf("got %v, %v", vms, err)
		}
	}
	together(200, list)
	if n := s.TokenRequests(); n != 1 {
		t.Errorf("%d token requests of a cold start, want 1", n)
	}
	for name, end := range map[string]func(){
		"tokens expire":  func() { s.Advance(2 * time.Minute) },
		"tokens revoked": s.RevokeTokens,
		"sessions ended": s.RevokeSessions,
	} {
		end()
		before := s.TokenRequests()
		together(50, list)
		// One renewal: by refresh token, or where the session is gone by a refused refresh and a login.
		if n := s.TokenRequests() - before; n > 2 {
			t.Errorf("%s: %d token requests, want at most 2", name, n)
		}
	}
}

func TestSimulatorRefusesNoLoginOfOneClient(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t, zvmtest.WithSwitch(zvmtest.ConcurrentLoginRefused), zvmtest.WithLoginTime(20*time.Millisecond))
	c := connect(t, s)
	together(50, func() {
		if _, err := c.ListVMs(t.Context(), zvm.VMFilter{}); err != nil {
			t.Error(err)
		}
	})
	if n := s.TokenRequests(); n != 1 {
		t.Errorf("%d token requests, want 1", n)
	}
}

func TestSimulatorKeepsTheInsertWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*zvmtest.Fault){
		"connection cut":     func(f *zvmtest.Fault) { f.CutAfter() },
		"502 in its place":   func(f *zvmtest.Fault) { f.StatusAfter(http.StatusBadGateway, "<html>Bad Gateway</html>") },
		"page in its place":  func(f *zvmtest.Fault) { f.StatusAfter(http.StatusOK, "<html>Sign in</html>") },
		"empty in its place": func(f *zvmtest.Fault) { f.StatusAfter(http.StatusOK, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := zvmtest.Start(t)
			vpg := s.AddVPG("web", zvmtest.VPGConfig{})
			s.AddVM("web01", vpg)
			lose(s.On("POST", "/v1/vpgs/*/checkpoints"))
			_, err := connect(t, s).InsertCheckpoint(t.Context(), zvm.VPGID(vpg.ID()), "tag")
			if !errors.Is(err, zvm.ErrOutcomeUnknown) {
				t.Errorf("error is %v", err)
			}
			if n := s.Count("POST", "/v1/vpgs/*/checkpoints"); n != 1 {
				t.Errorf("sent %d times, want 1", n)
			}
			if len(s.Tasks()) != 1 {
				t.Errorf("%d tasks, want the one that was started", len(s.Tasks()))
			}
		})
	}
}

func TestSimulatorBehindAPathPrefix(t *testing.T) {
	t.Parallel()
	s := zvmtest.Start(t, zvmtest.WithPathPrefix("/zvm"))
	s.AddVM("web01", s.AddVPG("web", zvmtest.VPGConfig{}))
	if vms, err := connect(t, s).ListVMs(t.Context(), zvm.VMFilter{Name: "WEB01"}); err != nil || len(vms) != 1 {
		t.Errorf("got %v, %v", vms, err)
	}
}
