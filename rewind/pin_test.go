package rewind_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func TestPinFirstLetsTheRewindBeTakenBack(t *testing.T) {
	t.Parallel()
	const late = "what the rewind takes away"
	w := newWorld(t)
	g := w.guard(t, "web01")
	must(t, w.web.Guest().WriteFile(nginxConf, []byte(late)))
	var old, now bytes.Buffer
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&old), rewind.PinFirst(), rewind.FromVM("web01"))
	must(t, err)
	if r.Pinned == nil || r.Pinned.ChangeID == g.ChangeID() || len(r.Pinned.Checkpoints) != 2 || r.ChangeID != g.ChangeID() {
		t.Fatalf("got %+v", r)
	}
	pinned, err := w.Reprove(t.Context(), *r.Pinned)
	must(t, err)
	_, err = w.Recover(t.Context(), pinned, nginxConf, rewind.ToWriter(&now))
	must(t, err)
	if diff := cmp.Diff([]string{goodConfig, late}, []string{old.String(), now.String()}); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
}

func TestPinFirstThatFailsRecoversNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/vpgs/*/checkpoints").Status(403, `{"Message":"scripted"}`)
	var got bytes.Buffer
	r, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&got), rewind.PinFirst())
	var partial *rewind.PartialGuardError
	if !errors.As(err, &partial) || r != nil || got.Len() != 0 {
		t.Errorf("got %+v, %v, want a *PartialGuardError alone", r, err)
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
}

func TestARecoveryThatFailsNamesWhatWasPinnedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	_, err := w.Recover(t.Context(), g, "/etc/none", rewind.ToWriter(&bytes.Buffer{}), rewind.PinFirst())
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want *PathNotFoundError", err)
	}
	_, id, _ := strings.Cut(err.Error(), "pinned first, as change ")
	if _, err := w.FindGuard(t.Context(), id, "web01"); err != nil {
		t.Errorf("the error names %q: %v", id, err)
	}
}

func TestPinFirstIsRefusedWhereItWouldBeIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	for name, do := range map[string]func() error{
		"Browse": func() error { _, err := w.Browse(t.Context(), g, "/etc", rewind.PinFirst()); return err },
		"Diff":   func() error { _, err := w.Diff(t.Context(), g, g, "/etc", rewind.PinFirst()); return err },
		"Plan": func() error {
			_, err := w.Plan(t.Context(), g, nginxConf, rewind.LiveContent{}, rewind.PinFirst())
			return err
		},
		"Clone": func() error { _, err := w.Clone(t.Context(), g, rewind.PinFirst()); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "PinFirst") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(taggedIn(w.local)); n != 1 {
		t.Errorf("%d tags in the journal, want the guard's alone", n)
	}
}
