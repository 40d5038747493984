package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// treeWorld is a world whose change c1 has a folder of which not all can come back.
func treeWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.write("/srv/site/index.html", "hello\n")
	w.write("/srv/site/img/a.svg", "<svg/>")
	if err := w.web01.Guest().Symlink("index.html", "/srv/site/link"); err != nil {
		t.Fatal(err)
	}
	w.guard()
	return w
}

func TestRecoverBringsAFolderBackAndListsWhatItLeftOut(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	dir := t.TempDir()
	dest := filepath.Join(dir, "text")
	text := w.run("recover", "--change", "c1", "/srv/site", "-o", dest, "--recursive")
	text.want(t, 3, "web01 was not touched: copy the files back yourself\n")
	golden(t, "recover-tree.txt", strings.ReplaceAll(steady(text.out), dest, "DEST"))
	for name, want := range map[string]string{"index.html": "hello\n", "img/a.svg": "<svg/>"} {
		if got, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(dest); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder that was made: %v, %v", info, err)
	}
	dest = t.TempDir()
	document := w.run("recover", "--change", "c1", "/srv/site/", "-o", dest, "-r", "--json")
	document.want(t, 3)
	golden(t, "recover-tree.json", strings.ReplaceAll(steady(document.out), dest, "DEST"))
	if document.err != "" {
		t.Errorf("words on stderr:\n%s", document.err)
	}
	w.mustRun("recover", "--change", "c1", "/srv/site/img", "-o", filepath.Join(dir, "whole"), "-r")
	if live := w.sim.LiveFLRSessions(); len(live) > 0 {
		t.Errorf("left open: %v", live)
	}
}

func TestRecoverOfAFolderReplacesNothingAndTellsWhatArrived(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	dest := t.TempDir()
	mine := filepath.Join(dest, "img", "a.svg")
	if err := os.Mkdir(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.run("recover", "--change", "c1", "/srv/site", "-o", dest, "-r", "--json")
	o.want(t, 1, "exists", "nothing was replaced")
	var tree struct{ Files []struct{ Dest string } }
	if err := json.Unmarshal([]byte(o.out), &tree); err != nil || len(tree.Files) != 1 || tree.Files[0].Dest != "index.html" {
		t.Errorf("stdout tells %+v, %v", tree, err)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "mine" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestRecoverOfAFolderThatIsNotThereMakesNone(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	dir := t.TempDir()
	w.run("recover", "--change", "c1", "/srv/none", "-o", filepath.Join(dir, "made"), "-r").want(t, 5)
	w.run("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(dir, "made"), "-r").want(t, 7, "not a folder")
	w.run("recover", "--change", "c1", "/srv/site", "-o", filepath.Join(dir, "none", "made"), "-r").want(t, 1, "none")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestRecoverOfAFolderRefusesWhatIsNoneBeforeAskingTheZVM(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(w.sim.Requests())
	recover := []string{"recover", "--change", "c1", "/srv/site", "-r", "-o"}
	w.run(append(recover, file)...).want(t, 64, "is not a folder")
	w.run(append(recover, "-")...).want(t, 64, "is not a folder")
	w.run(append(recover, t.TempDir(), "--force")...).want(t, 64, "nothing is replaced")
	if n := len(w.sim.Requests()); n != before {
		t.Errorf("%d requests for a destination that cannot be", n-before)
	}
}

// What cannot be closed costs nothing that has arrived, and says how it is closed.
func TestRecoverSaysHowToBringAFolderOrAFileBack(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	dest := filepath.Join(t.TempDir(), "dest")
	w.run("recover", "--change", "c1", "/srv/site", "-o", dest).want(t, 7, "it is a folder", "--recursive brings it back with all below it")
	w.run("recover", "--change", "c1", "/srv/site/index.html", "-o", dest, "-r").want(t, 7, "it is not a folder", "leave --recursive out")
	if _, err := os.Lstat(dest); err == nil {
		t.Error("something was written")
	}
}

func TestAFolderThatIsBackStaysWhenItsSessionCannotBeClosed(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	w.sim.On("DELETE", "/v1/flrs/*").Status(403, `{"Message":"scripted"}`).Always()
	dest := t.TempDir()
	o := w.run("recover", "--change", "c1", "/srv/site", "-o", dest, "-r", "--json")
	o.want(t, 9, "zerto-rewind sweep --apply", `"leftOpen"`)
	var tree struct {
		FLRSessionID string
		Unmounted    bool
		Skipped      []any
	}
	live := w.sim.LiveFLRSessions()
	if err := json.Unmarshal([]byte(o.out), &tree); err != nil || tree.Unmounted || len(tree.Skipped) != 1 || len(live) != 1 {
		t.Errorf("stdout tells %+v, %v; %d sessions live", tree, err, len(live))
	}
	if !strings.Contains(o.err, tree.FLRSessionID) {
		t.Errorf("stderr does not name session %s:\n%s", tree.FLRSessionID, o.err)
	}
	if _, err := os.Stat(filepath.Join(dest, "index.html")); err != nil {
		t.Error(err)
	}
}

func TestPinFirstGuardsTheVMBeforeAnythingIsMounted(t *testing.T) {
	t.Parallel()
	w := treeWorld(t)
	for _, args := range [][]string{{"/etc/hosts", "-o", filepath.Join(t.TempDir(), "hosts")}, {"/srv/site/img", "-o", t.TempDir(), "-r"}} {
		w.sim.Advance(2 * time.Minute) // an insert that has just ended would be waited for by the next one
		args = append([]string{"recover", "--change", "c1", "--pin-first"}, args...)
		before := len(w.local.TaggedCheckpoints())
		o := w.mustRun(append(args, "--json")...)
		var got struct {
			Pinned struct{ ChangeID string }
			Stages []struct{ Stage string }
		}
		if err := json.Unmarshal([]byte(o.out), &got); err != nil || got.Pinned.ChangeID == "" {
			t.Fatalf("stdout: %v\n%s", err, o.out)
		}
		var stages []string
		for _, s := range got.Stages {
			stages = append(stages, s.Stage)
		}
		if diff := cmp.Diff([]string{"check", "pin", "mount", "browse", "download", "unmount"}, stages); diff != "" {
			t.Errorf("stages (-want +got):\n%s", diff)
		}
		tagged := w.local.TaggedCheckpoints()
		if len(tagged) != before+1 || !slices.ContainsFunc(tagged, func(c zvmtest.Checkpoint) bool { return strings.Contains(c.Tag, "change="+got.Pinned.ChangeID) }) {
			t.Errorf("%d tagged checkpoints after %d, none of change %s", len(tagged), before, got.Pinned.ChangeID)
		}
	}
	w.sim.Advance(2 * time.Minute)
	o := w.mustRun("recover", "--change", "c1", "/etc/hosts", "-o", filepath.Join(t.TempDir(), "hosts"), "--pin-first")
	if !strings.Contains(o.out, "pinned first  change ") {
		t.Errorf("stdout:\n%s", o.out)
	}
}
