package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/adapters/cli"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// newGuardedWorld has change c1 of web01, and starts, stops and clones at once.
func newGuardedWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	w := newWorld(t, append([]zvmtest.Option{zvmtest.WithTestTime(0), zvmtest.WithCloneTime(0)}, opts...)...)
	w.guard()
	return w
}

func TestAFailoverTestIsStartedSeenAndStopped(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.run("test", "status", "--change", "c1").want(t, 5, "no failover test is running")
	w.run("test", "stop", "--change", "c1", "--yes").want(t, 5, "no failover test is running")
	start := w.mustRun("test", "start", "--change", "c1", "--yes")
	start.want(t, 0, "it runs until it is stopped by: zerto-rewind test stop --change c1\n", "sweep --apply stops it after 2026-11-29T12:00:")
	golden(t, "test-start.txt", steady(start.out))
	if n := len(w.sim.LiveTests()); n != 1 {
		t.Fatalf("%d tests run, want 1", n)
	}
	golden(t, "test-status.json", steady(w.mustRun("test", "status", "--change", "c1", "--json").out))
	w.run("test", "start", "--change", "c1", "--yes").want(t, 7, "a failover test is running")
	stop := w.mustRun("test", "stop", "--change", "c1", "--vm", "web01", "--vpg", "web-local", "--yes", "--passed", "--summary", "boots", "--json")
	golden(t, "test-stop.json", steady(stop.out))
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left", n)
	}
}

func TestAFailoverTestIsNamedAsItWasStarted(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	o := w.mustRun("test", "start", "--change", "c1", "--vm", "web01", "--vpg", "web-remote", "--yes")
	o.want(t, 0, "zerto-rewind test stop --change c1 --vm web01 --vpg web-remote")
	if tests := w.sim.LiveTests(); len(tests) != 1 || tests[0].VPGID != w.remote.ID() {
		t.Errorf("the server runs %+v", tests)
	}
}

func TestSeveralVPGsThatWouldDoAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithTestTime(0))
	one := w.sim.AddVPG("one", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("East")})
	two := w.sim.AddVPG("two", zvmtest.VPGConfig{RecoverySite: w.sim.AddPeerSite("West")})
	w.sim.AddVM("db01", one, two)
	w.mustRun("protect", "db01", "--action", "x", "--change", "c2")
	w.run("test", "start", "--change", "c2", "--yes").want(t, 6, "one", "two", "--vpg\n")
	w.mustRun("test", "start", "--change", "c2", "--vpg", "two", "--yes")
	if tests := w.sim.LiveTests(); len(tests) != 1 || tests[0].VPGID != two.ID() {
		t.Errorf("the server runs %+v", tests)
	}
}

func TestAFailoverTestForAWhileIsStopped(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	o := w.mustRun("test", "start", "--change", "c1", "--for", "50ms", "--summary", "boots", "--yes", "--json")
	var shown struct{ Stopped bool }
	if err := json.Unmarshal([]byte(o.out), &shown); err != nil || !shown.Stopped || len(w.sim.LiveTests()) != 0 {
		t.Errorf("%s, %v, left %v", o.out, err, w.sim.LiveTests())
	}
	w.run("test", "start", "--change", "c1", "--passed", "--yes").want(t, 64, "--for")
}

func TestLaw5_AnInterruptedFailoverTestIsStopped(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, err strings.Builder
	watched := onText{&err, "running web-local for 48h", cancel}
	code := cli.Run(ctx, cli.IO{Out: &out, Err: watched, Env: w.lookup},
		[]string{"test", "start", "--change", "c1", "--for", "2d", "--yes"})
	outcome{code, out.String(), err.String()}.want(t, 130, "interrupted", "the failover test was stopped\n")
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left", n)
	}
}

// onText calls a function when a text is written.
type onText struct {
	to   io.Writer
	text string
	call func()
}

func (o onText) Write(p []byte) (int, error) {
	if strings.Contains(string(p), o.text) {
		o.call()
	}
	return o.to.Write(p)
}

func TestAFailoverTestThatCannotBeStoppedIsLeftOpen(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.sim.On("POST", "/v1/vpgs/*/FailoverTestStop").Times(1).Status(403, `{"Message":"no"}`)
	o := w.run("test", "start", "--change", "c1", "--for", "1ms", "--yes", "--json")
	o.want(t, 9)
	var document map[string]struct{ LeftOpen struct{ Command string } }
	if err := json.Unmarshal([]byte(o.err), &document); err != nil {
		t.Fatal(err)
	}
	command := strings.Fields(strings.ReplaceAll(document["error"].LeftOpen.Command, "'", ""))
	w.mustRun(append(command[1:], "--yes")...)
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%q left %d tests", command, n)
	}
}

func TestACloneIsMadeOrAborted(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	golden(t, "clone-start.txt", steady(w.mustRun("clone", "start", "--change", "c1", "--yes").out))
	golden(t, "clone-start.json", steady(w.mustRun("clone", "start", "--change", "c1", "--vpg", "web-local", "--yes", "--json").out))
	if n := len(w.sim.Clones()); n != 2 {
		t.Errorf("%d clones, want 2", n)
	}
	w.run("clone", "abort", "--change", "c1", "--yes").want(t, 5, "no clone is being made", "is complete, and Zerto never removes it")
	if n := w.sim.Count("POST", "/v1/vpgs/*/CloneAbort"); n != 0 {
		t.Errorf("%d aborts sent, want none", n)
	}
}

