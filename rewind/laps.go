package rewind

import (
	"math"
	"time"
)

// StageTime is how long one step of a recovery took.
type StageTime struct {
	// Stage is "check" (the checkpoint is still in its journal and may be mounted), "pin" (with [PinFirst] alone), "mount",
	// "browse" (the path was found), "download" or "unmount". More may come.
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"` // to the millisecond
}

// laps measures steps that follow one another.
type laps struct {
	last  time.Time
	times []StageTime
}

func startLaps() *laps { return &laps{last: time.Now()} }

func (l *laps) end(stage string) {
	now := time.Now()
	l.times = append(l.times, StageTime{stage, math.Round(now.Sub(l.last).Seconds()*1e3) / 1e3})
	l.last = now
}
