package zvm

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Time is a moment as a ZVM reports it. Servers write it in many ways (zvm-wire 10.2); a text that none of them fits
// leaves the moment zero and stands in Raw, so that one odd date does not hide a whole record.
type Time struct {
	time.Time

	// Raw is the server's text when it was not understood, empty otherwise.
	Raw string
}

// UnmarshalJSON accepts every dialect of zvm-wire 10.2 and null. It never fails.
func (t *Time) UnmarshalJSON(data []byte) error {
	*t = Time{}
	var s string
	if json.Unmarshal(data, &s) != nil {
		if text := string(data); text != "null" {
			t.Raw = text
		}
		return nil
	}
	if s == "" {
		return nil
	}
	if parsed, ok := parseTime(s); ok {
		t.Time = parsed
	} else {
		t.Raw = s
	}
	return nil
}

// wireDate is the ASP.NET form, milliseconds since 1970 UTC with an offset that only tells how to display it.
var wireDate = regexp.MustCompile(`^/Date\((-?\d{1,15})([+-]\d{4})?\)/$`)

var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999Z07:00",
	"2006-01-02T15:04:05.999999999", // no zone: .NET's "unspecified", which is UTC here
	"2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05.999999999",
	"01/02/2006 3:04 PM",
	"01/02/2006 15:04:05",
}

func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if m := wireDate.FindStringSubmatch(s); m != nil {
		ms, err := strconv.ParseInt(m[1], 10, 64)
		return time.UnixMilli(ms).UTC(), err == nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			if t.Year() <= 1 { // .NET's "never"
				return time.Time{}, true
			}
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// wireTime writes a moment the one way a ZVM cannot misread: UTC, marked as such, with milliseconds (zvm-wire 4.2).
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
