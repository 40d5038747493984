package conformance_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest/conformance"
)

// world is a ZVM with web01, in a local VPG and in one that recovers elsewhere.
func world(t *testing.T, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	const soon = 5 * time.Millisecond
	quick := []zvmtest.Option{
		zvmtest.WithInsertTime(soon), zvmtest.WithMountTime(soon), zvmtest.WithUnmountTime(soon), zvmtest.WithTestTime(soon),
	}
	s := zvmtest.Start(t, slices.Concat(quick, opts)...)
	local := s.AddVPG("web vpg", zvmtest.VPGConfig{})
	remote := s.AddVPG("web-dr", zvmtest.VPGConfig{RecoverySite: s.AddPeerSite("Disaster")})
	vm := s.AddVM("web01", local, remote)
	vm.SetIPs("192.0.2.7")
	s.AddVM("web010", s.AddVPG("other", zvmtest.VPGConfig{}))
	for path, content := range map[string]string{"/etc/app.conf": "before", "/var/log/app.log": "started\n"} {
		if err := vm.Guest().WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// target allows everything that the suite can do.
func target(t *testing.T, s *zvmtest.Server) conformance.Target {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.CertPool(), MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	tap := conformance.NewTap(transport)
	client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()), zvm.WithTransport(tap))
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Target{
		Client: client, Tap: tap, VM: "web01", Mutate: true, Test: true,
		Schedule: task.Schedule{Min: time.Millisecond, Max: 10 * time.Millisecond},
		Limit:    10 * time.Second,
	}
}

// nothingLeft fails the test if the suite left anything open.
func nothingLeft(t *testing.T, s *zvmtest.Server) {
	t.Helper()
	if mounts, tests := s.LiveFLRSessions(), s.LiveTests(); len(mounts)+len(tests) > 0 {
		t.Errorf("left open: %+v, %+v", mounts, tests)
	}
}

func TestSimulatorConforms(t *testing.T) {
	t.Parallel()
	s := world(t, zvmtest.WithInsertTime(2*time.Second)) // so that two inserts meet
	report := conformance.Run(t, target(t, s))
	for _, r := range report.Results {
		if r.Outcome != conformance.Passed {
			t.Errorf("%s: %s: %s", r.Behaviour, r.Outcome, r.Detail)
		}
	}
	if len(report.Answers) < 20 {
		t.Errorf("only %d questions were answered", len(report.Answers))
	}
	if !slices.ContainsFunc(report.Answers, func(a conformance.Answer) bool { return a.Question == 18 && a.Observed == "Completed; Failed" }) {
		t.Errorf("two inserts did not meet:\n%s", report.Markdown())
	}
	nothingLeft(t, s)
}

// TestSimulatorConformsWithEachSwitch turns one question after the other. A
// switch that no recovery survives has to be noticed as what it is.
func TestSimulatorConformsWithEachSwitch(t *testing.T) {
	t.Parallel()
	breaks := map[zvmtest.Switch][]string{
		zvmtest.LongTagRefused:      {"a tag of 200 bytes arrives whole"},
		zvmtest.LongTagTruncated:    {"a tag of 200 bytes arrives whole"},
		zvmtest.MountFails:          {"a VM can be mounted from a tagged checkpoint"},
		zvmtest.UnmountFails:        {"an unmounted session is listed no more"},
		zvmtest.DownloadLinkForeign: {"a file arrives whole"},
		zvmtest.DownloadNotALink:    {"a file arrives whole"},
		zvmtest.DownloadLoginPage:   {"a file arrives whole"},
	}
	for _, sw := range zvmtest.Switches() {
		t.Run(sw.String(), func(t *testing.T) {
			t.Parallel()
			s := world(t, zvmtest.WithSwitch(sw))
			report, err := conformance.Check(t.Context(), target(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(breaks[sw], report.Failed(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("failed behaviours (-want +got):\n%s\n%s", diff, report.Markdown())
			}
			if sw != zvmtest.UnmountFails {
				nothingLeft(t, s)
			}
		})
	}
}

// TestHostileSimulatorConforms turns about half of the switches at once.
func TestHostileSimulatorConforms(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := world(t, zvmtest.WithProfile(zvmtest.Hostile), zvmtest.WithSeed(seed))
			report, err := conformance.Check(t.Context(), target(t, s))
			if err != nil || len(report.Failed()) > 0 {
				t.Errorf("%v\n%s", err, report.Markdown())
			}
			nothingLeft(t, s)
		})
	}
}

func TestReadOnlyRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := world(t)
	readOnly := target(t, s)
	readOnly.Mutate = false
	report, err := conformance.Check(t.Context(), readOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		want := conformance.Passed
		if r.Mutates {
			want = conformance.Skipped
		}
		if r.Outcome != want {
			t.Errorf("%s: %s: %s", r.Behaviour, r.Outcome, r.Detail)
		}
	}
	for _, request := range s.Requests() {
		if request.Method != http.MethodGet && !strings.HasPrefix(request.Path, "/auth/") {
			t.Errorf("sent %s %s", request.Method, request.Path)
		}
	}
}
