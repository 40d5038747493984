package zvmtest

import (
	"encoding/json"
	"net/http"
)

type canMount struct {
	IsAllowed bool
	Reason    *string
}

// pointInTime is one element of zvm-wire 2.7.
type pointInTime struct {
	Checkpoint   json.RawMessage
	RetentionSet *string
	CanMount     canMount
}

func (s *Server) pointInTime(vm *VM, vpg *VPG, c checkpoint) pointInTime {
	point := pointInTime{Checkpoint: s.checkpointJSON(c, true), CanMount: canMount{IsAllowed: true}}
	if reason := s.mountRefusal(vm, vpg); reason != "" {
		point.CanMount = canMount{Reason: &reason}
	}
	return point
}

func handlePointsInTime(s *Server, c *call) reply {
	vm, vpg, refusal := s.vmInVPG(c)
	if vm == nil {
		return refusal
	}
	r, err := s.dateRange(c, "startDate", "endDate")
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	frozen := vpg.journal.at(c.now, wireRange(r))
	list := []pointInTime{}
	for one := range s.ordered(s.listing(frozen, r)) {
		list = append(list, s.pointInTime(vm, vpg, one))
	}
	return ok(list)
}

func handlePointsInTimeStats(s *Server, c *call) reply {
	vm, vpg, refusal := s.vmInVPG(c)
	if vm == nil {
		return refusal
	}
	frozen := vpg.journal.at(c.now, span{})
	var stats struct{ Earliest, Latest *pointInTime }
	if first, present := frozen.earliest(); present {
		point := s.pointInTime(vm, vpg, first)
		stats.Earliest = &point
	}
	if last, present := frozen.latest(); present {
		point := s.pointInTime(vm, vpg, last)
		stats.Latest = &point
	}
	return ok(stats)
}
