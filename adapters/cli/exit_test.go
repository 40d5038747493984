package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	protect := []string{"protect", "web01", "--action", "upgrade nginx", "--change", "c1"}
	for _, tt := range []struct {
		name string
		opts []zvmtest.Option
		prep func(w *world)
		args []string
		code int
		says []string
	}{
		{
			name: "a task that failed",
			prep: func(w *world) {
				w.sim.ScriptTask("InsertTaggedCP", zvmtest.TaskFailed, "the journal is full")
				w.run("protect", "web01", "--action", "x")
			},
			args: []string{"task", "FAILED"},
			code: 1, says: []string{"Failed", "the journal is full"},
		},
		{
			name: "one of two VPGs failed",
			prep: func(w *world) {
				w.sim.On("POST", "/v1/vpgs/"+w.remote.ID()+"/checkpoints").Status(500, `{"Message":"no"}`)
			},
			args: protect,
			code: 3, says: []string{"c1", "web-remote", "was tagged (checkpoint ", "--change c1"},
		},
		{
			name: "an insert whose answer and effect are lost",
			prep: func(w *world) { w.sim.On("POST", "/v1/vpgs/*/checkpoints").Times(2).CutBefore() },
			args: append(protect, "--timeout", "3s"),
			code: 3, says: []string{"outcome unknown", "may come to stand"},
		},
		{
			name: "a wrong password",
			prep: func(w *world) { w.env["ZVM_PASSWORD"] = "MARKER-wrong" },
			args: []string{"find", "web01"},
			code: 4,
		},
		{
			name: "a user who may only read",
			opts: []zvmtest.Option{zvmtest.WithUser("viewer", "MARKER-viewer", zvmtest.Viewer)},
			prep: func(w *world) { w.env["ZVM_USERNAME"], w.env["ZVM_PASSWORD"] = "viewer", "MARKER-viewer" },
			args: protect,
			code: 4,
		},
		{name: "no such VM", args: []string{"find", "nobody"}, code: 5, says: []string{"nobody", "Production"}},
		{name: "no such change", args: []string{"browse", "--change", "c9", "/"}, code: 5, says: []string{"c9", "zerto-rewind guards VM\n"}},
		{name: "no such change of a VM", args: []string{"browse", "--change", "c9", "--vm", "web01", "/"}, code: 5, says: []string{"zerto-rewind guards web01\n"}},
		{name: "no such task", args: []string{"task", "0.0"}, code: 5},
		{
			name: "no such path", prep: (*world).guard,
			args: []string{"browse", "--change", "c1", "/nowhere"},
			code: 5, says: []string{"/nowhere", "Volume1-Ext4"},
		},
		{
			name: "two VMs of one name",
			prep: func(w *world) { w.sim.AddVM("web01", w.sim.AddVPG("other", zvmtest.VPGConfig{})) },
			args: []string{"find", "web01"},
			code: 6, says: []string{".vm-38", ".vm-39"},
		},
		{
			name: "no VPG protects",
			prep: func(w *world) { w.local.BitmapSync(true); w.remote.BitmapSync(true) },
			args: protect,
			code: 7, says: []string{"BitmapSync"},
		},
		{
			name: "files come back elsewhere",
			prep: func(w *world) {
				w.sim.AddVM("db01", w.remote)
				w.mustRun("protect", "db01", "--action", "x", "--change", "c2")
			},
			args: []string{"browse", "--change", "c2", "--vm", "db01", "/"},
			code: 7, says: []string{"Recovery"},
		},
		{
			name: "a file that the server holds back",
			prep: func(w *world) {
				if err := w.web01.Guest().Deny("/etc/hosts", "it is in use"); err != nil {
					w.t.Fatal(err)
				}
				w.guard()
			},
			args: []string{"recover", "--change", "c1", "/etc/hosts", "-o", "DEST"},
			code: 7, says: []string{"it is in use"},
		},
		{
			name: "the time limit, while the task runs",
			opts: []zvmtest.Option{zvmtest.WithInsertTime(time.Hour)},
			args: append(protect, "--timeout", "3s"),
			code: 8, says: []string{"time limit of 3s", "zerto-rewind task ", " --wait", "--change c1"},
		},
		{
			name: "a task that runs",
			opts: []zvmtest.Option{zvmtest.WithInsertTime(time.Hour)},
			prep: func(w *world) { w.interrupt(protect...) },
			args: []string{"task", "FIRST"},
			code: 8, says: []string{"InProgress"},
		},
		{
			name: "a task that outlasts the waiting",
			opts: []zvmtest.Option{zvmtest.WithInsertTime(time.Hour)},
			prep: func(w *world) { w.interrupt(protect...) },
			args: []string{"task", "FIRST", "--wait", "--timeout", "2s"},
			code: 8, says: []string{"zerto-rewind task "},
		},
		{
			name: "a session that cannot be closed",
			prep: func(w *world) {
				w.guard()
				w.sim.On("DELETE", "/v1/flrs/*").Always().Status(403, `{"Message":"no"}`)
			},
			args: []string{"recover", "--change", "c1", "/etc/hosts", "-o", "DEST"},
			code: 9, says: []string{"left open", "close it with: zerto-rewind "},
		},
		{name: "an unknown command", args: []string{"restore"}, code: 64},
		{name: "a misspelt command", args: []string{"protct"}, code: 64, says: []string{`"protct"`, "this? protect\n"}},
		{name: "an unknown flag", args: []string{"find", "web01", "--bogus"}, code: 64, says: []string{"see zerto-rewind find --help"}},
		{name: "a missing argument", args: []string{"find"}, code: 64, says: []string{"missing: VM", "see zerto-rewind find --help"}},
		{name: "a missing path", args: []string{"recover", "--change", "c1", "-o", "x"}, code: 64, says: []string{"missing: PATH", "see zerto-rewind recover --help"}},
		{name: "an argument too many", args: []string{"task", "1", "2"}, code: 64, says: []string{`too many: "2"`}},
		{name: "no VM to protect", args: []string{"protect", "--action", "x"}, code: 64, says: []string{"missing: VM"}},
		{name: "a duration of no sense", args: []string{"guards", "web01", "--since", "soon"}, code: 64, says: []string{"--since", "7d"}},
		{name: "a missing flag", args: []string{"protect", "web01"}, code: 64, says: []string{"action"}},
		{name: "an empty action", args: []string{"protect", "web01", "--action", " "}, code: 64},
		{name: "a negative limit", args: []string{"find", "web01", "--timeout", "-1s"}, code: 64, says: []string{"negative"}},
		{name: "an address without TLS", prep: func(w *world) { w.env["ZVM_URL"] = "http://zvm.example.com" }, args: []string{"find", "web01"}, code: 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.opts...)
			if tt.prep != nil {
				tt.prep(w)
			}
			o := w.run(w.fill(tt.args)...)
			o.want(t, tt.code, tt.says...)
			if !strings.HasPrefix(o.err, "error: ") {
				t.Errorf("stderr:\n%s", o.err)
			}
		})
	}
}

