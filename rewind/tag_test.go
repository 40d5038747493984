package rewind_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

var tagMoment = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func TestTagText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		tag  rewind.Tag
		want string
	}{
		{
			"an ordinary change",
			rewind.Tag{Agent: "patch-bot", Action: "upgrade nginx", VMs: []string{"web01"}, Change: "k3f9-x2ma", Time: tagMoment},
			"ai:patch-bot | upgrade nginx | vm=web01 | change=k3f9-x2ma | 2026-11-29T10:00:00Z",
		},
		{
			"several machines",
			rewind.Tag{Agent: "a", Action: "b", VMs: []string{"web01", "db,01"}, Change: "c", Time: tagMoment},
			"ai:a | b | vm=web01,db%2C01 | change=c | 2026-11-29T10:00:00Z",
		},
		{
			"nothing known",
			rewind.Tag{Time: tagMoment},
			"ai:- | - | vm=- | change=- | 2026-11-29T10:00:00Z",
		},
		{
			"separators, control characters and bidi marks",
			rewind.Tag{Agent: "a | b", Action: "x | y\n\tz\u202e", VMs: []string{" w\x00 "}, Change: "c\u200f=1", Time: tagMoment},
			"ai:a %7C b | x / y z | vm=%20w%00%20 | change=c%E2%80%8F=1 | 2026-11-29T10:00:00Z",
		},
		{
			"a literal dash, plus and tilde",
			rewind.Tag{Agent: "-", Action: "-", VMs: []string{"+3"}, Change: "a~b", Time: tagMoment},
			"ai:%2D | - | vm=%2B3 | change=a%7Eb | 2026-11-29T10:00:00Z",
		},
		{
			"a zone other than UTC",
			rewind.Tag{Agent: "a", Action: "b", VMs: []string{"c"}, Change: "d", Time: tagMoment.In(time.FixedZone("", 3*3600))},
			"ai:a | b | vm=c | change=d | 2026-11-29T10:00:00Z",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.tag.String()); diff != "" {
				t.Errorf("tag mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTagCutsTheActionFirst(t *testing.T) {
	t.Parallel()
	tag := rewind.Tag{
		Agent: "patch-bot", Action: strings.Repeat("ä very long action ", 20), VMs: []string{"web01"},
		Change: "0d0c2a53-1d2e-4c59-9d2a-4a5f6f6e7a11", Time: tagMoment,
	}
	text := tag.String()
	if len(text) > rewind.MaxTagBytes || len(text) < rewind.MaxTagBytes-4 {
		t.Errorf("tag takes %d bytes, want just under %d: %s", len(text), rewind.MaxTagBytes, text)
	}
	got, ok := rewind.ParseTag(text)
	if !ok || got.Agent != tag.Agent || got.Change != tag.Change || !got.Concerns("web01") || !got.Time.Equal(tag.Time) {
		t.Errorf("the tag lost more than its action: %+v", got)
	}
}

func TestTagNamesWhatItCannotSpell(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 90)
	other := strings.Repeat("x", 91)
	got, ok := rewind.ParseTag(rewind.Tag{Agent: long, VMs: []string{long}, Change: long, Time: tagMoment}.String())
	if !ok {
		t.Fatal("not parsed")
	}
	if !got.Names(long) || got.Names(other) {
		t.Errorf("change %q: names itself %t, another %t", got.Change, got.Names(long), got.Names(other))
	}
	if !got.Names(got.Change) {
		t.Errorf("change %q is not found by the name that is shown", got.Change)
	}
	if !got.Concerns(long) || got.Concerns(other) {
		t.Errorf("vm %q: concerns itself %t, another %t", got.VMs, got.Concerns(long), got.Concerns(other))
	}
}

func TestTagOfManyMachines(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 5, 30, 200} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("a-rather-long-name-for-a-machine-%03d", i)
		}
		text := rewind.Tag{Agent: "a", Action: "b", VMs: names, Change: "c", Time: tagMoment}.String()
		got, ok := rewind.ParseTag(text)
		if !ok || len(text) > rewind.MaxTagBytes {
			t.Fatalf("%d machines: %d bytes, parsed %t", n, len(text), ok)
		}
		for _, name := range names {
			if !got.Concerns(name) {
				t.Errorf("%d machines: %s is lost in %s", n, name, text)
			}
		}
		if n <= 5 && got.Concerns("another") {
			t.Errorf("%d machines: %s concerns a machine it was not made for", n, text)
		}
	}
}

func TestForeignNamesAreNotTags(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "MongoDB Quiesced Checkpoint", "ai:", "ai:a | b | vm=c | change=d", "ai:a | b | vm=c | change=d | soon",
		"ai:a | b | change=c | vm=d | 2026-11-29T10:00:00Z", "xai:a | b | vm=c | change=d | 2026-11-29T10:00:00Z",
	} {
		if tag, ok := rewind.ParseTag(name); ok {
			t.Errorf("ParseTag(%q) = %+v, want none", name, tag)
		}
	}
}

