package task

import "time"

// Schedule says how long to wait between two looks at something that is under way. Waits are proportional to the time
// already spent, so that the delay a poller adds is a fixed share of the whole, however long it takes: with Share 0.1
// the end is noticed on average 5 % late, and the number of looks grows with the logarithm of the duration.
//
// The zero Schedule is ready to use.
type Schedule struct {
	// Share is the wait as a part of the time already spent. Zero means 0.12, which notices the end of a job of 1 to
	// 30 s on average 6 % late with about forty looks.
	Share float64
	// Min and Max bound a wait. Zero means 15 s for Max and 100 ms for Min, save that the first waits are as short as 20 ms
	// and double until then: what is done at once is seen at once.
	Min, Max time.Duration
	// Expected is how long jobs of this kind took lately, zero when nothing is known. Looks are then rare before nine
	// tenths of it and dense (3 % of it apart) up to five quarters of it, which notices the end within 2 % when the expectation
	// holds. However wrong it is, the end is seen before twice the time has passed, or within three seconds of the start.
	Expected time.Duration
}

// firstLook is the latest first look at a job that is expected to take long: looks before it would be spent on every job, and
// are of use to none but the shortest.
const firstLook = 3 * time.Second

// Wait returns the time to let pass before the next look, given the time already spent.
func (s Schedule) Wait(spent time.Duration) time.Duration {
	if s.Share <= 0 {
		s.Share = 0.12
	}
	if s.Min <= 0 {
		s.Min = min(max(spent, 20*time.Millisecond), 100*time.Millisecond)
	}
	if s.Max <= 0 {
		s.Max = 15 * time.Second
	}
	early, late := s.Expected*9/10, s.Expected*5/4
	switch {
	case spent < early:
		return max(s.Min, min(max(spent, min(s.Expected/8, firstLook)), early-spent, s.Max))
	case spent < late:
		return max(s.Min, min(s.Expected*3/100, s.Max))
	}
	return max(s.Min, min(time.Duration(float64(spent)*s.Share), s.Max))
}
