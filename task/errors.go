package task

import (
	"fmt"
	"strconv"
)

// Error says that a task ended without success. The server has decided: asking again changes nothing.
type Error struct {
	ID     ID
	State  State  // Failed or Stopped
	Reason string // the server's words, possibly empty
}

func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("task %s ended %s without a reason", e.ID, e.State)
	}
	return fmt.Sprintf("task %s ended %s: %s", e.ID, e.State, printable(e.Reason))
}

// WaitError says that the waiting ended, not the task: one that was seen goes on at the server and can be looked up by ID. Of one that
// was never seen nothing is known but its ID: it may be under way, have ended long ago, or not exist.
type WaitError struct {
	ID   ID
	Last Status // the last look that succeeded; the zero Status when none did
	Err  error  // why the waiting ended: the context's cause, or the error of the last look
}

func (e *WaitError) Error() string {
	switch {
	case e.Last.ID == "":
		return fmt.Sprintf("stopped waiting for task %s, which was never seen: %v", e.ID, e.Err)
	case isNotFound(e.Err):
		return fmt.Sprintf("stopped waiting for task %s, last seen %s and now not found: %v", e.ID, e.Last.State, e.Err)
	}
	return fmt.Sprintf("stopped waiting for task %s (last seen %s), which goes on at the server: %v", e.ID, e.Last.State, e.Err)
}

// Unwrap returns the reason the waiting ended.
func (e *WaitError) Unwrap() error { return e.Err }

// printable keeps a server's text on one line and free of control characters.
func printable(s string) string {
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
