package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Checkpoint is one point of a VPG's journal (zvm-wire 4.1).
type Checkpoint struct {
	ID   CheckpointID
	Time Time   // server clock, often whole seconds
	Tag  string // empty for an automatic checkpoint
}

type wireCheckpoint struct {
	CheckpointIdentifier json.RawMessage
	TimeStamp            Time
	Tag                  string
}

func (w wireCheckpoint) checkpoint() (Checkpoint, error) {
	id, err := checkpointID(w.CheckpointIdentifier)
	return Checkpoint{ID: id, Time: w.TimeStamp, Tag: w.Tag}, err
}

// checkpointID accepts the documented string and the number it stands for.
func checkpointID(data []byte) (CheckpointID, error) {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(data, &s) == nil && s != "":
		return CheckpointID(s), nil
	case json.Unmarshal(data, &n) == nil && n != "":
		return CheckpointID(n.String()), nil
	}
	return "", errors.New("the server sent a checkpoint without an identifier")
}

// Window is a stretch of a journal, in server time. A zero end is open. Servers disagree on whether bounds are
// inclusive and stamp whole seconds: leave room on both sides.
type Window struct {
	From, To time.Time
}

func (w Window) query() url.Values {
	q := url.Values{}
	if !w.From.IsZero() {
		q.Set("startDate", wireTime(w.From))
	}
	if !w.To.IsZero() {
		q.Set("endDate", wireTime(w.To))
	}
	return q
}

// Contains reports whether t lies in the window, ends included.
func (w Window) Contains(t time.Time) bool {
	return (w.From.IsZero() || !t.Before(w.From)) && (w.To.IsZero() || !t.After(w.To))
}

// ListCheckpoints yields the checkpoints of a VPG's journal within a window, in the server's order, which is not to be
// relied on. They are decoded one at a time: memory does not grow with the journal, which may hold 518,400. A row whose
// time was understood and lies outside the window is dropped. The first error ends the sequence.
func (c *Client) ListCheckpoints(ctx context.Context, vpg VPGID, window Window) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		path, err := apiPath("v1", "vpgs", string(vpg), "checkpoints")
		if err != nil {
			yield(Checkpoint{}, err)
			return
		}
		cl := call{op: "ListCheckpoints", method: http.MethodGet, path: path, query: window.query()}
		errEnough := errors.New("the caller has seen enough")
		err = c.stream(ctx, cl, func(dec *json.Decoder) error {
			var w *wireCheckpoint
			if err := dec.Decode(&w); err != nil || w == nil {
				return err
			}
			cp, err := w.checkpoint()
			if err != nil {
				return &rowError{err}
			}
			if cp.Time.Raw == "" && !window.Contains(cp.Time.Time) {
				return nil
			}
			if !yield(cp, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Checkpoint{}, err)
		}
	}
}

// InsertCheckpoint asks for a tagged checkpoint named name in a VPG's journal and returns the task that will make it.
// The answer only means that the work is queued; the name is all the server accepts (zvm-wire 4.4, 13).
//
// The request is sent once. When its answer is lost the error matches [ErrOutcomeUnknown].
func (c *Client) InsertCheckpoint(ctx context.Context, vpg VPGID, name string) (TaskID, error) {
	path, err := apiPath("v1", "vpgs", string(vpg), "checkpoints")
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", errors.New("zvm: a tagged checkpoint needs a name")
	}
	return c.startTask(ctx, call{
		op: "InsertCheckpoint", method: http.MethodPost, path: path,
		body: struct {
			CheckpointName string `json:"checkpointName"`
		}{name},
	})
}
