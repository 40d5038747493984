package mcpadapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestRefusedCredentialsAreToldWithoutThem(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client, err := zvm.New(w.zvm.URL(), zvm.Password(w.zvm.Username(), "MARKER-wrong"), zvm.WithRootCAs(w.zvm.CertPool()))
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
		w.session = w.newSession()
		f := refusedCall(t, w.connect(t, era), findTool, args{"vm": "web01"})
		if f.Code != "not_authorized" || strings.Contains(f.Detail, "MARKER-") {
			t.Errorf("refusal = %+v", f)
		}
	})
}

func TestALostInsertIsAnUnknownOutcomeAndNoGuard(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		w.zvm.On("POST", "/v1/vpgs/*/checkpoints").CutBefore()
		w.session = w.newSession(rewind.WithLimits(rewind.Limits{Reconcile: 50 * time.Millisecond}))
		f := refusedCall(t, w.connect(t, era), guardTool, args{"vm": "web01", "action": "x"})
		if f.Code != "outcome_unknown" || len(f.Failed) != 1 || f.Failed[0].Tag == "" {
			t.Errorf("refusal = %+v", f)
		}
		if n := w.zvm.Count("POST", "/v1/vpgs/*/checkpoints"); n != 1 {
			t.Errorf("%d inserts were sent, want 1", n)
		}
	})
}

func TestALostAnswerWhoseTagStandsIsAGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.zvm.On("POST", "/v1/vpgs/*/checkpoints").CutAfter()
	record := call[rewind.GuardRecord](t, w.connect(t, eras[0]), guardTool, args{"vm": "web01", "action": "x"})
	if len(record.Checkpoints) != 1 || record.Checkpoints[0].Tag != w.vpg.TaggedCheckpoints()[0].Tag {
		t.Errorf("record = %+v", record)
	}
}
