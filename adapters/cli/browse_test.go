package cli_test

import (
	"strings"
	"testing"
)

func TestALargeFolderIsPrintedInPagesUnderOneTitle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.web01.Guest().WriteManyFiles("/many", 2500); err != nil {
		t.Fatal(err)
	}
	w.guard()
	lines := strings.Split(strings.TrimSuffix(w.mustRun("browse", "--change", "c1", "/many").out, "\n"), "\n")
	if len(lines) != 2501 || !strings.HasPrefix(lines[0], "TYPE") || !strings.HasSuffix(lines[2500], "file-002499.txt") {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if n := strings.Count(strings.Join(lines, "\n"), "TYPE"); n != 1 {
		t.Errorf("%d titles", n)
	}
}
