package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCommand(t *testing.T) {
	t.Parallel()
	for kind, lines := range map[commandKind][]string{
		localRead: {
			"ls", " ls -la /tmp ", "cat a.txt b.txt", "grep -n 'two words' file", `grep "a|b" x`, "head -n 5 x", "echo büro",
		},
		guardsVMs: {
			"zerto-rewind protect web01 --action upgrade", `zerto-rewind protect 'Web (old)' db01 --action "up grade" --json`,
			"zerto-rewind protect web01 --change=c1 --timeout 2m",
		},
		unreadCommand: {
			"", " ", "ssh web01 ls", "sudo ls", "/bin/ls", "LS", "A=b ls", "ls; ssh web01", "ls & ssh web01", "ls && ssh web01", "ls | ssh web01 sh",
			"ls\nssh web01", "ls\rssh web01", "ls $(ssh web01)", "ls `ssh web01`", `ls "$(ssh web01)"`, "ls \"`ssh web01`\"", "ls <(ssh web01)",
			"ls > /dev/tcp/web01/22", "cat < x", "ls ${x}", "ls ~root", "ls *", "ls ?", "ls [a]", "ls {a,b}", "ls # x", "ls !x", `ls \; ssh`, `"ls" "a\"b"`,
			"ls 'a", `ls "a`, "l's'", "'l's", "ls a'b'", "ls 'a''b'", "ls\tx", "ls\u00a0x", "ls 'a\nb'", "ls\x00", "git status", "find . -delete",
			"sort -o x y", "env ssh web01", "xargs ssh", "tail -f x ; ssh web01",
			"zerto-rewind", "zerto-rewind protect", "zerto-rewind sweep x", "zerto-rewind protect web01 --zvm-url https://elsewhere",
			"zerto-rewind protect web01 --action --zvm-url https://elsewhere", "zerto-rewind --insecure protect web01", "zerto-rewind protect web01 -v",
			"zerto-rewind protect web01 --", "zerto-rewind protect web01 --action", "ls '\xff'", "zerto-rewind protect web01 '--zvm-url=https://elsewhere'", "./zerto-rewind protect web01 --action x",
		},
	} {
		for _, line := range lines {
			if got := readCommand(line); got != kind {
				t.Errorf("%q is of kind %d, want %d", line, got, kind)
			}
		}
	}
}

func TestQuotedWordsComeBack(t *testing.T) {
	t.Parallel()
	want := []string{"web01", "Web server (old) #2", "büro-01", "esxi/powerOff"}
	var line []string
	for _, word := range want {
		line = append(line, quoted(word))
	}
	got, ok := plainWords(strings.Join(line, " "))
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("words, read: %v (-want +got):\n%s", ok, diff)
	}
}

// A line that is copied for each of its words takes longer than a test may.
func TestLongLinesAreReadOnce(t *testing.T) {
	t.Parallel()
	words, ok := plainWords(strings.Repeat("a ", 1<<20))
	if len(words) != 1<<20 || !ok {
		t.Errorf("%d words, read: %v", len(words), ok)
	}
}

// FuzzReadCommand checks that no line with a sign that a shell would act on is taken for a harmless one.
func FuzzReadCommand(f *testing.F) {
	for _, line := range []string{"ls -la", "grep 'a b' x", "ls; x", "zerto-rewind protect a --action b", `echo "a"'b'`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if readCommand(line) == unreadCommand {
			return
		}
		if strings.ContainsAny(line, "$`\\!\n\r\t\x00") {
			t.Errorf("%q expands", line)
		}
		bare, quote := strings.Builder{}, rune(0)
		for _, r := range line {
			switch {
			case quote != 0:
				if r == quote {
					quote = 0
				}
			case r == '\'' || r == '"':
				quote = r
			default:
				bare.WriteRune(r)
			}
		}
		if quote != 0 || strings.ContainsAny(bare.String(), ";&|<>(){}[]*?~#^%") {
			t.Errorf("%q is more than one simple command", line)
		}
	})
}
