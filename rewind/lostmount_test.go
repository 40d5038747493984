package rewind_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// Two callers of one session recover from one guard, and the answers to both mounts are lost, by a time-out or because
// both have left. What was opened is closed, or named with the command that closes it.
func TestLaw5_TwoLostMountsOfOneCheckpointAreNotLeftOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/flrs").Times(2).Delay(150 * time.Millisecond).CutAfter()
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
			errs <- err
		}()
	}
	var open *rewind.LeftOpenError
	named := false
	var last error
	for range 2 {
		last = <-errs
		named = named || errors.As(last, &open)
	}
	if left := w.sim.LiveFLRSessions(); len(left) > 0 {
		t.Errorf("%d sessions of ours are left mounted, LeftOpenError %v: %v", len(left), named, last)
	}
}
