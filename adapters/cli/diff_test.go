package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// changed is a world whose guest came to differ after change c1.
func changed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.write("/etc/old", "gone soon\n")
	w.write("/etc/kept", "kept\n")
	if err := w.web01.Guest().Symlink("kept", "/etc/link"); err != nil {
		t.Fatal(err)
	}
	w.guard()
	w.sim.Advance(2 * time.Minute)
	w.write("/etc/hosts", "127.0.0.1 elsewhere\n")
	w.write("/etc/new", "new\n")
	if err := w.web01.Guest().Remove("/etc/old"); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestDiff(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.mustRun("protect", "web01", "--action", "look again", "--change", "c2")
	text := w.mustRun("diff", "--change", "c1", "--to", "c2", "/etc")
	golden(t, "diff.txt", steady(text.out))
	document := w.mustRun("diff", "--change", "c1", "--to", "c2", "--vm", "web01", "/etc", "--json")
	golden(t, "diff.json", steady(document.out))
	if text.err != "" || document.err != "" {
		t.Errorf("words on stderr:\n%s%s", text.err, document.err)
	}
	if o := w.mustRun("diff", "--change", "c1", "--to", "c1", "/etc"); !strings.Contains(o.out, "no difference seen\n") {
		t.Errorf("stdout:\n%s", o.out)
	}
	if live := w.sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
}

func TestDiffWithoutALaterChangeGuardsTheVMAfterSayingSo(t *testing.T) {
	t.Parallel()
	w := changed(t)
	w.run("diff", "--change", "c1", "--to", "none", "/etc").want(t, 5, "none")
	if n := len(w.local.TaggedCheckpoints()); n != 1 {
		t.Fatalf("%d tagged checkpoints before there was anything to guard", n)
	}
	o := w.mustRun("diff", "--change", "c1", "/etc")
	if n := len(w.local.TaggedCheckpoints()); n != 2 || o.err != "guarding web01 as it is now, to compare with\n" {
		t.Errorf("%d tagged checkpoints, stderr:\n%s", n, o.err)
	}
	for _, line := range []string{"added", "removed", "changed"} {
		if !strings.Contains(o.out, "\n"+line+" ") {
			t.Errorf("stdout lacks %q:\n%s", line, o.out)
		}
	}
	w.sim.Advance(2 * time.Minute)
	if o := w.mustRun("diff", "--change", "c1", "/etc", "--json"); !json.Valid([]byte(o.err)) || !strings.Contains(o.err, "guarding") {
		t.Errorf("stderr with --json:\n%s", o.err)
	}
}

func TestDiffHelp(t *testing.T) {
	t.Parallel()
	help, _, _ := strings.Cut(emptyWorld(t).mustRun("diff", "--help").out, "\nGlobal Flags:")
	golden(t, "diff-help.txt", help)
}
