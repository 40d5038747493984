package rewind_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestWhatTheServerWouldNotMountIsNotMounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, reason string
		with         func(*world)
		optional     bool // the server may leave out the field that says so
	}{
		{"FLR is off", "file-level recovery is not possible", func(w *world) { w.web.SetFLREnabled(false) }, true},
		{"a delta sync runs", "", func(w *world) { w.local.SetStatus(1, 6) }, false},
		{"the first sync runs", "", func(w *world) { w.local.SetStatus(0, 1) }, false},
		{"the server says no of this checkpoint", "scripted: in use", func(w *world) {
			pin := w.local.TaggedCheckpoints()[0]
			w.sim.On("GET", "/v1/vms/*/pointsInTime").Status(200, fmt.Sprintf(`[{"Checkpoint":{"CheckpointIdentifier":%q,
				"TimeStamp":%q},"CanMount":{"IsAllowed":false,"Reason":"scripted: in use"}}]`, pin.ID, pin.Time.UTC().Format(time.RFC3339)))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			tt.with(w)
			_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
			var refused *rewind.NotMountableError
			if !errors.As(err, &refused) && !(tt.optional && !tellsAll()) {
				t.Fatalf("got %v, want *NotMountableError", err)
			}
			if refused != nil && (refused.VPGName != "web-local" || refused.VM.Name != "web01" || refused.Reason == "" ||
				tellsAll() && !strings.Contains(refused.Reason, tt.reason)) {
				t.Errorf("refused as %+v, want the reason %q", refused, tt.reason)
			}
			if n := w.sim.Count("POST", "/v1/flrs"); refused != nil && n != 0 {
				t.Errorf("%d mounts sent", n)
			}
		})
	}
}

// A server that does not say what it would mount is not asked to mount from a VPG whose sync forbids it.
func TestASyncAloneForbidsAMount(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*zvmtest.Fault){
		"points in time are not served":   func(f *zvmtest.Fault) { f.Status(404, `{}`).Always() },
		"points in time do not work":      func(f *zvmtest.Fault) { f.Status(500, `{}`).Always() },
		"points in time forbid nothing":   func(f *zvmtest.Fault) { f.Status(200, `[]`).Always() },
		"points in time are a login page": func(f *zvmtest.Fault) { f.Garbage("<html>log in</html>", "text/html").Always() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			answer(w.sim.On("GET", "/v1/vms/*/pointsInTime"))
			for _, state := range []struct {
				status, sub int
				reason      string
			}{
				{0, 0, "Initializing"},
				{1, 1, "InitialSync"},
				{1, 3, "VolumeInitialSync"},
				{1, 4, "Sync"},
				{1, 6, "DeltaSync"},
				{2, 11, "FullSync"},
				{2, 12, "VolumeDeltaSync"},
				{2, 13, "VolumeFullSync"},
			} {
				w.local.SetStatus(state.status, state.sub)
				_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
				var refused *rewind.NotMountableError
				if !errors.As(err, &refused) || !strings.Contains(refused.Reason, state.reason) {
					t.Errorf("got %v, want *NotMountableError with the reason %s", err, state.reason)
				}
			}
			if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
				t.Errorf("%d mounts sent", n)
			}
		})
	}
}

func TestWhatForbidsNoMountIsMounted(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(*world){
		"a bitmap sync":                    func(w *world) { w.local.SetStatus(1, 23) },
		"a server without points in time":  func(w *world) { w.sim.On("GET", "/v1/vms/*/pointsInTime").Status(404, `{}`).Always() },
		"points in time that do not work":  func(w *world) { w.sim.On("GET", "/v1/vms/*/pointsInTime").Status(500, `{}`).Always() },
		"a VM list that cannot be had now": func(w *world) { w.sim.On("GET", "/v1/vms").Status(500, `{}`).Always() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.guard(t, "web01")
			with(w)
			var got bytes.Buffer
			if _, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&got)); err != nil || got.String() != goodConfig {
				t.Errorf("got %q, %v", got.String(), err)
			}
		})
	}
}

func TestAnFLROperatorIsToldWhichRoleIsNeeded(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zvmtest.Option{
		"refused as 403": nil,
		"refused as 401": {zvmtest.WithSwitch(zvmtest.FLRForbiddenAs401)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(opts, zvmtest.WithUser("operator", "MARKER-operator", zvmtest.FLROperator))...)
			g := w.guard(t, "web01")
			client, err := zvm.New(w.sim.URL(), zvm.Password("operator", "MARKER-operator"), zvm.WithRootCAs(w.sim.CertPool()))
			must(t, err)
			s, err := rewind.NewSession(client)
			must(t, err)
			again, err := s.Reprove(t.Context(), g.Record())
			must(t, err)
			logins := w.sim.TokenRequests()
			_, err = s.Stat(t.Context(), again, nginxConf)
			if err == nil && !tellsAll() {
				return // this ZVM lets the role do it
			}
			if renewed := w.sim.TokenRequests() > logins; renewed != errors.Is(err, zvm.ErrUnauthorized) {
				t.Errorf("the token was renewed: %t, and the refusal is %v", renewed, err)
			}
			if !errors.Is(err, zvm.ErrForbidden) && !errors.Is(err, zvm.ErrUnauthorized) || !strings.Contains(err.Error(), "Administrator role") {
				t.Errorf("got %v, want the refusal and the role that is needed", err)
			}
		})
	}
}
