package cli

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
)

// progress returns what is told of each stage: a log line with -v, a line for a person at a terminal, nothing else. A
// task is told of when its state changes, however often it is looked at. The bytes of a download are a bar for a person,
// which is gone when they have arrived.
func (a *app) progress() func(rewind.Event) {
	watched := a.io.Terminal && !a.json && !a.verbose
	var states taskStates
	return func(e rewind.Event) {
		switch {
		case e.Stage == rewind.StageTask && !states.changed(e.Task):
		case e.Stage == rewind.StageDownloading && e.Bytes > 0:
			a.bar.show(e.Bytes)
		case watched:
			a.say("%s", stageLine(e))
			if e.Stage == rewind.StageDownloading {
				a.bar.start(a.io.Err, e.Total)
			}
		default:
			a.log.Debug("stage", stageAttributes(e)...)
		}
	}
}

// taskStates remembers in which state each task was last seen. It is safe for concurrent use.
type taskStates struct{ seen sync.Map }

func (s *taskStates) changed(now task.Status) bool {
	before, known := s.seen.Swap(now.ID, now.State)
	return !known || before != now.State
}

func stageAttributes(e rewind.Event) []any {
	attributes := []any{slog.String("stage", string(e.Stage))}
	for _, text := range []struct{ name, value string }{
		{"vm", e.VM.Name},
		{"vpg", e.VPGName},
		{"task", string(e.Task.ID)},
		{"tag", e.Tag},
		{"checkpoint", string(e.Checkpoint)},
		{"session", string(e.Session)},
	} {
		if text.value != "" {
			attributes = append(attributes, slog.String(text.name, text.value))
		}
	}
	if e.Task.ID != "" {
		attributes = append(attributes, slog.String("state", e.Task.State.String()), slog.Int("progress", e.Task.Progress))
	}
	for _, count := range []struct {
		name  string
		value int64
	}{{"bytes", e.Bytes}, {"total", e.Total}} {
		if count.value > 0 {
			attributes = append(attributes, slog.Int64(count.name, count.value))
		}
	}
	return attributes
}

// stageLine is for people: "inserting web-local", "task web-local Completed (7f.1)", "proven web-local, checkpoint 786".
func stageLine(e rewind.Event) string {
	line := string(e.Stage)
	for _, name := range []string{e.VM.Name, e.VPGName} {
		if name != "" {
			line += " " + name
		}
	}
	if e.Stage == rewind.StageTask {
		line += fmt.Sprintf(" %s (%s)", e.Task.State, e.Task.ID)
	}
	if e.Checkpoint != "" {
		line += fmt.Sprintf(", checkpoint %s", e.Checkpoint)
	}
	if e.Stage == rewind.StageDownloaded {
		line += fmt.Sprintf(", %d bytes", e.Bytes)
	}
	return line
}