// fill puts a file for DEST, and the id of a task for FIRST and FAILED.
func (w *world) fill(args []string) []string {
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = arg
		switch arg {
		case "DEST":
			filled[i] = filepath.Join(w.t.TempDir(), "dest")
		case "FIRST":
			filled[i] = w.sim.Tasks()[0].ID
		case "FAILED":
			for _, task := range w.sim.Tasks() {
				if task.State == zvmtest.TaskFailed {
					filled[i] = task.ID
				}
			}
		}
	}
	return filled
}

func TestInterruptionNamesWhatGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithInsertTime(time.Hour))
	o := w.interrupt("protect", "web01", "--action", "x", "--change", "c1")
	o.want(t, 130, "interrupted", "zerto-rewind task "+w.sim.Tasks()[0].ID+" --wait", "zerto-rewind task "+w.sim.Tasks()[1].ID)
	if o.out != "" {
		t.Errorf("stdout:\n%s", o.out)
	}
}

// interrupt runs a command until it has looked at both tasks.
func (w *world) interrupt(args ...string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if ctx.Err() != nil || w.tasksLookedAt() == 2 {
				cancel()
				return
			}
		}
	}()
	return w.runUntil(ctx, args...)
}

func (w *world) tasksLookedAt() int {
	n := 0
	for _, task := range w.sim.Tasks() {
		if w.sim.Count("GET", "/v1/tasks/"+task.ID) > 0 {
			n++
		}
	}
	return n
}

