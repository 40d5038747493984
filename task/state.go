package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID names one Zerto task. It has the form "<guid>.<site guid>" (zvm-wire 5.1). The empty ID names no task.
type ID string

// State is where a task stands. The numbers are the wire's (zvm-wire 5.2). A number this package does not know is
// kept as it is and counts as running, so that a newer server cannot turn a wait into a wrong verdict.
type State int

// The states a Zerto server reports. Completed alone is success; Failed and Stopped are the two ways to end without it.
const (
	NotStarted          State = 0
	InProgress          State = 1
	WaitingForUserInput State = 2
	Paused              State = 3
	Failed              State = 4
	Stopped             State = 5
	Completed           State = 6
	Cancelling          State = 7
)

var stateNames = [...]string{
	NotStarted:          "NotStarted",
	InProgress:          "InProgress",
	WaitingForUserInput: "WaitingForUserInput",
	Paused:              "Paused",
	Failed:              "Failed",
	Stopped:             "Stopped",
	Completed:           "Completed",
	Cancelling:          "Cancelling",
}

// String returns the state's name, or "unknown (n)" for a number without one.
func (s State) String() string {
	if s >= 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown (" + strconv.Itoa(int(s)) + ")"
}

// MarshalText writes the state's name, as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes, "unknown (n)" included. Other text is an error.
func (s *State) UnmarshalText(text []byte) error {
	known, ok := ParseState(string(text))
	if ok {
		*s = known
		return nil
	}
	digits, unknown := strings.CutPrefix(string(text), "unknown (")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ")"))
	if !unknown || err != nil || State(n).String() != string(text) {
		return fmt.Errorf("task: %q is not a state", text)
	}
	*s = State(n)
	return nil
}

// ParseState reads a state's name, the way [State.String] writes it. It reports false for any other text.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return State(s), true
		}
	}
	return 0, false
}

// Terminal reports whether the task has ended: Failed, Stopped or Completed. Unknown states have not.
func (s State) Terminal() bool { return s == Failed || s == Stopped || s == Completed }

// Status is what one look at a task shows.
type Status struct {
	ID    ID
	Type  string // the server's name of the operation, such as "InsertTaggedCP"
	State State
	// Progress is a percentage. It is not proof of anything: a Completed task need not show 100.
	Progress  int
	Reason    string    // the server's words on a failure; empty on success
	Started   time.Time // server clock, zero when not given
	Completed time.Time // server clock, zero while running
}
