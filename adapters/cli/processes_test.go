package cli_test

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// TestEightProcessesGuardOneVPG has processes that know nothing of each other insert at one VPG at once. All but one meet
// another's insert, and fail, and wait for it.
func TestEightProcessesGuardOneVPG(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithClock(time.Now), zvmtest.WithInsertTime(100*time.Millisecond))
	vpg := w.sim.AddVPG("shared", zvmtest.VPGConfig{})
	w.sim.AddVM("shared01", vpg)
	binary := filepath.Join(t.TempDir(), "zerto-rewind")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/zerto-rewind")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var environment []string
	for k, v := range w.env {
		environment = append(environment, k+"="+v)
	}
	const processes = 8
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			c := exec.CommandContext(t.Context(), binary, "protect", "shared01", "--action", "at once", "--timeout", "2m")
			c.Env = environment
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if n := len(vpg.TaggedCheckpoints()); n != processes {
		t.Errorf("%d tags stand, want %d", n, processes)
	}
}
