package zvmtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Task states (zvm-wire 5.2).
const (
	TaskInProgress          = 1
	TaskWaitingForUserInput = 2
	TaskPaused              = 3
	TaskFailed              = 4
	TaskStopped             = 5
	TaskCompleted           = 6
	TaskCancelling          = 7
)

func terminal(state int) bool { return state >= TaskFailed && state <= TaskCompleted }

// task is state and a due time. Nothing waits for it: whoever takes the mutex
// settles what is due by then.
type task struct {
	id         string
	kind       string
	user       string
	vpg        *VPG
	flrSession string
	started    time.Time
	due        time.Time
	completed  time.Time
	state      int
	reason     string
	finish     func(at time.Time) (state int, reason string) // under the mutex
	cleanup    func()                                        // after finish, whatever came of it
}

// Task is a copy of one of the server's tasks.
type Task struct {
	ID          string
	Type        string // a name of zvm-wire 5.5
	State       int
	Reason      string
	InitiatedBy string
	VPGID       string
	Started     time.Time
	Completed   time.Time // zero while it runs
}

// scriptedOutcome is how the next task of a kind ends.
type scriptedOutcome struct {
	kind   string
	state  int
	reason string
}

// ScriptTask makes the next task of a type, such as "InsertTaggedCP", end in
// a state with a reason instead of doing its work. A state that is not
// terminal lasts for ever.
func (s *Server) ScriptTask(taskType string, state int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes = append(s.outcomes, scriptedOutcome{taskType, state, reason})
}

// startTask adds a task that is due after run. The caller holds the mutex.
func (s *Server) startTask(t *task, now time.Time, run time.Duration) *task {
	t.id = s.nextGUID("task") + "." + s.local.ID
	t.state = TaskInProgress
	t.started, t.due = now, now.Add(run)
	for i, o := range s.outcomes {
		if strings.EqualFold(o.kind, t.kind) {
			s.outcomes = slices.Delete(s.outcomes, i, i+1)
			t.finish = func(time.Time) (int, string) { return o.state, o.reason }
			break
		}
	}
	s.tasks = append(s.tasks, t)
	s.taskByID[strings.ToLower(t.id)] = t
	s.pending = append(s.pending, t)
	return t
}

// settle ends the tasks that are due, in the order of their due times. The
// caller holds the mutex.
func (s *Server) settle(now time.Time) {
	slices.SortStableFunc(s.pending, func(a, b *task) int { return a.due.Compare(b.due) })
	for len(s.pending) > 0 && !s.pending[0].due.After(now) {
		t := s.pending[0]
		s.pending = s.pending[1:]
		s.end(t, t.due)
	}
}

func (s *Server) end(t *task, at time.Time) {
	t.state, t.reason = t.finish(at)
	if !terminal(t.state) {
		return
	}
	t.completed = at
	s.recordEvent(t)
	if t.cleanup != nil {
		t.cleanup()
	}
}

// stop ends a pending task before it is due.
func (s *Server) stop(t *task, at time.Time, state int, reason string) {
	s.pending = slices.DeleteFunc(s.pending, func(p *task) bool { return p == t })
	t.finish = func(time.Time) (int, string) { return state, reason }
	s.end(t, at)
}

// Tasks lists every task so far, the forgotten ones too.
func (s *Server) Tasks() []Task {
	s.lock()
	defer s.mu.Unlock()
	var all []Task
	for _, t := range s.tasks {
		one := Task{
			ID: t.id, Type: t.kind, State: t.state, Reason: t.reason,
			InitiatedBy: t.user, Started: t.started, Completed: t.completed,
		}
		if t.vpg != nil {
			one.VPGID = t.vpg.id
		}
		all = append(all, one)
	}
	return all
}

type taskStatus struct {
	State    int
	Progress int
}

type relatedEntities struct {
	Vpgs        []resourceLink
	Sites       []resourceLink
	Hosts       []resourceLink
	FlrSessions []resourceLink
}

type taskBody struct {
	TaskIdentifier  string `json:",omitempty"`
	Link            resourceLink
	Type            string
	Status          taskStatus
	InitiatedBy     string
	Started         *string
	Completed       *string
	CompleteReason  string
	IsCancellable   bool
	RelatedEntities relatedEntities
	Generation      int64
}