func TestAppendedTextIsIgnored(t *testing.T) {
	t.Parallel()
	tag := rewind.Tag{Agent: "a", Action: "b", VMs: []string{"c"}, Change: "d", Time: tagMoment}
	got, ok := rewind.ParseTag("  " + tag.String() + "; Tested at 11/29/2026 11:00 | twice")
	if diff := cmp.Diff(tag, got); !ok || diff != "" {
		t.Errorf("tag mismatch (-want +got):\n%s", diff)
	}
}

func FuzzTagRoundTrip(f *testing.F) {
	f.Add("patch-bot", "upgrade nginx", "web01", "db01", "k3f9-x2ma", int64(1764410400))
	f.Add("", "", "", "", "", int64(0))
	f.Add("a | b", "x | y\r\n\u202e\u0000", "+5", "~", "-", int64(-1))
	f.Add(strings.Repeat("é", 60), strings.Repeat("| ", 150), strings.Repeat("%", 60), ",", "\xff\xfe", int64(1<<33))
	f.Fuzz(func(t *testing.T, agent, action, vm, vm2, change string, unix int64) {
		at := time.Unix(unix%(1<<33), 0).UTC()
		if at.Year() < 1000 {
			at = tagMoment
		}
		text := rewind.Tag{Agent: agent, Action: action, VMs: []string{vm, vm2}, Change: change, Time: at}.String()
		if len(text) > rewind.MaxTagBytes {
			t.Fatalf("%d bytes: %q", len(text), text)
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("not one line of printable text: %q", text)
		}
		got, ok := rewind.ParseTag(text)
		if !ok {
			t.Fatalf("not parsed: %q", text)
		}
		if !got.Names(change) || !got.Concerns(vm) || !got.Concerns(vm2) || !got.Time.Equal(at) {
			t.Fatalf("%q lost a field: %+v", text, got)
		}
		if len(agent) <= 8 && got.Agent != agent {
			t.Fatalf("agent %q came back as %q", agent, got.Agent)
		}
	})
}

func FuzzCutTag(f *testing.F) {
	f.Add("patch-bot", "upgrade nginx", "web01", "k3f9-x2ma-7q1d", 80)
	f.Add("a | b", strings.Repeat("x", 300), "ü,%", "~", 128)
	f.Fuzz(func(t *testing.T, agent, action, vm, change string, at int) {
		text := rewind.Tag{Agent: agent, Action: action, VMs: []string{vm}, Change: change, Time: tagMoment}.String()
		if at < 0 || at > len(text) {
			return
		}
		whole, _ := rewind.ParseTag(text)
		cut, ok := rewind.ParseCutTag(text[:at])
		separators := strings.Count(text[:at], " | ")
		if ok != (separators > 0) {
			t.Fatalf("%q: parsed %t with %d separators", text[:at], ok, separators)
		}
		if ok && cut.Agent != whole.Agent {
			t.Errorf("%q: agent %q, want %q", text[:at], cut.Agent, whole.Agent)
		}
		if separators >= 4 && !cut.Names(change) {
			t.Errorf("%q: change %q, want %q", text[:at], cut.Change, change)
		}
		if separators == 3 && cut.Change != "" {
			t.Errorf("%q: a change that may be cut is taken for whole: %q", text[:at], cut.Change)
		}
	})
}

func TestWhatACutLeaves(t *testing.T) {
	t.Parallel()
	text := rewind.Tag{Agent: "patch-bot", Action: "upgrade nginx", VMs: []string{"web01"}, Change: "k3f9-x2ma-7q1d", Time: tagMoment}.String()
	for at, want := range map[int]string{128: "patch-bot k3f9-x2ma-7q1d", 100: "patch-bot k3f9-x2ma-7q1d", 80: "patch-bot k3f9-x2ma-7q1d", 64: "patch-bot ", 9: ""} {
		tag, ok := rewind.ParseCutTag(text[:min(at, len(text))])
		got := ""
		if ok {
			got = tag.Agent + " " + tag.Change
		}
		if got != want {
			t.Errorf("cut at %d: %q, want %q", at, got, want)
		}
	}
	if len(text) != 86 || strings.Index(text, " | 2026") != 63 {
		t.Errorf("the documented lengths are off: %d, %d", len(text), strings.Index(text, " | 2026"))
	}
}

func FuzzParseTag(f *testing.F) {
	f.Add("ai:a | b | vm=c | change=d | 2026-11-29T10:00:00Z")
	f.Add("ai:%2 | % | vm=+ | change=%zz | 2026-11-29T10:00:00Z Tested at")
	f.Fuzz(func(t *testing.T, name string) {
		if tag, ok := rewind.ParseTag(name); ok && (tag.Time.IsZero() && !strings.Contains(name, "0001-01-01")) {
			t.Fatalf("%q parsed without a time", name)
		}
	})
}
