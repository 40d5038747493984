package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest/conformance"
)

// TestLaw7_TheReportHoldsNothingPrivate looks for names, ids, addresses and
// secrets in reports of a good run and of one full of refusals that quote
// them.
func TestLaw7_TheReportHoldsNothingPrivate(t *testing.T) {
	t.Parallel()
	private := regexp.MustCompile(`(?i)MARKER|web01|web vpg|web-dr|Disaster|Production|svc-rewind|127\.0\.0\.1|192\.0\.2\.|` +
		`[0-9a-f]{8}-[0-9a-f]{4}-|\.vm-\d`)
	for name, prepare := range map[string]func(*zvmtest.Server){
		"a good run": func(*zvmtest.Server) {},
		"refusals that quote": func(s *zvmtest.Server) {
			quote := fmt.Sprintf(`{"Message":"VPG WEB VPG of web01 (%s) at %s, Bearer %s"}`, s.LocalSite().ID, s.URL(), s.Password())
			s.On("POST", "/v1/vpgs/*/checkpoints").Times(3).Status(500, quote)
			s.On("GET", "/v1/flrs").Status(403, quote)
		},
	} {
		for _, omit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, omit %t", name, omit), func(t *testing.T) {
				t.Parallel()
				s := world(t)
				prepare(s)
				to := target(t, s)
				to.OmitNames = omit
				report, err := conformance.Check(t.Context(), to)
				if err != nil {
					t.Fatal(err)
				}
				data, err := report.JSON()
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{report.Markdown(), string(data), fmt.Sprintf("%+v %#v", to.Tap, to.Tap)} {
					if found := private.FindAllString(text, -1); found != nil {
						t.Errorf("%q in\n%s", found, text)
					}
				}
				if omit == strings.Contains(string(data), "vpg#") && name != "a good run" {
					t.Errorf("omit is %t, and pseudonyms are in the report: %t", omit, !omit)
				}
			})
		}
	}
}

func TestNamesOfStatusesAreNotTakenForNamesOfSites(t *testing.T) {
	t.Parallel()
	s := world(t, zvmtest.WithSiteName("Recovery"))
	report, err := conformance.Check(t.Context(), target(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if text := report.Markdown(); !strings.Contains(text, "RecoveryPossible") {
		t.Errorf("no RecoveryPossible in\n%s", text)
	}
}

func TestReportForPrograms(t *testing.T) {
	t.Parallel()
	report := conformance.Report{
		Results: []conformance.Result{{Behaviour: "b", Mutates: true, Outcome: conformance.Failed, Detail: "why", Seconds: 1.5}},
		Answers: []conformance.Answer{{Question: 3, Probe: "p", Observed: "o"}},
	}
	data, err := report.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	unanswered := got["unanswered"].([]any)
	delete(got, "unanswered")
	want := map[string]any{
		"results": []any{map[string]any{"behaviour": "b", "mutates": true, "outcome": "failed", "detail": "why", "seconds": 1.5}},
		"answers": []any{map[string]any{"question": 3.0, "probe": "p", "observed": "o"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if len(unanswered) != 39 || slices.Contains(unanswered, any(3.0)) {
		t.Errorf("unanswered: %v", unanswered)
	}
}

func TestReportKeepsItsTables(t *testing.T) {
	t.Parallel()
	report := conformance.Report{Answers: []conformance.Answer{{Question: 21, Probe: "p", Observed: "a | b\n\n# <script>`"}}}
	want := `| 21 | p | a \| b # &lt;script>' |`
	if got := report.Markdown(); !strings.Contains(got, want+"\n") {
		t.Errorf("no row %s in\n%s", want, got)
	}
}

func TestSuiteTellsWhatALostAnswerMayHaveOpened(t *testing.T) {
	t.Parallel()
	s := world(t)
	s.On("POST", "/v1/flrs").CutAfter()
	report, err := conformance.Check(t.Context(), target(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.LeftOpen) != 1 || !strings.Contains(report.LeftOpen[0], "FLR session") {
		t.Errorf("left open: %q", report.LeftOpen)
	}
}

// transport is a function that carries requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestSuiteClosesWhatACancelledRunLeft(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/browse", "/FailoverTestStop"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := world(t)
			to := target(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			below := to.Tap
			to.Tap = nil
			client, err := zvm.New(s.URL(), zvm.Password(s.Username(), s.Password()),
				zvm.WithTransport(transport(func(req *http.Request) (*http.Response, error) {
					if strings.HasSuffix(req.URL.Path, path) {
						cancel()
					}
					return below.RoundTrip(req)
				})))
			if err != nil {
				t.Fatal(err)
			}
			to.Client = client
			report, err := conformance.Check(ctx, to)
			if err != nil || len(report.Failed()) == 0 || len(report.LeftOpen) > 0 {
				t.Errorf("failed %v, left open %v, %v", report.Failed(), report.LeftOpen, err)
			}
			nothingLeft(t, s)
		})
	}
}

func TestTargetsThatAreUnusable(t *testing.T) {
	t.Parallel()
	good := target(t, world(t))
	for name, change := range map[string]func(*conformance.Target){
		"no client":      func(to *conformance.Target) { to.Client = nil },
		"no VM":          func(to *conformance.Target) { to.VM = "" },
		"negative limit": func(to *conformance.Target) { to.Limit = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := good
			change(&bad)
			if _, err := conformance.Check(t.Context(), bad); err == nil {
				t.Error("no error")
			}
		})
	}
}

// TestRunWithoutATap checks every behaviour and leaves the wire alone.
func TestRunWithoutATap(t *testing.T) {
	t.Parallel()
	to := target(t, world(t))
	to.Tap = nil
	report, err := conformance.Check(t.Context(), to)
	if err != nil || len(report.Failed()) > 0 {
		t.Errorf("failed %v, %v", report.Failed(), err)
	}
}

func TestRunWithoutTheVM(t *testing.T) {
	t.Parallel()
	to := target(t, world(t))
	to.VM = "web0"
	report, err := conformance.Check(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a VM is found by its name"}, report.Failed()); diff != "" {
		t.Errorf("failed behaviours (-want +got):\n%s", diff)
	}
}
