package rewind_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// newSlowWorld has a clock that the test moves: guards that are made in one second cannot be told to be in order.
func newSlowWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, append(stopped(), zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0))...)
}

func TestPlanTellsWhatPuttingAFileBackWouldDo(t *testing.T) {
	t.Parallel()
	const bad, edited = "changed by the agent", "edited by somebody later"
	w := newSlowWorld(t)
	must(t, w.web.Guest().WriteFile("/etc/untouched", []byte(goodConfig)))
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		w.sim.Advance(2 * time.Minute)
		must(t, g.WriteFile(nginxConf, []byte(bad)))
		must(t, g.WriteFile("/etc/made", []byte(bad)))
	})
	upper := rewind.LiveBytes([]byte(goodConfig))
	upper.SHA256 = strings.ToUpper(upper.SHA256)
	absent := rewind.LiveContent{}
	for _, tt := range []struct {
		name  string
		path  string
		live  rewind.LiveContent
		later bool
		want  rewind.Effect
	}{
		{"as pinned", nginxConf, rewind.LiveBytes([]byte(goodConfig)), false, rewind.EffectNone},
		{"as pinned, in upper case", nginxConf, upper, true, rewind.EffectNone},
		{"as changed, and no later guard", nginxConf, rewind.LiveBytes([]byte(bad)), false, rewind.EffectUnknown},
		{"as changed", nginxConf, rewind.LiveBytes([]byte(bad)), true, rewind.EffectUndoes},
		{"edited since", nginxConf, rewind.LiveBytes([]byte(edited)), true, rewind.EffectDestroys},
		{"removed since", nginxConf, absent, true, rewind.EffectDestroys},
		{"edited since, and not by the change", "/etc/untouched", rewind.LiveBytes([]byte(edited)), true, rewind.EffectDestroys},
		{"made by the change", "/etc/made", rewind.LiveBytes([]byte(bad)), true, rewind.EffectUndoes},
		{"made by the change, edited since", "/etc/made", rewind.LiveBytes([]byte(edited)), true, rewind.EffectDestroys},
		{"made by the change, gone since", "/etc/made", absent, true, rewind.EffectNone},
		{"made since", "/etc/none", rewind.LiveBytes(nil), true, rewind.EffectDestroys},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := []rewind.PlanOption{rewind.FromVM("web01")}
			if tt.later {
				opts = append(opts, rewind.ChangedBy(after))
			}
			p, err := w.Plan(t.Context(), before, tt.path, tt.live, opts...)
			must(t, err)
			if p.Effect != tt.want || p.Reason == "" || !p.Pinned.Unmounted || p.Pinned.ChangeID != before.ChangeID() {
				t.Errorf("got %+v, want the effect %q", p, tt.want)
			}
			if read := p.After != nil; read != (tt.later && tt.want != rewind.EffectNone) || read && p.After.ChangeID != after.ChangeID() {
				t.Errorf("the later guard: %+v", p.After)
			}
			if removes := strings.Contains(p.Reason, "to remove it"); removes != (!p.Pinned.Exists && tt.want != rewind.EffectNone) {
				t.Errorf("pinned %+v, reason %q", p.Pinned, p.Reason)
			}
		})
	}
}

func TestPlanRefusesWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	w := newSlowWorld(t)
	w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	db := w.guard(t, "db01")
	before, after := w.twice(t, func(*zvmtest.Guest) { w.sim.Advance(2 * time.Minute) })
	live := rewind.LiveBytes(nil)
	for name, plan := range map[string]func() (*rewind.Plan, error){
		"no hash": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), before, nginxConf, rewind.LiveContent{Exists: true})
		},
		"a hash of nothing": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), before, nginxConf, rewind.LiveContent{SHA256: live.SHA256})
		},
		"no later guard": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), before, nginxConf, live, rewind.ChangedBy(nil))
		},
		"the same guard": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), before, nginxConf, live, rewind.ChangedBy(before))
		},
		"the guards the wrong way round": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), after, nginxConf, live, rewind.ChangedBy(before))
		},
		"two VMs": func() (*rewind.Plan, error) {
			return w.Plan(t.Context(), db, nginxConf, live, rewind.ChangedBy(after))
		},
		"a nil option": func() (*rewind.Plan, error) { return w.Plan(t.Context(), before, nginxConf, live, nil) },
	} {
		if p, err := plan(); err == nil || p != nil {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
	_, err := w.Plan(t.Context(), before, "/etc", live)
	var refused *rewind.NotDownloadableError
	if !errors.As(err, &refused) {
		t.Errorf("a folder: got %v, want *NotDownloadableError", err)
	}
	w.nothingMounted(t)
}

func TestLaw5_PlanSaysWhatItLeavesOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Unmount: 100 * time.Millisecond}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	p, err := s.Plan(t.Context(), g, nginxConf, rewind.LiveBytes([]byte(goodConfig)))
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) || p == nil || p.Effect != rewind.EffectNone || p.Pinned.Unmounted {
		t.Errorf("got %+v, %v, want the plan and a *LeftOpenError", p, err)
	}
}

func TestPlanAndDiffSayWhichRoleAMountNeeds(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*world, *rewind.Guard) error{
		"Plan": func(w *world, g *rewind.Guard) error {
			_, err := w.Plan(t.Context(), g, nginxConf, rewind.LiveBytes(nil))
			return err
		},
		"Diff": func(w *world, g *rewind.Guard) error { _, err := w.Diff(t.Context(), g, g, "/etc"); return err },
	} {
		w := newWorld(t)
		g := w.guard(t, "web01")
		w.sim.On("POST", "/v1/flrs").Status(403, `{"Message":"scripted"}`)
		if err := do(w, g); !errors.Is(err, zvm.ErrForbidden) || !strings.Contains(err.Error(), "Administrator role") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPlanJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(rewind.Plan{})
	must(t, err)
	want := "effect live path pinned reason vm vmId"
	if diff := cmp.Diff(want, strings.Join(keys(t, data), " ")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
