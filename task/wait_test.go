package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/task"
)

// script answers each look with the next step, and repeats its last one for ever.
type script struct {
	steps []step
	looks []time.Time
}

type step struct {
	status task.Status
	err    error
}

func (s *script) TaskStatus(context.Context, task.ID) (task.Status, error) {
	i := min(len(s.looks), len(s.steps)-1)
	s.looks = append(s.looks, time.Now())
	return s.steps[i].status, s.steps[i].err
}

func in(s task.State) step { return step{status: task.Status{State: s}} }

type behaviour struct{ notFound, temporary bool }

func (b behaviour) Error() string {
	return fmt.Sprintf("not found %t, temporary %t", b.notFound, b.temporary)
}
func (b behaviour) NotFound() bool  { return b.notFound }
func (b behaviour) Temporary() bool { return b.temporary }

var (
	missing   = step{err: fmt.Errorf("looking: %w", behaviour{notFound: true})}
	hiccup    = step{err: fmt.Errorf("looking: %w", behaviour{temporary: true})}
	forbidden = step{err: errors.New("forbidden")}
)

func repeat(s step, n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = s
	}
	return steps
}

func TestWaitVerdicts(t *testing.T) {
	t.Parallel()
	failed := step{status: task.Status{State: task.Failed, Reason: "another insert\nis running"}}
	for _, tt := range []struct {
		name  string
		steps []step
		want  string // the error's text, "" for none
		looks int
	}{
		{"completed at the first look", []step{in(task.Completed)}, "", 1},
		{"completed without progress 100", []step{{status: task.Status{State: task.Completed, Progress: 3}}}, "", 1},
		{"failed with the server's reason on one line", []step{failed}, `task t1 ended Failed: another insert\nis running`, 1},
		{"stopped", []step{in(task.Stopped)}, "task t1 ended Stopped without a reason", 1},
		{"every running state is waited for", []step{in(0), in(1), in(2), in(3), in(7), in(task.Completed)}, "", 6},
		{"an unknown state is waited for", []step{in(42), in(-1), in(task.Completed)}, "", 3},
		{"not found right after the write", []step{missing, missing, in(task.InProgress), in(task.Completed)}, "", 4},
		{"temporary failures in a row within the budget", append(repeat(hiccup, 5), in(task.Completed)), "", 6},
		{
			"the budget counts consecutive failures only",
			append(append(repeat(hiccup, 5), in(task.InProgress)), append(repeat(hiccup, 5), in(task.Completed))...), "", 12,
		},
		{
			"temporary failures beyond the budget", repeat(hiccup, 6),
			"stopped waiting for task t1, which was never seen: looking: not found false, temporary true", 6,
		},
		{
			"not found for good",
			[]step{missing},
			"stopped waiting for task t1, which was never seen: looking: not found true, temporary false", 44,
		},
		{
			"seen and then not found",
			[]step{in(task.InProgress), missing},
			"stopped waiting for task t1, last seen InProgress and now not found: looking: not found true, temporary false", 44,
		},
		{
			"a lasting failure ends at once",
			[]step{in(task.InProgress), forbidden},
			"stopped waiting for task t1 (last seen InProgress), which goes on at the server: forbidden", 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: tt.steps}
				_, err := task.Wait(t.Context(), s, "t1")
				got := ""
				if err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("error mismatch (-want +got):\n%s", diff)
				}
				if len(s.looks) != tt.looks {
					t.Errorf("looked %d times, want %d", len(s.looks), tt.looks)
				}
			})
		})
	}
}

func TestWaitErrorTypes(t *testing.T) {
	t.Parallel()
	var failed *task.Error
	_, err := task.Wait(t.Context(), &script{steps: []step{in(task.Failed)}}, "t1")
	if !errors.As(err, &failed) || failed.State != task.Failed || failed.ID != "t1" {
		t.Errorf("a failed task gives %#v, want *task.Error", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the human left")
	cancel(why)
	var stopped *task.WaitError
	_, err = task.Wait(ctx, &script{steps: []step{in(task.InProgress)}}, "t1")
	if !errors.As(err, &stopped) || !errors.Is(err, why) {
		t.Errorf("a cancelled wait gives %#v, want *task.WaitError with the cause", err)
	}
}

func TestWaitLooksBeforeItSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &script{steps: []step{in(task.Completed)}}
		if _, err := task.Wait(t.Context(), s, "t1"); err != nil {
			t.Fatal(err)
		}
		if d := s.looks[0].Sub(began); d != 0 {
			t.Errorf("first look after %v", d)
		}
	})
}

func TestNotFoundBeyondTheGraceIsFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := task.Wait(t.Context(), &script{steps: []step{missing}}, "t1")
		var stopped *task.WaitError
		if !errors.As(err, &stopped) {
			t.Fatalf("got %v, want *task.WaitError", err)
		}
		if d := time.Since(began); d < 30*time.Second || d > 36*time.Second {
			t.Errorf("gave up after %v, want a little over 30 s", d)
		}
	})
}

