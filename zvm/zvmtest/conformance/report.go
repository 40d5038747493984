package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outcome is what came of one behaviour.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Result is one behaviour of the report.
type Result struct {
	Behaviour string  `json:"behaviour"`
	Mutates   bool    `json:"mutates"`
	Outcome   Outcome `json:"outcome"`
	Detail    string  `json:"detail,omitempty"` // why it failed or was skipped
	Seconds   float64 `json:"seconds"`
}

// Answer is what one probe of an open question of the wire fact sheet saw.
type Answer struct {
	Question int    `json:"question"`
	Probe    string `json:"probe"`
	Observed string `json:"observed"`
}

// Report is what a run found. It holds no secret, no id and no address;
// names are pseudonyms.
type Report struct {
	Results []Result `json:"results"`
	Answers []Answer `json:"answers"`
	// LeftOpen names what could not be closed, with its id: it is for
	// whoever ran the suite and not part of Markdown and JSON.
	LeftOpen []string `json:"-"`
}

// lastQuestion is the highest number of the open questions.
const lastQuestion = 40

// Failed lists the names of the behaviours that failed.
func (r *Report) Failed() []string {
	var names []string
	for _, result := range r.Results {
		if result.Outcome == Failed {
			names = append(names, result.Behaviour)
		}
	}
	return names
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Answers, func(a, b Answer) int { return a.Question - b.Question })
}

// Unanswered lists the open questions that no probe of this run answered.
func (r *Report) Unanswered() []int {
	var open []int
	for n := 1; n <= lastQuestion; n++ {
		if !slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Question == n }) {
			open = append(open, n)
		}
	}
	return open
}

// JSON is the report for programs.
func (r *Report) JSON() ([]byte, error) {
	return json.MarshalIndent(struct {
		*Report

		Unanswered []int `json:"unanswered"`
	}{r, r.Unanswered()}, "", "  ")
}

// Markdown is the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("# Conformance report\n\n| behaviour | mutates | outcome | seconds | detail |\n|---|---|---|---|---|\n")
	for _, one := range r.Results {
		mutates := "no"
		if one.Mutates {
			mutates = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s |\n", one.Behaviour, mutates, one.Outcome, one.Seconds, cell(one.Detail))
	}
	b.WriteString("\n## Open questions\n\n| question | probe | observed |\n|---|---|---|\n")
	for _, one := range r.Answers {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", one.Question, cell(one.Probe), cell(one.Observed))
	}
	fmt.Fprintf(&b, "\nNot answered by this run: %s.\n", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Unanswered())), ", "), "[]"))
	return b.String()
}

// cell keeps a text within one cell of a table, whatever a server sent.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'").Replace(text)
}
