package rewind_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// aTask is the answer to an unmount whose task no server knows.
const aTask = `"00000000-0000-0000-0000-00000000dead.00000000-0000-0000-0000-00000000beef"`

// closingWorld is a ZVM that closes what it is asked to, save for what a test scripts, whatever the profile.
func closingWorld(t *testing.T, unmount time.Duration, opts ...zvmtest.Option) (*world, *rewind.Session) {
	t.Helper()
	w := newWorldAt(t, zvmtest.Start(t, append(append([]zvmtest.Option{withinReach(t)}, quick...), opts...)...))
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Unmount: unmount}))
	return w, s
}

// An accepted close is one request, and what the list fails to tell after it is not known yet. The limit of an hour is what
// a test would last that waits for it.
func TestLaw5_AListThatFailsAfterAnAcceptedUnmountIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*zvmtest.Fault){
		"500":            func(f *zvmtest.Fault) { f.Times(10).Status(500, `{"Message":"scripted"}`) },
		"404":            func(f *zvmtest.Fault) { f.Times(10).Status(404, `{"Message":"scripted"}`) },
		"cut":            func(f *zvmtest.Fault) { f.Times(10).CutBefore() },
		"a proxy's page": func(f *zvmtest.Fault) { f.Times(10).Garbage("<html>log in</html>", "text/html") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := closingWorld(t, time.Hour)
			g := w.guard(t, "web01")
			fail(w.sim.On("GET", "/v1/flrs").After(1))
			w.recovers(t, s, g, 1)
		})
	}
}

// recovers fails unless a file is recovered and its session closed, by so many unmounts, and every scripted fault was met.
func (w *world) recovers(t *testing.T, s *rewind.Session, g *rewind.Guard, unmounts int) {
	t.Helper()
	r, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
	if err != nil || !r.Unmounted {
		t.Errorf("got %+v, %v", r, err)
	}
	w.nothingMounted(t)
	if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != unmounts {
		t.Errorf("%d unmounts sent, want %d", sent, unmounts)
	}
	if unmet := w.sim.Unused(); len(unmet) > 0 {
		t.Errorf("never met: %q", unmet)
	}
}

// One answer of the list, or of the close itself, that never comes does not use up the time in which the session closes.
func TestLaw5_AnAnswerThatNeverComesIsNotTheEndOfAClosing(t *testing.T) {
	t.Parallel()
	for _, request := range []struct {
		method, pattern string
		after, unmounts int
		idle            bool // the first close does nothing, so that its task is looked at
	}{
		{"GET", "/v1/flrs", 1, 1, false},
		{"GET", "/v1/tasks/*", 0, 2, true},
		{"DELETE", "/v1/flrs/*", 0, 2, false},
	} {
		t.Run(request.method+" "+request.pattern, func(t *testing.T) {
			t.Parallel()
			w, s := closingWorld(t, 6*time.Second)
			g := w.guard(t, "web01")
			w.sim.On(request.method, request.pattern).After(request.after).Hang()
			if request.idle {
				w.sim.On("DELETE", "/v1/flrs/*").Status(200, aTask)
			}
			w.recovers(t, s, g, request.unmounts)
		})
	}
}

// Whoever may not look, or close, does not ask again.
func TestLaw5_ARefusalOfWhoeverAsksEndsTheClosing(t *testing.T) {
	t.Parallel()
	for _, refused := range []struct {
		method, pattern string
		after, status   int
	}{
		{"GET", "/v1/flrs", 1, 401},
		{"GET", "/v1/flrs", 1, 403},
		{"DELETE", "/v1/flrs/*", 0, 403},
	} {
		w, s := closingWorld(t, time.Hour)
		g := w.guard(t, "web01")
		w.sim.On(refused.method, refused.pattern).After(refused.after).Always().Status(refused.status, `{"Message":"scripted"}`)
		_, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
		var open *rewind.LeftOpenError
		if !errors.As(err, &open) || !strings.Contains(err.Error(), "scripted") {
			t.Errorf("%+v: got %v, want a *LeftOpenError with the refusal", refused, err)
		}
		if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != 1 {
			t.Errorf("%+v: %d unmounts sent", refused, sent)
		}
	}
}

// A session that is in use is refused until it is not.
func TestLaw5_AnUnmountThatIsRefusedIsSentAgainAtOnce(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, time.Hour)
	g := w.guard(t, "web01")
	w.sim.On("DELETE", "/v1/flrs/*").Times(2).Status(500, `{"Message":"scripted"}`)
	w.recovers(t, s, g, 3)
}

