package zvmtest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

const (
	served  = "served"
	refused = "known, refused"
	unknown = "unknown"
)

// states says of every operation of the document what the server makes of it.
func (c *contract) states(support []zvmtest.Operation) map[string]string {
	states := map[string]string{}
	for key := range c.operations {
		states[c.spelling[key]] = unknown
	}
	for _, op := range support {
		spelled, documented := c.spelling[operationKey(op.Method, op.Path)]
		if documented {
			states[spelled] = stateOf(op)
		}
	}
	return states
}

func stateOf(op zvmtest.Operation) string {
	if op.Served {
		return served
	}
	return refused
}

// coverage is the whole table, for the log.
func (c *contract) coverage(support []zvmtest.Operation) string {
	states := c.states(support)
	var b strings.Builder
	for _, operation := range slices.Sorted(maps.Keys(states)) {
		fmt.Fprintf(&b, "%-15s %s\n", states[operation], operation)
	}
	for _, object := range slices.Sorted(maps.Keys(c.sent.all)) {
		if missing := c.sent.missing(object); len(missing) > 0 {
			fmt.Fprintf(&b, "%s is sent without %s\n", object, strings.Join(missing, ", "))
		}
	}
	return b.String()
}

// supportPage is SUPPORT.md: every route of the server, and of the rest of
// the document how much there is.
func (c *contract) supportPage(support []zvmtest.Operation) string {
	states := c.states(support)
	counts, rest := map[string]int{}, map[string]int{}
	for operation, state := range states {
		counts[state]++
		if state == unknown {
			_, path, _ := strings.Cut(operation, " ")
			rest[strings.Join(strings.Split(path, "/")[:3], "/")]++
		}
	}
	var b strings.Builder
	b.WriteString("# What the simulator serves\n\n" +
		"Generated from the server's routes and the vendor's OpenAPI document of ZVM 10.0 U6 by\n" +
		"`ZVM_OPENAPI=<document> go test ./zvm/zvmtest -run TestContract -update`.\n\n")
	fmt.Fprintf(&b, "Of the %d operations of that document %d are served, %d are known and answered 403, because a rewind must\n"+
		"never send them, and %d are unknown and answered 501. Both refusals fail the test that called `Start`.\n\n",
		len(states), counts[served], counts[refused], counts[unknown])
	b.WriteString("| method | path | here | in the document |\n|---|---|---|---|\n")
	for _, op := range sorted(support) {
		documented := "yes"
		if c.operation(op.Method, op.Path) == nil {
			documented = "no: " + outsideTheDocument[op.Method+" "+op.Path]
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", op.Method, op.Path, stateOf(op), documented)
	}
	b.WriteString("\n## Fields of answers\n\nWhat the document does not have, and the wire does, is not counted.\n\n" +
		"| object of the document | fields sent | fields documented |\n|---|---|---|\n")
	for _, object := range slices.Sorted(maps.Keys(c.sent.all)) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", object, len(c.sent.seen[object]), len(c.sent.all[object].Properties))
	}
	b.WriteString("\n## Unknown to the simulator\n\n| area | operations |\n|---|---|\n")
	for _, area := range slices.Sorted(maps.Keys(rest)) {
		fmt.Fprintf(&b, "| `%s` | %d |\n", area, rest[area])
	}
	return b.String()
}
