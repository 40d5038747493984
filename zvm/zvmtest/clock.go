package zvmtest

import "time"

// Now is the server's clock, in UTC: the clock given by an option, moved by
// every Advance.
func (s *Server) Now() time.Time {
	return s.cfg.clock().Add(time.Duration(s.advanced.Load())).UTC().Round(0)
}

// Advance moves the server's clock forward by d. Everything that is due by
// then has happened at the next request or accessor call. A negative d is
// ignored: the server's time never runs backwards.
func (s *Server) Advance(d time.Duration) {
	if d > 0 {
		s.advanced.Add(int64(d))
	}
}

// lock takes the state's mutex and lets everything happen that is due.
func (s *Server) lock() time.Time {
	s.mu.Lock()
	now := s.Now()
	s.takeOver()
	s.settle(now)
	s.endMounts(now)
	return now
}

// settledNow is the clock of the guests: a change finds everything done that
// was due before it.
func (s *Server) settledNow() time.Time {
	now := s.lock()
	s.mu.Unlock()
	return now
}
