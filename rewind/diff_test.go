package rewind_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// told is a difference in short: "+ added", "- removed", "~ changed by", "? unread".
func told(d *rewind.Difference) string {
	var lines []string
	for _, i := range d.Added {
		lines = append(lines, "+ "+i.Path)
	}
	for _, i := range d.Removed {
		lines = append(lines, "- "+i.Path)
	}
	for _, i := range d.Changed {
		by := strings.Join(i.By, ",")
		if !tellsAll() { // a hostile server may leave write times out
			by = strings.TrimPrefix(strings.Replace(by, ",written", "", 1), "written,")
		}
		lines = append(lines, "~ "+i.Path+" "+by)
	}
	for _, i := range d.Unread {
		lines = append(lines, "? "+i.Path)
	}
	return strings.Join(lines, "\n")
}

// twice guards web01, changes its guest, and guards it again.
func (w *world) twice(t *testing.T, change func(*zvmtest.Guest)) (before, after *rewind.Guard) {
	t.Helper()
	before = w.guard(t, "web01")
	change(w.web.Guest())
	return before, w.guard(t, "web01")
}

func TestDiffTellsWhatCameToDifferBetweenTwoGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	guest := w.web.Guest()
	for path, content := range map[string]string{
		"/etc/kept": "same", "/etc/size": "short", "/etc/bytes": "0123", "/etc/gone": "x", "/etc/old.d/a": "x", "/etc/turned": "file",
		"/elsewhere": "x",
	} {
		must(t, guest.WriteFile(path, []byte(content)))
	}
	must(t, guest.Symlink("kept", "/etc/link"))
	must(t, guest.WriteZeros("/etc/big", rewind.DefaultHashUpTo+1))
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		must(t, g.WriteFile("/etc/size", []byte("longer")))
		must(t, g.WriteFile("/etc/bytes", []byte("4567")))
		must(t, g.WriteFile("/etc/new.d/b", []byte("new")))
		must(t, g.WriteFile("/elsewhere", []byte("y")))
		for _, path := range []string{"/etc/gone", "/etc/old.d", "/etc/turned"} {
			must(t, g.Remove(path))
		}
		must(t, g.WriteFile("/etc/turned/c", []byte("now in a folder")))
	})
	d, err := w.Diff(t.Context(), before, after, "/etc")
	must(t, err)
	want := strings.Join([]string{
		"+ new.d", "+ new.d/b", "+ turned/c", "- gone", "- old.d", "- old.d/a",
		"~ bytes written,sha256", "~ size size,written,sha256", "~ turned type", "? big", "? link",
	}, "\n")
	if !tellsAll() {
		want = strings.ReplaceAll(strings.ReplaceAll(want, "bytes written,", "bytes "), "size,written", "size")
	}
	if diff := cmp.Diff(want, told(d)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if d.Same != 2 || !d.Complete { // kept and nginx/nginx.conf
		t.Errorf("same %d, complete %t, want 2 and true", d.Same, d.Complete)
	}
	if d.Before.ChangeID != before.ChangeID() || d.After.ChangeID != after.ChangeID() || d.VMID != vmid(w.web) ||
		!d.Before.Unmounted || !d.After.Unmounted || d.Before.FLRSessionID == d.After.FLRSessionID {
		t.Errorf("evidence: %+v", d)
	}
	w.nothingMounted(t)
}

func TestDiffMountsOneCheckpointAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithMountLimit(1))
	open, most := 0, 0
	_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
		switch e.Stage {
		case rewind.StageMounted:
			open++
		case rewind.StageUnmounted:
			open--
		}
		most = max(most, open)
	}))
	before, after := w.twice(t, func(*zvmtest.Guest) {})
	var guards []*rewind.Guard
	for _, g := range []*rewind.Guard{before, after} {
		again, err := s.Reprove(t.Context(), g.Record())
		must(t, err)
		guards = append(guards, again)
	}
	d, err := s.Diff(t.Context(), guards[0], guards[1], "/")
	must(t, err)
	if most != 1 || told(d) != "" || d.Same != 1 {
		t.Errorf("%d mounted at once, same %d:\n%s", most, d.Same, told(d))
	}
}

