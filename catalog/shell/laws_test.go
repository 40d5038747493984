package shell_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/catalog/shell"
)

// laxer returns in what one reading is laxer than another, or "".
func laxer(r, than shell.Reading) string {
	for _, m := range than.Machines {
		found := false
		for _, other := range r.Machines {
			found = found || strings.EqualFold(m.Name, other.Name) && (other.Changed || !m.Changed)
		}
		if !found {
			return m.Name
		}
	}
	if than.Unresolved != "" && r.Unresolved == "" {
		return "what is unresolved"
	}
	return ""
}

var seeds = []string{
	"ls -la", "ssh web01 'sudo reboot'", "for h in a b; do ssh $h uptime; done", "cat <<E\n$(ssh x y)\nE", "bash -c \"ssh $h\"", "sudo -u x env A=b timeout 5 scp a b:c", "echo \\", "f() { ssh $1; }",
	"x='a\nb'; eval $x", "ansible all -m ping", "qm stop 100; virsh start x", "Invoke-Command -ComputerName a,b { Get-Service }", "if ($x) { ssh a b } else { 'c' }", "\"$(iex 'x')\" > y", "@'\nx\n'@",
	"xargs -I{} ssh {} x", "curl -X POST -d @x localhost", "a && (b || c) | d & e", "cat <(x) > >(y)", "IFS=x", "shopt -s extglob; ls @(a|b)", "time -p ls", "[[ a =~ b ]]", "((a=1))", "echo $'\\x41'",
	"ls \u0080", "ls \u0081", "ls \xff",
}

