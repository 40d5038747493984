package zvmtest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// parseDate reads a date as the server does: the forms of zvm-wire 4.2, and
// local time of the server where there is no Z.
func (s *Server) parseDate(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC(), nil
	}
	zone := time.FixedZone("", int(s.cfg.utcOffset/time.Second))
	bare, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.ParseInLocation(layout, bare, zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date", text)
}

// span is a range of time; a zero end is open.
type span struct {
	from, to  time.Time
	exclusive bool
}

func (r span) bounded() bool { return !r.from.IsZero() || !r.to.IsZero() }

func (r span) holds(t time.Time) bool {
	if r.exclusive && (t.Equal(r.from) || t.Equal(r.to)) {
		return false
	}
	return (r.from.IsZero() || !t.Before(r.from)) && (r.to.IsZero() || !t.After(r.to))
}

func (s *Server) dateRange(c *call, from, to string) (span, error) {
	r := span{exclusive: s.cfg.has(DateBoundsExclusive)}
	for name, bound := range map[string]*time.Time{from: &r.from, to: &r.to} {
		if c.param(name) == "" {
			continue
		}
		t, err := s.parseDate(c.param(name))
		if err != nil {
			return span{}, fmt.Errorf("%s: %w", name, err)
		}
		*bound = t
	}
	return r, nil
}

func handleTimeUTC(s *Server, c *call) reply { return ok(c.now.Format(milliseconds)) }

func handleTimeLocal(s *Server, c *call) reply {
	return ok(c.now.Add(s.cfg.utcOffset).Format("2006-01-02T15:04:05.000"))
}

// handleDateArgument echoes how the server reads a date.
func handleDateArgument(s *Server, c *call) reply {
	t, err := s.parseDate(c.param("dateTime"))
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	return ok(t.Format(milliseconds))
}
