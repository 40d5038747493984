package cli

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// span is a flag's duration as [time.ParseDuration] reads it, with whole weeks and days in front: 2w, 7d, 1d12h, 90m.
type span time.Duration

// Four digits of each keep the sum within what a duration can hold.
var weeksAndDays = regexp.MustCompile(`^(?:(\d{1,4})w)?(?:(\d{1,4})d)?`)

// Set is for package pflag.
func (s *span) Set(text string) error {
	parts := weeksAndDays.FindStringSubmatch(text)
	weeks, _ := strconv.Atoi(parts[1]) // "" is none
	days, _ := strconv.Atoi(parts[2])
	total := time.Duration(7*weeks+days) * 24 * time.Hour
	if rest := text[len(parts[0]):]; rest != "" || parts[0] == "" {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return errors.New("want a duration such as 90s, 2h, 7d or 2w")
		}
		if d < 0 {
			return errors.New("it is negative")
		}
		total += d
	}
	if total < 0 {
		return errors.New("it is too long")
	}
	*s = span(total)
	return nil
}

// String leaves out the zeros at the end: 2h, not 2h0m0s. None is "0", which package pflag takes for no default.
func (s *span) String() string {
	if *s == 0 {
		return "0"
	}
	text := time.Duration(*s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Type names the kind of value in the help.
func (*span) Type() string { return "duration" }

func inWords(d time.Duration) string {
	s := span(d)
	return s.String()
}