// What became of a lost close is not told by the server, and does not stand where what it told did.
func TestLaw5_ALostUnmountDoesNotHideWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, 3*time.Second)
	g := w.guard(t, "web01")
	w.sim.On("DELETE", "/v1/flrs/*").Status(500, `{"Message":"scripted: in use"}`)
	w.sim.On("DELETE", "/v1/flrs/*").Always().CutBefore()
	_, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
	if err == nil || !strings.Contains(err.Error(), "scripted: in use") {
		t.Errorf("got %v, want the server's reason", err)
	}
}

// A task that the server forgot, when it was started anew, say, accounts for nothing any more.
func TestLaw5_AnUnmountWhoseTaskIsForgottenIsSentAgain(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, 3*time.Second)
	g := w.guard(t, "web01")
	w.sim.On("DELETE", "/v1/flrs/*").Status(200, aTask)
	w.sim.On("GET", "/v1/tasks/*").Status(200, `{"TaskIdentifier":`+aTask+`,"Status":{"State":1,"Progress":10}}`)
	w.recovers(t, s, g, 2)
}

// A close that the server takes and does not carry out is sent again once the session was seen to stay.
func TestLaw5_AnUnmountThatDoesNothingIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"a task that nobody knows": aTask, "no task": `""`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := closingWorld(t, 3*time.Second)
			g := w.guard(t, "web01")
			w.sim.On("DELETE", "/v1/flrs/*").Status(200, answer)
			w.recovers(t, s, g, 2)
		})
	}
}

// A failed task tells at once what a session that stays tells after a while.
func TestLaw5_AnUnmountWhoseTaskFailedIsSentAgainAtOnce(t *testing.T) {
	t.Parallel()
	for _, state := range []int{zvmtest.TaskFailed, zvmtest.TaskStopped} {
		w, s := closingWorld(t, time.Hour)
		g := w.guard(t, "web01")
		w.sim.ScriptTask("FlrJournalUnmount", state, "scripted: in use")
		w.recovers(t, s, g, 2)
	}
}

func TestLaw5_WhatTheServerSaidOfAnUnmountStandsInTheError(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, time.Hour, zvmtest.WithSwitch(zvmtest.UnmountFails), zvmtest.WithUnmountTime(0))
	g := w.guard(t, "web01")
	w.sim.On("GET", "/v1/flrs").After(4).Always().Status(403, `{"Message":"scripted"}`)
	_, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
	var failed *task.Error
	if !errors.As(err, &failed) || failed.State != task.Failed || !strings.Contains(err.Error(), failed.Reason) {
		t.Errorf("got %v, want the task and its reason", err)
	}
}

// The server is at work as long as the task of the first close is under way: a second is not sent.
func TestLaw2_AnUnmountThatIsUnderWayIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, 3*time.Second, zvmtest.WithUnmountTime(time.Hour))
	g := w.guard(t, "web01")
	_, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) {
		t.Fatalf("got %v, want a *LeftOpenError", err)
	}
	if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != 1 {
		t.Errorf("%d unmounts sent while the first is under way", sent)
	}
	for _, x := range w.sim.Tasks() {
		if x.Type == "FlrJournalUnmount" && !strings.Contains(err.Error(), "task "+x.ID) {
			t.Errorf("%q does not name the task %s", err, x.ID)
		}
	}
}

// However long nobody can tell, an accepted close is not sent again.
func TestLaw2_AnAcceptedUnmountIsNotSentAgainWhenNothingIsSeen(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, 3*time.Second)
	g := w.guard(t, "web01")
	w.sim.On("DELETE", "/v1/flrs/*").Status(200, aTask)
	w.sim.On("GET", "/v1/flrs").After(1).Always().Status(500, `{"Message":"scripted"}`)
	_, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(io.Discard))
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) || !strings.Contains(err.Error(), "scripted") {
		t.Errorf("got %v, want a *LeftOpenError with what the list said", err)
	}
	if sent := w.sim.Count("DELETE", "/v1/flrs/*"); sent != 1 {
		t.Errorf("%d unmounts sent", sent)
	}
}

// A list that fails while a lost mount is looked for tells nothing of it.
func TestLaw2_ALostMountIsFoundAfterAListThatFailed(t *testing.T) {
	t.Parallel()
	w, s := closingWorld(t, time.Hour)
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/flrs").CutAfter()
	w.sim.On("GET", "/v1/flrs").After(1).Times(10).Status(500, `{"Message":"scripted"}`)
	w.recovers(t, s, g, 1)
}
