package rewind_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// The environment of a process that is about to be killed: see TestMain.
const (
	envVictim   = "REWIND_TEST_VICTIM" // the name of a step
	envURL      = "REWIND_TEST_URL"
	envCA       = "REWIND_TEST_CA"
	envPassword = "REWIND_TEST_PASSWORD"
	envUser     = "REWIND_TEST_USER"
	envDir      = "REWIND_TEST_DIR"
)

// TestMain makes this binary the victim of TestLaw5_EveryStepKilled, when that is what it was started for.
func TestMain(m *testing.M) {
	if name := os.Getenv(envVictim); name != "" {
		if err := victim(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// victim walks through the flow of a step, at which its parent kills it.
func victim(name string) error {
	pem, err := os.ReadFile(os.Getenv(envCA))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client, err := zvm.New(os.Getenv(envURL), zvm.Password(os.Getenv(envUser), os.Getenv(envPassword)), zvm.WithRootCAs(pool))
	if err != nil {
		return err
	}
	s, err := rewind.NewSession(client, rewind.WithAgent("victim"),
		rewind.WithSchedule(task.Schedule{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}))
	if err != nil {
		return err
	}
	ctx := context.Background()
	guard, err := s.FindGuard(ctx, matrixID, "web01")
	if err != nil {
		return err
	}
	for _, st := range steps {
		if st.name == name {
			return st.flow(ctx, actor{s, guard, os.Getenv(envDir)})
		}
	}
	return errors.New("there is no such step")
}

// spared are the steps at which no process is killed: the victim lists journals on its way, and at the others as much is
// open as at one at which it is killed.
var spared = []string{
	"protect, list", "recover, journal", "recover, can mount", "recover, list before", "pin, insert", "plan, mount", "plan, bytes",
	"open, bytes", "open, unmount",
}

// TestLaw5_EveryStepKilled kills a process at every step. What it had asked for is still on its way then, and arrives before
// another process sweeps.
func TestLaw5_EveryStepKilled(t *testing.T) {
	t.Parallel()
	if *profileFlag != "quick" {
		return // it chooses how its ZVM behaves
	}
	for _, st := range steps {
		if slices.Contains(spared, st.name) {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			arrival := make(chan struct{})
			m := newMatrixWorld(t, st, func(f *zvmtest.Fault) { f.Late(arrival) },
				zvmtest.WithCloneTime(time.Hour)) // long enough to be aborted
			dir := destination(t)
			kill(t, m, st, dir)
			close(arrival)
			until(t, m.ended.Load)
			unharmed(t, dir)
			until(t, func() bool {
				must(t, sweepAll(t, m))
				return len(m.open()) == 0
			})
		})
	}
}

// kill starts a victim and kills it when it has reached the step.
func kill(t *testing.T, m *matrixWorld, st step, dir string) {
	t.Helper()
	ca, err := m.sim.CAFile()
	must(t, err)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), envVictim+"="+st.name, envURL+"="+m.sim.URL(), envCA+"="+ca,
		envUser+"="+m.sim.Username(), envPassword+"="+m.sim.Password(), envDir+"="+dir)
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	until(t, func() bool {
		select {
		case <-ended:
			t.Fatalf("the victim ended before it was killed: %s", stderr.String())
		default:
		}
		return m.met()
	})
	must(t, cmd.Process.Kill())
	<-ended
}