func TestACloneThatIsBeingMadeIsAborted(t *testing.T) {
	t.Parallel()
	var w *world
	w = newGuardedWorld(t, zvmtest.WithCloneTime(time.Hour), zvmtest.WithOnRequest(func(r zvmtest.Request) {
		if strings.HasSuffix(r.Path, "/CloneAbort") {
			w.sim.Advance(time.Hour)
		}
	}))
	w.startClone()
	golden(t, "clone-abort.json", steady(w.mustRun("clone", "abort", "--change", "c1", "--yes", "--json").out))
	if n := len(w.sim.Clones()); n != 0 {
		t.Errorf("%d clones were made", n)
	}
	w.startClone()
	w.sim.On("POST", "/v1/vpgs/*/CloneAbort").Status(200, "") // and it is made all the same
	o := w.run("clone", "abort", "--change", "c1", "--yes")
	o.want(t, 9, "left open", "is complete, and Zerto never removes it")
	if strings.Contains(o.err, "close it with") {
		t.Errorf("a command is named, and none removes a clone:\n%s", o.err)
	}
}

// startClone starts a clone at web-local that no command waits for.
func (w *world) startClone() {
	w.t.Helper()
	client, err := zvm.New(w.sim.URL(), zvm.Password(w.sim.Username(), w.sim.Password()), zvm.WithRootCAs(w.sim.CertPool()))
	if err != nil {
		w.t.Fatal(err)
	}
	checkpoint := zvm.CheckpointID(w.local.TaggedCheckpoints()[0].ID)
	if _, err := client.StartClone(w.t.Context(), zvm.VPGID(w.local.ID()), checkpoint, []zvm.VMID{zvm.VMID(w.web01.ID())}); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhatStartsOrEndsSomethingAsksFirst(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"test", "start"}, {"test", "stop"}, {"clone", "start"}, {"clone", "abort"}} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			t.Parallel()
			var opts []zvmtest.Option
			if command[1] == "abort" {
				opts = append(opts, zvmtest.WithCloneTime(time.Hour))
			}
			w := newGuardedWorld(t, opts...)
			switch command[1] {
			case "stop":
				w.mustRun("test", "start", "--change", "c1", "--yes")
			case "abort":
				w.startClone()
			}
			args := append(command, "--change", "c1")
			w.run(args...).want(t, 64, "nobody can be asked here", "--yes")
			before := w.writes()
			for _, answer := range []string{"", "\n", "yes\n", "db01\n"} {
				w.answer(t, answer, args...).want(t, 1, "Type the VM's name, web01, to go on: ", "nothing was done")
			}
			if n := w.writes(); n != before {
				t.Errorf("%d writes without a word", n-before)
			}
			w.answer(t, "WEB01\n", args...).want(t, 0)
			if w.writes() == before {
				t.Error("nothing was done at a word")
			}
		})
	}
}

// writes counts what starts or ends a test or a clone.
func (w *world) writes() int {
	return w.sim.Count("POST", "/v1/vpgs/*/FailoverTest") + w.sim.Count("POST", "/v1/vpgs/*/FailoverTestStop") +
		w.sim.Count("POST", "/v1/vpgs/*/CloneStart") + w.sim.Count("POST", "/v1/vpgs/*/CloneAbort")
}

// answer runs a command at a terminal where somebody types.
func (w *world) answer(t *testing.T, typed string, args ...string) outcome {
	t.Helper()
	var out, err strings.Builder
	code := cli.Run(t.Context(), cli.IO{
		In: strings.NewReader(typed), Out: &out, Err: &err, Env: w.lookup, Terminal: true, Interactive: true,
	}, args)
	return outcome{code, out.String(), err.String()}
}

func TestAQuestionEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	silent, write := io.Pipe()
	defer write.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out, err strings.Builder
	code := cli.Run(ctx, cli.IO{In: silent, Out: &out, Err: &err, Env: w.lookup, Interactive: true}, []string{"clone", "start", "--change", "c1"})
	outcome{code, out.String(), err.String()}.want(t, 130)
	if w.writes() != 0 {
		t.Error("a clone was started")
	}
}

func TestAGroupNamesItsCommands(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t)
	w.run("test").want(t, 64, "missing: start or status or stop", "see zerto-rewind test --help")
	w.run("clone", "frob").want(t, 64, `unknown command "frob": want start or abort`)
}

func TestLaw5_SweepStopsAFailoverTestThatNobodyStopped(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.mustRun("test", "start", "--change", "c1", "--yes")
	w.run("sweep", "--all").want(t, 64, "--apply")
	dry := w.mustRun("sweep")
	if !strings.Contains(dry.out, "its deadline is not over") || strings.Contains(dry.err, "--apply") {
		t.Errorf("dry: %s%s", dry.out, dry.err)
	}
	w.mustRun("sweep", "--apply", "--all")
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left after --all", n)
	}
	w.mustRun("test", "start", "--change", "c1", "--vpg", "web-remote", "--yes")
	w.sim.Advance(2 * time.Hour)
	w.mustRun("sweep", "--apply")
	if n := len(w.sim.LiveTests()); n != 0 {
		t.Errorf("%d tests are left after their deadline", n)
	}
}

func TestAFailoverTestThatIsNotMarkedIsSaid(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t)
	w.local.SetStatus(1, 23) // bitmap sync
	w.mustRun("test", "start", "--change", "c1", "--vpg", "web-local", "--yes").want(t, 0, "sweep will not know the test")
}