func TestContextEndsTheWaitAtOnceAndKeepsTheLastFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := task.Wait(ctx, &script{steps: []step{in(task.InProgress), hiccup}}, "t1", task.WithMaxTransient(1000))
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("returned after %v, want 10 s", d)
		}
		var look behaviour
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &look) {
			t.Errorf("got %v, want the deadline and the last failure", err)
		}
	})
}

func TestProgressShowsChangesAndTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{in(task.InProgress), in(task.InProgress), in(task.Paused), in(task.Completed)}}
		var got []task.State
		_, err := task.Wait(t.Context(), s, "t1", task.OnProgress(func(st task.Status) { got = append(got, st.State) }))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]task.State{task.InProgress, task.Paused, task.Completed}, got); diff != "" {
			t.Errorf("progress mismatch (-want +got):\n%s", diff)
		}
	})
}

// lateness returns how late, as a share of the job's length, the end of jobs of 1 to 30 s is noticed on average, and
// how many looks that takes on average.
func lateness(schedule func(job time.Duration) task.Schedule) (share, looks float64) {
	const jobs = 30000
	for i := range jobs {
		job := time.Second + time.Duration(i)*29*time.Second/jobs
		s := schedule(job)
		spent, n := time.Duration(0), 1
		for ; spent < job; n++ {
			spent += s.Wait(spent)
		}
		share += float64(spent-job) / float64(job) / jobs
		looks += float64(n) / jobs
	}
	return share, looks
}

func TestScheduleIsLateByAFixedShare(t *testing.T) {
	t.Parallel()
	share, looks := lateness(func(time.Duration) task.Schedule { return task.Schedule{} })
	if share > 0.065 || looks > 45 {
		t.Errorf("knowing nothing: %.1f %% late with %.1f looks, want at most 6.5 %% with 45", share*100, looks)
	}
	for _, off := range []float64{0.9, 0.95, 1, 1.05, 1.1} {
		share, looks := lateness(func(job time.Duration) task.Schedule {
			return task.Schedule{Expected: time.Duration(float64(job) * off)}
		})
		if share > 0.026 || looks > 13 {
			t.Errorf("expecting %.2f of the truth: %.1f %% late with %.1f looks, want at most 2.6 %% with 13", off, share*100, looks)
		}
	}
}

func TestAWrongExpectationCostsAtMostADoublingOrThreeSeconds(t *testing.T) {
	t.Parallel()
	for expected := time.Millisecond; expected < time.Hour; expected = expected * 5 / 4 {
		s := task.Schedule{Expected: expected}
		for took := time.Millisecond; took < 2*time.Hour; took = took * 21 / 20 {
			spent := time.Duration(0)
			for spent < took {
				spent += s.Wait(spent)
			}
			if spent > max(2*took, 3*time.Second) {
				t.Errorf("expected %v, took %v: seen after %v", expected, took, spent)
			}
		}
	}
}

func TestStateNames(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		s := task.State(n)
		if back, ok := task.ParseState(s.String()); !ok || back != s {
			t.Errorf("ParseState(%q) = %v, %t", s, back, ok)
		}
		if want := n >= 4 && n <= 6; s.Terminal() != want {
			t.Errorf("%v terminal = %t, want %t", s, s.Terminal(), want)
		}
	}
	if got := task.State(9).String(); got != "unknown (9)" {
		t.Errorf("State(9) prints %q", got)
	}
}

func TestStatesSurviveJSON(t *testing.T) {
	t.Parallel()
	for n := -3; n < 12; n++ {
		var back struct{ State task.State }
		data, err := json.Marshal(struct{ State task.State }{task.State(n)})
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || back.State != task.State(n) {
			t.Errorf("%d is written as %s and read as %d, %v", n, data, back.State, err)
		}
	}
}

func TestUnmarshalTextRefusesOtherText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "completed", "6", "unknown", "unknown (", "unknown ()", "unknown (6)", "unknown (09)", "unknown (9) ", "unknown (9"} {
		s := task.Paused
		if err := s.UnmarshalText([]byte(text)); err == nil || s != task.Paused {
			t.Errorf("%q is read as %v, %v", text, s, err)
		}
	}
}

func TestParseStateRefusesOtherText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "completed", "unknown (9)", "6"} {
		if s, ok := task.ParseState(text); ok {
			t.Errorf("ParseState(%q) = %v, want none", text, s)
		}
	}
}

// A look that the end of the waiting cuts off does not hide what the one before it saw.
func TestPollKeepsTheLastFailureThatAServerToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, over)
		defer cancel()
		looks := 0
		err := task.Poll(ctx, func(ctx context.Context) (bool, error) {
			if looks++; looks == 1 {
				return false, hiccup.err
			}
			<-ctx.Done()
			return false, fmt.Errorf("looking: %w", context.Cause(ctx))
		})
		if !errors.Is(err, over) || !errors.Is(err, hiccup.err) || looks != 2 {
			t.Errorf("got %v after %d looks", err, looks)
		}
	})
}
