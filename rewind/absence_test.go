package rewind_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// Who takes a file for one that was not there removes it to put that back.
func TestLaw3_NotToBeFoundIsEvidenceOnlyWhereThePathHasToLead(t *testing.T) {
	t.Parallel()
	ext4 := func(root, point string) zvmtest.Partition {
		return zvmtest.Partition{Root: root, MountPoint: point, FS: zvmtest.Ext4}
	}
	with := func(more ...zvmtest.Partition) zvmtest.Layout { return append(zvmtest.LinuxLayout(), more...) }
	root := []string{"/etc/app/other", "/proc/1", "/sys/1", "/dev/1", "/app.conf"}
	onRoot := func(files ...string) []string { return append(slices.Clip(root), files...) }
	varAlone := disks{
		layout: zvmtest.Layout{ext4("Volume2-Ext4", "/var"), {Root: "Volume3-XFS", MountPoint: "/home", FS: zvmtest.XFS}},
		files:  []string{"/var/log/x", "/home/ann"},
	}
	linux := disks{layout: zvmtest.LinuxLayout(), files: root}
	data := disks{layout: with(ext4("Volume2-Ext4", "/data")), files: onRoot("/data/app.conf", "/data/sub/x")}
	unlisted := disks{layout: zvmtest.LinuxLayout(), folders: []string{"/var/lib/db"}, files: onRoot("/var/lib/other")}
	linked := disks{layout: zvmtest.LinuxLayout(), files: onRoot("/usr/bin/tool"), links: map[string]string{"/bin": "usr/bin"}}
	windows := disks{layout: zvmtest.WindowsLayout(), files: []string{`C:\app\Web.config`}, folders: []string{`C:\mounted`}}
	drives := disks{
		layout: append(zvmtest.WindowsLayout(), zvmtest.Partition{Root: "D", MountPoint: "D:", FS: zvmtest.NTFS}),
		files:  []string{`C:\app\Web.config`, `D:\none`},
	}
	for _, tt := range []struct {
		name  string
		guest disks
		path  string
		on    string   // the partition that is named
		gone  bool     // known not to be there
		hits  []string // in doubt, and what it may be
	}{
		{name: "gone from a folder of the root", guest: linux, path: "/etc/app/app.conf", gone: true},
		{name: "its folder gone from the root", guest: linux, path: "/etc/new/sub/app.conf", gone: true},
		{name: "nothing of it on the root", guest: linux, path: "/new/app.conf", gone: true},
		{name: "below a file", guest: linux, path: "/etc/app/other/x", gone: true},
		{name: "in a folder of what is mounted", guest: data, path: "/data/sub/y", gone: true},
		{name: "in the folder of a partition that is not listed", guest: unlisted, path: "/var/lib/db/table"},
		{name: "in an empty folder of the partition that is named", guest: unlisted, path: "/var/lib/db/table", on: "Volume1-Ext4", gone: true},
		{name: "in an empty folder, the partition first", guest: unlisted, path: "Volume1-Ext4/var/lib/db/table", gone: true},
		{
			name: "in an empty folder of the root, and the name of a partition", path: "/data/db/table",
			guest: disks{layout: with(ext4("data", "/srv")), folders: []string{"/data/db"}, files: onRoot("/srv/x")},
		},
		{name: "behind a link", guest: linked, path: "/bin/tool"},
		{name: "behind a link of the partition that is named", guest: linked, path: "/bin/tool", on: "Volume1-Ext4"},
		{name: "its end on another partition", guest: data, path: "/etc/app/app.conf", hits: []string{"Volume2-Ext4/app.conf"}},
		{name: "its end on another partition than the one that is named", guest: data, path: "/etc/app/app.conf", on: "Volume1-Ext4", gone: true},
		{
			name: "on a mount point that hides files", path: "/var/log/new", hits: []string{"Volume2-Ext4/log/new"},
			guest: disks{layout: with(ext4("Volume2-Ext4", "/var")), hidden: []string{"/var/log/old"}, files: onRoot("/var/log/new")},
		},
		{
			name: "on a mount point that hides other folders", path: "/var/new/x", hits: []string{"Volume2-Ext4/new/x"},
			guest: disks{layout: with(ext4("Volume2-Ext4", "/var")), hidden: []string{"/var/old"}, files: onRoot("/var/new/x")},
		},
		{
			name: "below a folder named as its mount point", path: "/data/data/x", hits: []string{"Volume2-Ext4/data/x"},
			guest: disks{layout: with(ext4("Volume2-Ext4", "/data")), files: onRoot("/data/data/x")},
		},
		{name: "the root not listed", guest: varAlone, path: "/var/log/x", hits: []string{"Volume2-Ext4/log/x"}},
		{name: "gone, the root not listed", guest: varAlone, path: "/var/log/y"},
		{name: "named as where it is mounted", guest: varAlone, path: "/var/log/x", on: "Volume2-Ext4", hits: []string{"Volume2-Ext4/log/x"}},
		{name: "the root not listed, its partition first", guest: varAlone, path: "Volume2-Ext4/log/y", gone: true},
		{name: "gone from a drive", guest: windows, path: `C:\app\none`, gone: true},
		{name: "its folder gone from a drive", guest: windows, path: `C:\none\none`, gone: true},
		{name: "gone from a drive, its end on another", guest: drives, path: `C:\app\none`, gone: true},
		{name: "in an empty folder of a drive", guest: windows, path: `C:\mounted\x`},
		{name: "on a drive that is not listed", guest: windows, path: `D:\app\none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.guest.build(t, w.web.Guest())
			var opts []rewind.PlanOption
			if tt.on != "" {
				opts = append(opts, rewind.OnPartition(tt.on))
			}
			p, err := w.Plan(t.Context(), w.guard(t, "web01"), tt.path, rewind.LiveBytes(nil), opts...)
			var doubt *rewind.AmbiguousPathError
			switch {
			case tt.gone && (err != nil || p.Pinned.Exists):
				t.Errorf("got %+v, %v, want it not to be there", p, err)
			case !tt.gone && !errors.As(err, &doubt):
				t.Errorf("got %+v, %v, want *AmbiguousPathError", p, err)
			case !tt.gone && !slices.Equal(doubt.Hits, tt.hits):
				t.Errorf("hits (-want +got):\n%s", cmp.Diff(tt.hits, doubt.Hits))
			}
			w.nothingMounted(t)
		})
	}
}

func TestLaw3_APartitionThatCannotBeReadMayHoldThePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().AddPartition("Volume2-Ext4", "/var", zvmtest.Ext4))
	for _, f := range []string{"/etc/hosts", "/var/etc/hosts", "/var/etc/nginx/other"} {
		must(t, w.web.Guest().WriteFile(f, []byte(f)))
	}
	s := w.tampered(t, rows(t, closing("Volume1-Ext4")))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	for path, hits := range map[string][]string{"/etc/hosts": {"Volume2-Ext4/etc/hosts"}, nginxConf: nil} {
		p, err := s.Plan(t.Context(), g, path, rewind.LiveBytes(nil))
		var ambiguous *rewind.AmbiguousPathError
		if !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.Hits, hits) {
			t.Errorf("%s: got %+v, %v", path, p, err)
		}
	}
	if p, err := s.Plan(t.Context(), g, nginxConf, rewind.LiveBytes(nil), rewind.OnPartition("Volume1-Ext4")); err == nil {
		t.Errorf("on the partition itself: got %+v", p)
	}
}

// closing shows one item as one that cannot be looked into.
func closing(path string) func([]map[string]any) []map[string]any {
	return func(rows []map[string]any) []map[string]any {
		for _, row := range rows {
			its := false
			for field, value := range row {
				its = its || strings.EqualFold(field, "Path") && value == path
			}
			for field := range row {
				if its && strings.EqualFold(field, "IsBrowsable") {
					row[field] = false
				}
			}
		}
		return rows
	}
}

// Where the path leads at one checkpoint tells in which folder it would be at the other.
func TestADoubtIsSettledByTheOtherGuard(t *testing.T) {
	t.Parallel()
	w := newSlowWorld(t)
	must(t, w.web.Guest().AddPartition("Volume2-Ext4", "/data", zvmtest.Ext4))
	must(t, w.web.Guest().WriteFile("/data/sub/x", []byte("x")))
	before, after := w.twice(t, func(g *zvmtest.Guest) {
		w.sim.Advance(2 * time.Minute)
		must(t, g.WriteFile("/data/made", []byte("made")))
	})
	live := rewind.LiveBytes([]byte("made"))
	var doubt *rewind.AmbiguousPathError
	if p, err := w.Plan(t.Context(), before, "/data/made", live); !errors.As(err, &doubt) {
		t.Errorf("without a later guard: %+v, %v", p, err)
	}
	p, err := w.Plan(t.Context(), before, "/data/made", live, rewind.ChangedBy(after))
	if err != nil || p.Effect != rewind.EffectUndoes || p.Pinned.Exists {
		t.Errorf("with one: %+v, %v", p, err)
	}
	if p, err := w.Plan(t.Context(), before, "/data/none", rewind.LiveContent{}, rewind.ChangedBy(after)); !errors.As(err, &doubt) {
		t.Errorf("at neither: %+v, %v", p, err)
	}
	d, err := w.Diff(t.Context(), before, after, "/data/made")
	must(t, err)
	if diff := cmp.Diff("+ .", told(d)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	w.nothingMounted(t)
}

// A partition that is mounted between two guards holds what the first one could not see.
func TestLaw3_DiffDoesNotTakeWhatItCannotSeeForGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().AddPartition("Volume2-Ext4", "/data", zvmtest.Ext4))
	must(t, w.web.Guest().WriteFile("/data/sub/x", []byte("x")))
	g := w.guard(t, "web01")
	var hide atomic.Bool
	s := w.tampered(t, func(r *http.Request, body []byte) []byte {
		if hide.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/browse") {
			return rows(t, closing("Volume2-Ext4"))(r, body)
		}
		if r.Method == http.MethodDelete {
			hide.Store(true)
		}
		return body
	})
	again, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	g, err = s.FindGuard(t.Context(), g.ChangeID(), "web01")
	must(t, err)
	d, err := s.Diff(t.Context(), g, again, "/data/sub/x")
	var doubt *rewind.AmbiguousPathError
	if !hide.Load() || !errors.As(err, &doubt) {
		t.Errorf("got %+v, %v, want *AmbiguousPathError", d, err)
	}
}
