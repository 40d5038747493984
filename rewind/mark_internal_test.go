package rewind

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAMarkComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	long := strings.Repeat("ä|", 60)
	for name, m := range map[string]mark{
		"a test with a deadline":     {agent: "patch-bot", kind: LeftTest, checkpoint: "786", change: "c1", at: at, until: at.Add(time.Hour)},
		"a clone without one":        {kind: LeftClone, checkpoint: "786", change: "c1", at: at},
		"one that was taken back":    {agent: "patch-bot", kind: LeftTest, change: "c1", at: at},
		"a change that imitates one": {agent: " | no test | ", kind: LeftTest, checkpoint: "1 of 2", change: " | until=-", at: at},
	} {
		got, ok := parseMark(m.String())
		if diff := cmp.Diff(m, got, cmp.AllowUnexported(mark{})); diff != "" || !ok {
			t.Errorf("%s, %q (-want +got):\n%s", name, m, diff)
		}
		if _, ours := ParseTag(m.String()); ours {
			t.Errorf("%s: %q reads as a tag, which guards something", name, m)
		}
	}
	longest := mark{agent: long, kind: LeftClone, checkpoint: "12345678901234567890", change: long, at: at, until: at}
	if n := len(longest.String()); n > MaxTagBytes {
		t.Errorf("a mark takes %d bytes", n)
	}
}

func TestNothingElseReadsAsAMark(t *testing.T) {
	t.Parallel()
	const whole = "ai:patch-bot | test of 786 | until=- | change=c1 | 2026-11-29T10:00:00Z"
	for _, name := range []string{
		"",
		whole + " | more", whole + ", Tested at 2026-11-29 10:00:00", whole[:60],
		strings.Replace(whole, "ai:", "by:", 1),
		strings.Replace(whole, "test of", "move of", 1),
		strings.Replace(whole, "test of 786", "no move", 1),
		strings.Replace(whole, "test of 786", "test of -", 1),
		strings.Replace(whole, "until=-", "until=later", 1),
		strings.Replace(whole, "until=-", "vm=web01", 1),
		strings.Replace(whole, "change=", "vm=", 1),
		Tag{Agent: "a", Action: "test of 786 | until=- | change=c1", VMs: []string{"until=-"}, Change: "c1"}.String(),
	} {
		if m, ok := parseMark(name); ok {
			t.Errorf("%q reads as %+v", name, m)
		}
	}
}

// FuzzParseMark holds that nothing is both a mark and a tag, and that what a mark says survives being written again.
func FuzzParseMark(f *testing.F) {
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	f.Add(mark{agent: "patch-bot", kind: LeftTest, checkpoint: "786", change: "c1", at: at, until: at}.String())
	f.Add(mark{kind: LeftClone, change: "a|b%", at: at}.String())
	f.Add(Tag{Agent: "patch-bot", Action: "test of 786", VMs: []string{"web01"}, Change: "c1", Time: at}.String())
	f.Fuzz(func(t *testing.T, name string) {
		m, isMark := parseMark(name)
		if _, isTag := ParseTag(name); isTag && isMark {
			t.Fatalf("%q reads as a tag and as a mark", name)
		}
		if !isMark {
			return
		}
		first, ok := parseMark(m.String())
		if again, _ := parseMark(first.String()); !ok || again != first || len(m.String()) > MaxTagBytes {
			t.Errorf("%q reads as %+v, and written again as %+v", name, m, first)
		}
	})
}