// FuzzRead checks that no line breaks the reader, that what surrounds a command never makes it laxer, and that a
// command with a machine is always seen.
func FuzzRead(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, "ssh web01 rm -rf /")
	}
	f.Add("IFS=:", "ssh web01 'for p in ssh; do $p db01 reboot; done'")
	f.Fuzz(func(t *testing.T, line, other string) {
		shell.Read(line, shell.PowerShell)
		shell.Reader{}.ReadCommand("run_command", line)
		alone := shell.Read(line, shell.Bash)
		const danger = "ssh web01 rm -rf /"
		if alone.Unresolved == "" && !parses(line) {
			t.Errorf("%q cannot be parsed and is read as %q", line, short(alone))
		}
		if !complete(line) {
			return
		}
		// The empty line ends a line that a backslash would continue.
		for _, whole := range []string{line + "\n\n" + danger, danger + "\n" + line} {
			if r := shell.Read(whole, shell.Bash); laxer(r, shell.Reading{Machines: []shell.Machine{{Name: "web01", Changed: true}}}) != "" && r.Unresolved == "" {
				t.Errorf("%q is read as %q, want web01 or something unresolved", whole, short(r))
			}
		}
		if !complete(other) || strings.HasSuffix(line, `\`) {
			return // the line is another one when something follows
		}
		both := line + "\n\n" + other
		r := shell.Read(both, shell.Bash)
		if what := laxer(r, alone); what != "" {
			t.Errorf("%q lacks %s of its first command", both, what)
		}
		if what := laxer(r, shell.Read(other, shell.Bash)); what != "" && r.Unresolved == "" {
			t.Errorf("%q lacks %s of its second command", both, what)
		}
	})
}

// complete reports whether a shell would take the line as it is, with nothing open that swallows what follows.
func complete(line string) bool {
	odd := func(r rune) bool {
		return r == '\ufdd0' || r == '\ufffd' || unicode.IsControl(r) && !unicode.IsSpace(r) || r == '\u0085'
	}
	const longest = 64 << 10 // a longer one is cut
	return len(line) <= longest && !strings.ContainsFunc(line, odd) && parses(line) && parses(line+"\n\n:")
}

func parses(line string) bool {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	return err == nil
}

func TestResultIsThatOfAnyOtherCall(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]catalog.Result{
		"ls":                            {Verdict: catalog.Verdict{Class: catalog.ReadOnly, Scope: catalog.Local}, Reason: "the command line only reads the agent's own machine"},
		"make":                          {Verdict: catalog.Verdict{Class: catalog.Mutating, Scope: catalog.Local}, Reason: "the command line addresses no other machine"},
		"ssh web01 ls":                  {Verdict: catalog.Verdict{Class: catalog.ReadOnly}, Reason: "the command line only reads on other machines"},
		"ssh web01 ls; ssh db01 reboot": {Verdict: catalog.Verdict{Class: catalog.Mutating}, Targets: []catalog.Target{{Value: "db01"}}, TargetKnown: true, Reason: "the command line changes another machine"},
		"ssh web01 reboot; kubectl x": {
			Verdict: catalog.Verdict{Class: catalog.Mutating}, Targets: []catalog.Target{{Value: "web01"}}, Reason: "the command line changes another machine",
			TargetProblem: "a program acts on machines that the command line does not name",
		},
		"kubectl x": {
			Reason: "a program acts on machines that the command line does not name", TargetProblem: "a program acts on machines that the command line does not name",
		},
	} {
		if diff := cmp.Diff(want, shell.Reader{}.ReadCommand("Bash", line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestToolDecidesTheDialect(t *testing.T) {
	t.Parallel()
	const bashOnly, powerShellOnly = "for i in 1; do ls; done", "icm web01 { rm x }"
	for _, tt := range []struct {
		tool, line string
		safe       bool
	}{
		{"Bash", bashOnly, true},
		{"Bash", "ls", true},
		{"PowerShell", "ls", true},
		{"PowerShell", powerShellOnly, false},
		{"run_shell_command", "ls", true},
		{"run_shell_command", powerShellOnly, false},
		{"run_shell_command", "ssh web01 reboot", false},
	} {
		if got := (shell.Reader{}).ReadCommand(tt.tool, tt.line); got.Safe() != tt.safe {
			t.Errorf("%s of %s: %+v, want safe %t", tt.line, tt.tool, got, tt.safe)
		}
	}
}

func TestAgentsOwnMachineCanBeOneToGuard(t *testing.T) {
	t.Parallel()
	r := shell.Reader{LocalVM: "dev01"}
	for line, want := range map[string][]catalog.Target{
		"ls": nil, "make install": {{Value: "dev01"}}, "ssh web01 reboot": {{Value: "web01"}}, "cat x > y": {{Value: "dev01"}}, "bash -c 'rm x'": {{Value: "dev01"}},
	} {
		if got := r.ReadCommand("Bash", line); cmp.Diff(want, got.Targets) != "" || (want == nil) != got.Safe() {
			t.Errorf("%s: %+v, want targets %v", line, got, want)
		}
	}
}

func TestLongLinesAreGivenUp(t *testing.T) {
	t.Parallel()
	var loops strings.Builder
	for i := range 15 {
		fmt.Fprintf(&loops, "for v%d in 1 2 3 4 5 6 7 8 9; do ", i)
	}
	for _, line := range []string{
		strings.Repeat("a", 65<<10), strings.Repeat("ls;", 5000), "bash -c " + strings.Repeat("'bash -c ", 10), strings.Repeat("eval ", 100) + "x", strings.Repeat("sudo ", 5000) + "ls",
		loops.String() + "ls" + strings.Repeat("; done", 15), strings.Repeat("watch ", 100) + "ls", strings.Repeat("x sh ", 5000) + "ls",
		strings.Repeat("(", 60_000), strings.Repeat("xargs ", 10_000), strings.Repeat("find -exec ", 5000), "ansible " + strings.Repeat("a.b,", 10_000),
		"for a in " + strings.Repeat("1 ", 4000) + "; do : " + strings.Repeat("{ ", 25_000) + "; done",
		strings.Repeat("for a in 1 2; do ", 2000) + "ls" + strings.Repeat("; done", 2000),
	} {
		if r := shell.Read(line, shell.Bash); r.Unresolved == "" {
			t.Errorf("a line of %d bytes is read as %q, want it given up", len(line), short(r))
		}
	}
}

func TestWhatStandsBehindTakesNothingAway(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3900, 4000, 4094, 4095} {
		line := strings.Repeat("ls\n", n) + "ssh db01 reboot"
		alone, both := shell.Read(line, shell.Bash), shell.Read(line+"\n\necho "+strings.Repeat("a", 40_000), shell.Bash)
		if what := laxer(both, alone); what != "" {
			t.Errorf("%d commands lack %s", n, what)
		}
	}
}

func TestWhatStandsInFrontTakesNothingAway(t *testing.T) {
	t.Parallel()
	const loop = "ssh web01 'for p in ssh; do $p db01 reboot; done'"
	for _, line := range []string{"IFS=:", "f() { :; }"} {
		if what := laxer(shell.Read(line+"\n"+loop, shell.Bash), shell.Read(loop, shell.Bash)); what != "" {
			t.Errorf("behind %s, %s lacks %s", line, loop, what)
		}
	}
}

func TestLineIsReadOneWay(t *testing.T) {
	t.Parallel()
	const line = "icm -com web01 -comp db01 { rm x }"
	first := shell.Read(line, shell.PowerShell)
	for range 50 {
		if diff := cmp.Diff(first, shell.Read(line, shell.PowerShell)); diff != "" {
			t.Fatalf("%s (-first +again):\n%s", line, diff)
		}
	}
}

func TestUnresolvedQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"ssh $H MARKER-x", "MARKER-x ssh web01 x", "curl -u MARKER-x:y -d x https://MARKER-x", "kubectl --token MARKER-x delete x", "export ZVM_PASSWORD=MARKER-x", "'MARKER-x"} {
		for _, dialect := range []shell.Dialect{shell.Bash, shell.PowerShell} {
			if r := shell.Read(line, dialect); strings.Contains(r.Unresolved, "MARKER-") {
				t.Errorf("%s: %q quotes the line", line, r.Unresolved)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]string{
		"plain":  "ls -la /tmp",
		"remote": `ssh -o BatchMode=yes root@web01 "sudo systemctl status nginx && df -h | grep data"`,
		"script": "set -e\nfor h in web01 web02 web03; do\n  scp app.tgz root@$h:/srv/\n  ssh root@$h 'cd /srv && tar xzf app.tgz && systemctl restart app'\ndone\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				shell.Read(line, shell.Bash)
			}
		})
	}
}