func (s *Server) taskBody(t *task, now time.Time) taskBody {
	body := taskBody{
		TaskIdentifier: s.topID(t.id),
		Link:           s.link("tasks/"+t.id, t.id, "TaskApi"),
		Type:           t.kind,
		Status:         taskStatus{s.shownState(t, now), t.progress(now)},
		InitiatedBy:    t.user,
		Started:        s.date(t.started),
		Completed:      s.date(t.completed),
		CompleteReason: t.reason,
		Generation:     t.started.UnixMilli(),
	}
	if s.cfg.has(NullFields) {
		return body
	}
	related := &body.RelatedEntities
	related.Vpgs, related.Sites = []resourceLink{}, []resourceLink{}
	related.Hosts, related.FlrSessions = []resourceLink{}, []resourceLink{}
	if t.vpg != nil {
		related.Vpgs = append(related.Vpgs, s.link("vpgs/"+t.vpg.id, t.vpg.id, "VpgApi"))
	}
	if t.flrSession != "" {
		related.FlrSessions = append(related.FlrSessions, s.link("flrs/"+t.flrSession, t.flrSession, "FlrSessionInformationApi"))
	}
	return body
}

// shownState is the state that the API shows.
func (s *Server) shownState(t *task, now time.Time) int {
	if t.state == TaskInProgress && s.cfg.has(TasksBeginUnstarted) && now.Sub(t.started) < t.due.Sub(t.started)/3 {
		return 0
	}
	return t.state
}

func (t *task) progress(now time.Time) int {
	run := t.due.Sub(t.started)
	switch {
	case t.state == TaskCompleted:
		return 100
	case terminal(t.state) || run <= 0:
		return 0
	}
	return int(min(99, 100*now.Sub(t.started)/run))
}

// listed says whether the API shows a task: not at once, and not for ever.
func (s *Server) listed(t *task, now time.Time) bool {
	if now.Before(t.started.Add(s.cfg.taskVisibleAfter)) {
		return false
	}
	forgotten := s.cfg.taskRetention > 0 && terminal(t.state) && now.After(t.completed.Add(s.cfg.taskRetention))
	return !forgotten
}

// answerTask is the JSON string that a write answers with.
func (s *Server) answerTask(t *task) reply {
	if s.cfg.has(TaskIDColon) {
		return ok(strings.Replace(t.id, ".", ":", 1))
	}
	return ok(t.id)
}

func handleTask(s *Server, c *call) reply {
	id := c.params["id"]
	t, known := s.taskByID[strings.ToLower(id)]
	if !known || !s.listed(t, c.now) {
		return s.unknownID("task", id)
	}
	return ok(s.taskBody(t, c.now))
}

// handleTasks lists tasks with the filters of zvm-wire 5.3.
func handleTasks(s *Server, c *call) reply {
	started, err := s.dateRange(c, "startedAfterDate", "startedBeforeDate")
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	completed, err := s.dateRange(c, "completedAfterDate", "completedBeforeDate")
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	wantedType, wantedState := c.param("type"), c.param("status")
	list := []taskBody{}
	for _, t := range s.tasks {
		switch {
		case !s.listed(t, c.now), !started.holds(t.started):
		case completed.bounded() && (t.completed.IsZero() || !completed.holds(t.completed)):
		case wantedType != "" && !strings.EqualFold(wantedType, t.kind):
		case wantedState != "" && !matchesEnum(wantedState, s.shownState(t, c.now), taskStateNames()):
		default:
			list = append(list, s.taskBody(t, c.now))
		}
	}
	return ok(list)
}

func taskStateNames() []string {
	return []string{"FirstUnusedValue", "InProgress", "WaitingForUserInput", "Paused", "Failed", "Stopped", "Completed", "Cancelling"}
}

// matchesEnum compares a filter, the number or the name, with a value
// (zvm-wire 2.4).
func matchesEnum(filter string, value int, names []string) bool {
	if n, err := strconv.Atoi(filter); err == nil {
		return n == value
	}
	return value >= 0 && value < len(names) && strings.EqualFold(filter, names[value])
}

func handleTaskTypes(*Server, *call) reply {
	return ok([]string{
		"CreateProtectionGroup", "RemoveProtectionGroup", "FailOver", "FailOverTest", "StopFailOverTest", "Move",
		"GetCheckpointList", "ProtectVM", "UnprotectVM", "InsertTaggedCP", "WaitForCP", "ClearCheckpoints", "Clone",
		"FlrJournalMount", "FlrJournalUnmount",
	})
}
