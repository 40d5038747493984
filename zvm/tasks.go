package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/task"
)

// The type names of the tasks that this client starts (zvm-wire 5.5).
const (
	TypeInsertTaggedCP   = "InsertTaggedCP"
	TypeFailoverTest     = "FailOverTest"
	TypeStopFailoverTest = "StopFailOverTest"
	TypeClone            = "Clone"
	TypeFLRMount         = "FlrJournalMount"
)

// Task is a Zerto task with what it concerns.
type Task struct {
	task.Status

	InitiatedBy string
	VPGs        []VPGID
	FLRSessions []SessionID
}

// TaskFilter narrows [Client.ListTasks]. Zero fields do not narrow.
type TaskFilter struct {
	Type          string
	StartedAfter  time.Time
	StartedBefore time.Time
}

func (f TaskFilter) query() url.Values {
	q := url.Values{}
	setNonEmpty(q, "type", f.Type)
	if !f.StartedAfter.IsZero() {
		q.Set("startedAfterDate", wireTime(f.StartedAfter))
	}
	if !f.StartedBefore.IsZero() {
		q.Set("startedBeforeDate", wireTime(f.StartedBefore))
	}
	return q
}

// match keeps a task whose start was not understood: a filter must not hide what it cannot judge.
func (f TaskFilter) match(t Task) bool {
	return (f.Type == "" || strings.EqualFold(f.Type, t.Type)) &&
		(t.Started.IsZero() || Window{f.StartedAfter, f.StartedBefore}.Contains(t.Started))
}

type wireTask struct {
	TaskIdentifier string
	Link           *link
	Type           string
	Status         *struct {
		State    json.RawMessage
		Progress float64
	}
	InitiatedBy     string
	Started         Time
	Completed       Time
	CompleteReason  string
	RelatedEntities *struct {
		Vpgs        []*link
		FlrSessions []*link
	}
}

var stateNames = func() []string {
	names := make([]string, task.Cancelling+1)
	for i := range names {
		names[i] = task.State(i).String()
	}
	return names
}()

func (w wireTask) task() (Task, error) {
	id, err := oneID("task", dotted(w.TaskIdentifier), dotted(w.Link.id()))
	if err != nil {
		return Task{}, err
	}
	t := Task{InitiatedBy: w.InitiatedBy}
	t.ID = TaskID(id)
	t.Type = w.Type
	t.State = unknownEnum
	t.Reason = w.CompleteReason
	t.Started, t.Completed = w.Started.Time, w.Completed.Time
	if w.Status != nil {
		t.State = task.State(decodeEnum(w.Status.State, stateNames).Number)
		t.Progress = int(w.Status.Progress)
	}
	if w.RelatedEntities != nil {
		for _, l := range w.RelatedEntities.Vpgs {
			if id := l.id(); id != "" {
				t.VPGs = append(t.VPGs, VPGID(id))
			}
		}
		for _, l := range w.RelatedEntities.FlrSessions {
			if id := l.id(); id != "" {
				t.FLRSessions = append(t.FLRSessions, SessionID(id))
			}
		}
	}
	return t, nil
}

// dotted rewrites the "guid:guid" some servers answer with into the "guid.guid" they accept (zvm-wire 5.3).
func dotted(id string) string { return strings.Replace(id, ":", ".", 1) }

// GetTask looks at a task once. An error that has a method NotFound() bool returning true says that the task is not
// known, or may not be: some servers answer an unknown id with 500 (zvm-wire 2.6, 12).
func (c *Client) GetTask(ctx context.Context, id TaskID) (Task, error) {
	path, err := apiPath("v1", "tasks", string(id))
	if err != nil {
		return Task{}, err
	}
	cl := call{op: "GetTask", method: http.MethodGet, path: path}
	var w wireTask
	x, err := c.look(ctx, cl, &w)
	if err != nil {
		return Task{}, lookupError(err)
	}
	if w.TaskIdentifier == "" && w.Link.id() == "" {
		w.TaskIdentifier = string(id)
	}
	t, err := w.task()
	if err == nil && !strings.EqualFold(string(t.ID), dotted(string(id))) {
		err = errors.New("the server answered with another task")
	}
	if err != nil {
		return Task{}, x.senseless(err)
	}
	return t, nil
}

// maybeMissing marks the refusal of a look at one thing by its id.
type maybeMissing struct{ error }

func (maybeMissing) NotFound() bool  { return true }
func (m maybeMissing) Unwrap() error { return m.error }

func lookupError(err error) error {
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusInternalServerError {
		return maybeMissing{err}
	}
	return err
}

// TaskStatus makes the client a [task.Getter].
func (c *Client) TaskStatus(ctx context.Context, id TaskID) (task.Status, error) {
	t, err := c.GetTask(ctx, id)
	return t.Status, err
}

// ListTasks returns the tasks the server still knows. Rows that do not match the filter are dropped here.
func (c *Client) ListTasks(ctx context.Context, filter TaskFilter) ([]Task, error) {
	cl := call{op: "ListTasks", method: http.MethodGet, path: "/v1/tasks", query: filter.query()}
	return list(ctx, c, cl, wireTask.task, filter.match)
}

// startTask sends a write that answers with a task id.
func (c *Client) startTask(ctx context.Context, cl call) (TaskID, error) {
	a, err := c.writeRaw(ctx, cl)
	if err != nil {
		return "", err
	}
	id, err := createdID(a.body, "TaskIdentifier", "TaskId", "Identifier")
	if err != nil {
		return "", a.unusable(err)
	}
	return TaskID(dotted(id)), nil
}
