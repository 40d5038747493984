package zvm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// EventInsertTaggedCP is the type of the event of an insert of a tagged checkpoint (zvm-wire 5.5).
const EventInsertTaggedCP EventType = 12

// EventType is the server's number for a kind of event. -1 is one that it named by a word that this package does not know.
type EventType int

// eventNames are the words that some servers send in place of a number.
var eventNames = map[EventType]string{EventInsertTaggedCP: "InsertTaggedCP"}

// Event is an entry of the server's own record: something that ended. Events outlive the tasks that they are of.
type Event struct {
	ID          string
	Type        EventType
	Succeeded   bool
	Occurred    time.Time // server clock, zero when not given
	User        string
	Description string
	VPGs        []VPGID // empty when the server does not say
}

// EventFilter narrows [Client.ListEvents]. Zero fields do not narrow.
type EventFilter struct {
	Type  EventType
	After time.Time
}

func (f EventFilter) query() url.Values {
	q := url.Values{}
	if f.Type != 0 {
		q.Set("eventType", strconv.Itoa(int(f.Type)))
	}
	if !f.After.IsZero() {
		q.Set("startDate", wireTime(f.After))
	}
	return q
}

// match keeps an event whose time was not understood: a filter must not hide what it cannot judge.
func (f EventFilter) match(e Event) bool {
	return (f.Type == 0 || f.Type == e.Type) && (e.Occurred.IsZero() || Window{From: f.After}.Contains(e.Occurred))
}

type wireEvent struct {
	Link                       *link
	EventType                  json.RawMessage
	EventCompletedSuccessfully bool
	OccurredOn                 Time
	UserName                   string
	Description                string
	RelatedEntities            *struct{ Vpgs []*link }
}

func (w wireEvent) event() (Event, error) {
	e := Event{
		ID: w.Link.id(), Succeeded: w.EventCompletedSuccessfully,
		Occurred: w.OccurredOn.Time, User: w.UserName, Description: w.Description,
	}
	kind := decodeEnum(w.EventType, nil)
	e.Type = EventType(kind.Number)
	for number, name := range eventNames {
		if strings.EqualFold(kind.Text, name) {
			e.Type = number
		}
	}
	if w.RelatedEntities != nil {
		for _, l := range w.RelatedEntities.Vpgs {
			if id := l.id(); id != "" {
				e.VPGs = append(e.VPGs, VPGID(id))
			}
		}
	}
	return e, nil
}

// ListEvents returns entries of the server's record. Rows that do not match the filter are dropped here.
func (c *Client) ListEvents(ctx context.Context, filter EventFilter) ([]Event, error) {
	cl := call{op: "ListEvents", method: http.MethodGet, path: "/v1/events", query: filter.query()}
	return list(ctx, c, cl, wireEvent.event, filter.match)
}