// What one side was not read far enough to hold is neither added nor removed.
func TestDiffSaysWhatItDidNotRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*testing.T, *zvmtest.Guest)
		change  func(*testing.T, *zvmtest.Guest)
		opts    []rewind.DiffOption
		want    string
	}{
		"a limit that only the later side reaches": {
			change: func(t *testing.T, g *zvmtest.Guest) {
				for n := range 5 {
					must(t, g.WriteFile(fmt.Sprintf("/data/first/%d", n), nil))
				}
			},
			opts: []rewind.DiffOption{rewind.AtMostItems(6)},
			want: "? first\n? second\n? second/kept",
		},
		"a folder that is denied later": {
			change: func(t *testing.T, g *zvmtest.Guest) { must(t, g.Deny("/data/second", "it is in use")) },
			want:   "? second\n? second/kept",
		},
		"a folder that is denied throughout": {
			prepare: func(t *testing.T, g *zvmtest.Guest) {
				must(t, g.Mkdir("/data/second/deep"))
				must(t, g.Deny("/data/second", "it is in use"))
			},
			change: func(t *testing.T, g *zvmtest.Guest) { must(t, g.WriteFile("/data/second/deep/new", nil)) },
			want:   "? second",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			guest := w.web.Guest()
			must(t, guest.WriteFile("/data/second/kept", []byte("x")))
			must(t, guest.Mkdir("/data/first"))
			if tt.prepare != nil {
				tt.prepare(t, guest)
			}
			before, after := w.twice(t, func(g *zvmtest.Guest) { tt.change(t, g) })
			d, err := w.Diff(t.Context(), before, after, "/data", tt.opts...)
			must(t, err)
			if diff := cmp.Diff(tt.want, told(d)); diff != "" || d.Complete {
				t.Errorf("complete %t, difference (-want +got):\n%s", d.Complete, diff)
			}
			for _, u := range d.Unread {
				if u.Reason == "" {
					t.Errorf("no reason for %s", u.Path)
				}
			}
		})
	}
}

func TestDiffOfAPathThatOnlyOneSideHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		must(t, g.WriteFile("/etc/app/conf", []byte("x")))
		must(t, g.Remove(nginxConf))
	})
	for path, want := range map[string]string{"/etc/app": "+ .\n+ conf", nginxConf: "- ."} {
		d, err := w.Diff(t.Context(), before, after, path)
		must(t, err)
		if diff := cmp.Diff(want, told(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	_, err := w.Diff(t.Context(), before, after, "/etc/none")
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("got %v, want *PathNotFoundError", err)
	}
	w.nothingMounted(t)
}

func TestDiffHoldsContentsOnRequestAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const late = "server { listen 443; }\n"
	before, after := w.twice(t, func(g *zvmtest.Guest) { must(t, g.WriteFile(nginxConf, []byte(late))) })
	for _, tt := range []struct {
		opts     []rewind.DiffOption
		old, now string
	}{
		{nil, "", ""},
		{[]rewind.DiffOption{rewind.WithContents(), rewind.FromVM("web01")}, goodConfig, late},
		{[]rewind.DiffOption{rewind.WithContents(), rewind.HashUpTo(1)}, "", ""},
	} {
		d, err := w.Diff(t.Context(), before, after, "/etc/nginx", tt.opts...)
		must(t, err)
		if len(d.Changed) != 1 || string(d.Changed[0].Before.Content) != tt.old || string(d.Changed[0].After.Content) != tt.now {
			t.Errorf("%d options: %+v", len(tt.opts), d.Changed)
		}
	}
}

func TestDiffTellsAFileThatWasOnlyWrittenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.twice(t, func(g *zvmtest.Guest) { must(t, g.WriteFile(nginxConf, []byte(goodConfig))) })
	d, err := w.Diff(t.Context(), before, after, nginxConf, rewind.WithContents())
	must(t, err)
	if !tellsAll() && d.Same == 1 {
		return
	}
	if len(d.Changed) != 1 {
		t.Fatalf("got %+v", d)
	}
	c := d.Changed[0]
	if diff := cmp.Diff([]string{"written"}, c.By); diff != "" || c.Before.SHA256 != c.After.SHA256 || c.Before.Content != nil || c.After.Content != nil {
		t.Errorf("got %+v", c)
	}
}

func TestDiffRefusesWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sim.AddVM("db01", w.sim.AddVPG("db", zvmtest.VPGConfig{}))
	web, db := w.guard(t, "web01"), w.guard(t, "db01")
	for name, diff := range map[string]func() (*rewind.Difference, error){
		"two VMs":           func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, db, "/etc") },
		"no guard":          func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, &rewind.Guard{}, "/etc") },
		"a path with ..":    func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, web, "/etc/../x") },
		"no items":          func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, web, "/", rewind.AtMostItems(0)) },
		"a negative size":   func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, web, "/", rewind.HashUpTo(-1)) },
		"an option of none": func() (*rewind.Difference, error) { return w.Diff(t.Context(), web, web, "/", nil) },
	} {
		if d, err := diff(); err == nil || d != nil {
			t.Errorf("%s: got %v, %v", name, d, err)
		}
	}
	if n := w.sim.Count("POST", "/v1/flrs"); n != 0 {
		t.Errorf("%d mounts sent", n)
	}
}

func TestLaw5_DiffSaysWhatItLeavesOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	_, s := connect(t, w.sim, rewind.WithLimits(rewind.Limits{Unmount: 100 * time.Millisecond}))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	_, err = s.Diff(t.Context(), g, g, "/etc")
	var open *rewind.LeftOpenError
	if !errors.As(err, &open) || len(w.sim.LiveFLRSessions()) != 1 {
		t.Errorf("got %v and %d sessions, want a *LeftOpenError and no second mount", err, len(w.sim.LiveFLRSessions()))
	}
}

func TestDiffNowComparesWithAGuardThatItMakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.guard(t, "web01")
	must(t, w.web.Guest().WriteFile(nginxConf, []byte("edited by hand")))
	d, err := w.DiffNow(t.Context(), before, "/etc/nginx", rewind.WithContents(), rewind.InVPG("web-local"))
	must(t, err)
	if len(d.Changed) != 1 || string(d.Changed[0].After.Content) != "edited by hand" || d.Before.ChangeID != before.ChangeID() {
		t.Errorf("got %+v", d)
	}
	now, err := w.FindGuard(t.Context(), d.After.ChangeID, "web01")
	must(t, err)
	if n := len(now.Record().Checkpoints); n != 2 || !strings.Contains(d.After.Tag, before.ChangeID()) {
		t.Errorf("the guard that was made has %d checkpoints, the first under %q", n, d.After.Tag)
	}
	w.nothingMounted(t)
}

func TestDiffNowTagsNothingForWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.guard(t, "web01")
	for name, diff := range map[string]func() (*rewind.Difference, error){
		"no guard":       func() (*rewind.Difference, error) { return w.DiffNow(t.Context(), &rewind.Guard{}, "/etc") },
		"not local":      func() (*rewind.Difference, error) { return w.DiffNow(t.Context(), g, "/etc", rewind.InVPG("web-dr")) },
		"a path with ..": func() (*rewind.Difference, error) { return w.DiffNow(t.Context(), g, "/etc/../x") },
		"no items":       func() (*rewind.Difference, error) { return w.DiffNow(t.Context(), g, "/", rewind.AtMostItems(0)) },
		"pinned first":   func() (*rewind.Difference, error) { return w.DiffNow(t.Context(), g, "/", rewind.PinFirst()) },
	} {
		if d, err := diff(); err == nil || d != nil {
			t.Errorf("%s: got %v, %v", name, d, err)
		}
	}
	if n := len(taggedIn(w.local)); n != 1 {
		t.Errorf("%d tags in the journal, want the guard's alone", n)
	}
}

func TestDiffNowThatFailsNamesTheGuardThatItMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.DiffNow(t.Context(), w.guard(t, "web01"), "/etc/none")
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want *PathNotFoundError", err)
	}
	_, id, _ := strings.Cut(err.Error(), "pinned first, as change ")
	if _, err := w.FindGuard(t.Context(), id, "web01"); err != nil {
		t.Errorf("the error names %q: %v", id, err)
	}
}

func TestDifferenceJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(rewind.Difference{})
	must(t, err)
	want := "added after before changed complete path removed same unread vm vmId"
	if diff := cmp.Diff(want, strings.Join(keys(t, data), " ")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
