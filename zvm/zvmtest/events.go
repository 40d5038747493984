package zvmtest

import (
	"net/http"
	"strconv"
	"time"
)

// event is an entry of the audit trail: a task that ended.
type event struct {
	kind    int
	vpg     *VPG
	user    string
	text    string
	at      time.Time
	success bool
}

// eventKind is the event number of a task type (zvm-wire 5.5).
func eventKind(taskType string) (int, bool) {
	switch taskType {
	case "FailOverTest":
		return 4, true
	case "StopFailOverTest":
		return 5, true
	case "InsertTaggedCP":
		return 12, true
	case "Clone":
		return 30, true
	case "FlrJournalMount":
		return 58, true
	case "FlrJournalUnmount":
		return 59, true
	}
	return 0, false
}

// recordEvent notes the end of a task. The caller holds the mutex.
func (s *Server) recordEvent(t *task) {
	if kind, known := eventKind(t.kind); known && t.vpg != nil {
		s.events = append(s.events, event{
			kind: kind, vpg: t.vpg, user: t.user, at: t.completed, success: t.state == TaskCompleted,
			text: t.kind + " of VPG " + t.vpg.name,
		})
	}
}

type eventBody struct {
	Description                string
	EventCategory              string
	EventCompletedSuccessfully bool
	EventType                  int
	Link                       resourceLink
	OccurredOn                 *string
	RelatedEntities            struct{ Vpgs []resourceLink }
	UserName                   string
}

func handleEvents(s *Server, c *call) reply {
	r, err := s.dateRange(c, "startDate", "endDate")
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	list := []eventBody{}
	for i, e := range s.events {
		if !r.holds(e.at) ||
			!s.matchesID(c.param("vpgIdentifier"), e.vpg.id) ||
			!s.matchesText(c.param("vpg"), e.vpg.name) ||
			!s.matchesText(c.param("userName"), e.user) ||
			!s.matchesID(c.param("eventType"), strconv.Itoa(e.kind)) {
			continue
		}
		id := guid(s.cfg.seed, "event", strconv.Itoa(i))
		body := eventBody{
			Description:                e.text,
			EventCategory:              "Events",
			EventCompletedSuccessfully: e.success,
			EventType:                  e.kind,
			Link:                       s.link("events/"+id, id, "EventApi"),
			OccurredOn:                 isoDate(e.at),
			UserName:                   e.user,
		}
		body.RelatedEntities.Vpgs = []resourceLink{s.link("vpgs/"+e.vpg.id, e.vpg.id, "VpgApi")}
		list = append(list, body)
	}
	return ok(list)
}

// SetSuspicion sets the level at which encryption detection suspects the VPG;
// 0, as it is at first, means not at all.
func (v *VPG) SetSuspicion(level int) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.suspicion = level
}

// SetSuspicion sets the level at which encryption detection suspects the VM.
func (vm *VM) SetSuspicion(level int) {
	vm.s.mu.Lock()
	defer vm.s.mu.Unlock()
	vm.suspicion = level
}

func handleEncryptionState(*Server, *call) reply {
	return ok(struct{ EncryptionDetectionEnabled bool }{true})
}

type namedLink struct {
	resourceLink
	Name string `json:"name"`
}

type associatedVPG struct {
	Identifier string
	Name       string
}

type suspect struct {
	Link           namedLink
	SuspicionLevel int
	AssociatedVpgs []associatedVPG `json:",omitempty"`
}

func handleSuspectedVPGs(s *Server, _ *call) reply {
	list := []suspect{}
	for _, v := range s.vpgs {
		if v.suspicion > 0 {
			list = append(list, suspect{
				Link:           namedLink{s.link("vpgs/"+v.id, v.id, "VpgApi"), v.name},
				SuspicionLevel: v.suspicion,
			})
		}
	}
	return ok(list)
}

func handleSuspectedVMs(s *Server, _ *call) reply {
	list := []suspect{}
	for _, vm := range s.vms {
		if vm.suspicion == 0 {
			continue
		}
		one := suspect{Link: namedLink{s.link("vms/"+vm.id, vm.id, "VmApi"), vm.name}, SuspicionLevel: vm.suspicion}
		for _, v := range vm.vpgs {
			one.AssociatedVpgs = append(one.AssociatedVpgs, associatedVPG{v.id, v.name})
		}
		list = append(list, one)
	}
	return ok(list)
}