// What was asked for is there although the session is not closed: the result is printed beside the error.
func TestLeftOpenStillPrintsTheResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	w.sim.On("DELETE", "/v1/flrs/*").Always().Status(403, `{"Message":"no"}`)
	o := w.run("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(t.TempDir(), "hosts"), "--json")
	o.want(t, 9)
	var result struct {
		Bytes     int
		Unmounted bool
	}
	if err := json.Unmarshal([]byte(o.out), &result); err != nil || result.Bytes != 20 || result.Unmounted {
		t.Errorf("%+v, %v", result, err)
	}
	golden(t, "error-left-open.json", steady(o.err))
}

// The command that the error above names closes what was left, once the server lets it.
func TestSweepClosesWhatWasLeftOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	w.sim.On("DELETE", "/v1/flrs/*").Times(1).Status(403, `{"Message":"no"}`)
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(t.TempDir(), "hosts")).want(t, 9)
	found := w.mustRun("sweep")
	golden(t, "sweep.txt", steady(found.out))
	if found.err != "--apply closes them\n" {
		t.Errorf("stderr:\n%s", found.err)
	}
	if n := len(w.sim.LiveFLRSessions()); n != 1 {
		t.Errorf("a dry sweep left %d sessions, want 1", n)
	}
	golden(t, "sweep.json", steady(w.mustRun("sweep", "--apply", "--json").out))
	if n := len(w.sim.LiveFLRSessions()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	golden(t, "sweep-none.txt", steady(w.mustRun("sweep").out))
}

// What may be ours is not answered with nothing of ours.
func TestSweepListsWhatItCannotShowToBeOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	w.sim.On("DELETE", "/v1/flrs/*").Times(1).Status(403, `{"Message":"no"}`)
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(t.TempDir(), "hosts")).want(t, 9, "zerto-rewind sweep --apply")
	w.local.LoseCheckpoint(w.local.TaggedCheckpoints()[0].ID)
	golden(t, "sweep-unproven.txt", steady(w.mustRun("sweep", "--apply").out))
	w.sim.On("GET", "/v1/vpgs").Status(200, "[]")
	o := w.mustRun("sweep", "--apply", "--all")
	if !strings.Contains(o.out, w.local.ID()) || !strings.Contains(o.out, "does not list its VPG") {
		t.Errorf("swept:\n%s", o.out)
	}
	if n := len(w.sim.LiveFLRSessions()); n != 1 {
		t.Errorf("%d sessions are left, want 1", n)
	}
}

// In JSON mode an error is one JSON object on stderr, whose names are a promise.
func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts []zvmtest.Option
		prep func(w *world)
		args []string
	}{
		{
			name: "partial",
			prep: func(w *world) {
				w.sim.On("POST", "/v1/vpgs/"+w.remote.ID()+"/checkpoints").Status(500, `{"Message":"no"}`)
			},
			args: []string{"protect", "web01", "--action", "x", "--change", "c1"},
		},
		{
			name: "pending",
			opts: []zvmtest.Option{zvmtest.WithInsertTime(time.Hour)},
			args: []string{"protect", "web01", "--action", "x", "--change", "c1", "--timeout", "3s"},
		},
		{
			name: "ambiguous",
			prep: func(w *world) { w.sim.AddVM("web01", w.sim.AddVPG("other", zvmtest.VPGConfig{})) },
			args: []string{"find", "web01"},
		},
		{name: "not-found", args: []string{"find", "nobody"}},
		{name: "usage", args: []string{"find", "--bogus"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.opts...)
			if tt.prep != nil {
				tt.prep(w)
			}
			o := w.run(append(tt.args, "--json")...)
			var document map[string]struct {
				Message  string
				ExitCode int
			}
			if err := json.Unmarshal([]byte(o.err), &document); err != nil || len(document) != 1 {
				t.Fatalf("not one object: %v\n%s", err, o.err)
			}
			if diff := cmp.Diff(o.code, document["error"].ExitCode); diff != "" {
				t.Errorf("exit code mismatch (-want +got):\n%s", diff)
			}
			golden(t, "error-"+tt.name+".json", steady(o.err))
		})
	}
}
