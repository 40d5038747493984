package gate

// Choice is what a person may answer to the question whether a call may run. Its text is that of the answer on the wire and in
// the ledger.
type Choice string

// The choices. The empty one is no answer.
const (
	CheckpointFirst Choice = "checkpoint"
	RunUnguarded    Choice = "run"
	DoNotRun        Choice = "refuse"
)

// Title is the choice as a person reads it.
func (c Choice) Title() string {
	switch c {
	case CheckpointFirst:
		return "Checkpoint the VM first, then run it"
	case RunUnguarded:
		return "Run it without a checkpoint: Zerto cannot take it back"
	case DoNotRun:
		return "Do not run it"
	}
	return string(c)
}
