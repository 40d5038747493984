package rewind_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// disks is a guest for a table: each file's content is its own path, and that of a hidden one "hidden" and its path.
type disks struct {
	layout zvmtest.Layout
	hidden []string // written before the last partition is mounted
	files  []string

	folders []string
	links   map[string]string // path to target
}

func (d disks) build(t *testing.T, guest *zvmtest.Guest) {
	t.Helper()
	last := len(d.layout)
	if len(d.hidden) > 0 {
		last--
	}
	must(t, guest.SetLayout(d.layout[:last]))
	for _, f := range d.hidden {
		must(t, guest.WriteFile(f, []byte("hidden "+f)))
	}
	for _, p := range d.layout[last:] {
		must(t, guest.AddPartition(p.Root, p.MountPoint, p.FS))
	}
	for _, f := range d.files {
		must(t, guest.WriteFile(f, []byte(f)))
	}
	for _, f := range d.folders {
		must(t, guest.Mkdir(f))
	}
	for path, target := range d.links {
		must(t, guest.Symlink(target, path))
	}
}

func TestLaw3_AGuestPathMeansOneFileOrNone(t *testing.T) {
	t.Parallel()
	mounted := func(root, point string) zvmtest.Partition {
		return zvmtest.Partition{Root: root, MountPoint: point, FS: zvmtest.Ext4}
	}
	with := func(layout zvmtest.Layout, more ...zvmtest.Partition) zvmtest.Layout { return append(layout, more...) }
	linux := disks{layout: zvmtest.LinuxLayout(), files: []string{
		"/etc/hosts", "/etc/app/other", "/app.conf", "/srv/Cyber 2077/Données/100%.txt", "/a%41", "/Upper", "/C/c.txt",
	}}
	boot := disks{layout: zvmtest.NumberedLayout(), files: []string{"/boot/grub/grub.cfg", "/etc/hosts", "/grub/only-root"}}
	volumes := disks{
		layout: with(zvmtest.LinuxLayout(), mounted("Volume2-Ext4", "/var")),
		files: []string{
			"/etc/hosts", "/etc/app/other", "/var/log/syslog", "/var/both", "/both", "/log/only-root", "/srv/log/mine",
			"/var/app.conf", "/var/app/app.conf", "/var/etc/app/app.conf", "/var/hosts", "/opt/x", "/var/x",
		},
	}
	whole := volumes // with a "/" that can be told from the other partition
	whole.files = append(slices.Clip(volumes.files), "/proc/1", "/sys/1", "/dev/1")
	lvm := disks{
		layout: with(zvmtest.LinuxLayout(), mounted("vg-var", "/var"), mounted("vg-log", "/var/log"), mounted("vg-home", "/home"),
			zvmtest.Partition{Root: "EFI-FAT32", MountPoint: "/boot/efi"}),
		files: []string{"/etc/hosts", "/var/lib/state", "/var/log/app/today", "/home/ann/notes", "/boot/vmlinuz", "/boot/efi/EFI/boot.cfg"},
	}
	moved := disks{
		layout: with(zvmtest.LinuxLayout(), mounted("Volume2-Ext4", "/var")),
		hidden: []string{"/var/log/syslog", "/var/log/old"},
		files:  []string{"/var/log/syslog", "/var/log/new"},
	}
	nested := disks{layout: with(zvmtest.LinuxLayout(), mounted("Volume2-Ext4", "/data")), files: []string{"/etc/hosts", "/data/data/x", "/data/other/y"}}
	wholeNested := nested
	wholeNested.files = append(slices.Clip(nested.files), "/proc/1", "/sys/1", "/dev/1")
	many := disks{layout: zvmtest.ManyDisksLayout(), files: []string{"/etc/hosts", "/var/log/syslog", "/srv/data"}}
	windows := disks{layout: zvmtest.WindowsLayout(), files: []string{`C:\inetpub\Web.config`, `C:\Data\Q1 Report.xlsx`}}
	colon := disks{layout: zvmtest.Layout{{Root: "C:", MountPoint: "C:", FS: zvmtest.NTFS}}, files: []string{`C:\inetpub\Web.config`}}
	mixed := disks{
		layout: zvmtest.Layout{{Root: "C", MountPoint: "C:", FS: zvmtest.NTFS}, {Root: "Volume2-NTFS", MountPoint: "D:", FS: zvmtest.NTFS}},
		files:  []string{`C:\twice.txt`, `D:\twice.txt`},
	}
	oldWindows := disks{layout: zvmtest.WindowsVolumeLayout(), files: []string{
		`C:\inetpub\Web.config`, `D:\only-d.txt`, `C:\twice.txt`, `D:\twice.txt`, `C:\Data\c.txt`, `D:\Data\d.txt`,
	}}
	for _, tt := range []struct {
		name   string
		guest  disks
		path   string
		want   string   // the file that is found
		hits   []string // ambiguous
		failed bool     // none, or refused
	}{
		{name: "absolute", guest: linux, path: "/etc/hosts", want: "/etc/hosts"},
		{name: "doubled and trailing slashes", guest: linux, path: "//etc///hosts/", want: "/etc/hosts"},
		{name: "a dot", guest: linux, path: "/etc/./hosts", want: "/etc/hosts"},
		{name: "partition first", guest: linux, path: "Volume1-Ext4/etc/hosts", want: "/etc/hosts"},
		{name: "partition first, rooted", guest: linux, path: "/Volume1-Ext4/etc/hosts", want: "/etc/hosts"},
		{name: "blanks, accents and percent", guest: linux, path: "/srv/Cyber 2077/Données/100%.txt", want: "/srv/Cyber 2077/Données/100%.txt"},
		{name: "a literal escape", guest: linux, path: "/a%41", want: "/a%41"},
		{name: "another case on Linux", guest: linux, path: "/upper", failed: true},
		{name: "dots upwards", guest: linux, path: "/etc/../etc/hosts", failed: true},
		{name: "missing", guest: linux, path: "/etc/nothing", failed: true},
		{name: "a file taken for a folder", guest: linux, path: "/etc/hosts/x", failed: true},
		{name: "gone from its folder, and its name elsewhere", guest: linux, path: "/etc/app/app.conf", failed: true},
		{name: "its folder gone, and its name elsewhere", guest: linux, path: "/etc/old/app.conf", failed: true},
		{name: "no folder of it there, and its name elsewhere", guest: linux, path: "/opt/old/app.conf", failed: true},
		{name: "a drive letter on Linux", guest: linux, path: `C:\etc\hosts`, failed: true},

		{name: "/boot on its own", guest: boot, path: "/boot/grub/grub.cfg", want: "/boot/grub/grub.cfg"},
		{name: "beside /boot", guest: boot, path: "/etc/hosts", want: "/etc/hosts"},
		{name: "an index and a label first", guest: boot, path: "partition#1 Ext3/etc/hosts", want: "/etc/hosts"},
		{name: "missing in /boot, and on the root", guest: boot, path: "/boot/grub/only-root", failed: true},

		{name: "below a mount point", guest: volumes, path: "/var/log/syslog", want: "/var/log/syslog"},
		{name: "missing below a mount point, and on the root", guest: volumes, path: "/var/log/only-root", failed: true},
		{name: "below a mount point, and its name on the root", guest: volumes, path: "/var/both", want: "/var/both"},
		{name: "settled by its partition", guest: volumes, path: "Volume2-Ext4/both", want: "/var/both"},
		{name: "a partition that is named is not left", guest: volumes, path: "Volume1-Ext4/var/log/syslog", failed: true},
		{name: "at the top of two partitions", guest: volumes, path: "/both", hits: []string{"Volume1-Ext4/both", "Volume2-Ext4/both"}},
		{name: "gone from the root, whole on another partition", guest: volumes, path: "/etc/app/app.conf", hits: []string{"Volume2-Ext4/etc/app/app.conf"}},
		{name: "gone from the root, its end on another partition", guest: volumes, path: "/srv/log/syslog", failed: true},
		{name: "on one of two that have its folder", guest: volumes, path: "/etc/hosts", hits: []string{"Volume1-Ext4/etc/hosts"}},
		{name: "in a folder that only the root has", guest: volumes, path: "/srv/log/mine", want: "/srv/log/mine"},
		{name: "its end on the partition of a mount point", guest: volumes, path: "/opt/x", hits: []string{"Volume1-Ext4/opt/x", "Volume2-Ext4/x"}},

		{name: "on the one root", guest: whole, path: "/etc/hosts", want: "/etc/hosts"},
		{name: "at the top of the one root", guest: whole, path: "/both", want: "/both"},
		{name: "gone from the one root, whole on another partition", guest: whole, path: "/etc/app/app.conf", failed: true},
		{name: "below a mount point of the one root", guest: whole, path: "/var/log/syslog", want: "/var/log/syslog"},

		{name: "a volume in a volume", guest: lvm, path: "/var/log/app/today", want: "/var/log/app/today"},
		{name: "the outer volume", guest: lvm, path: "/var/lib/state", want: "/var/lib/state"},
		{name: "another volume", guest: lvm, path: "/home/ann/notes", want: "/home/ann/notes"},
		{name: "a volume of another kind", guest: lvm, path: "/boot/efi/EFI/boot.cfg", want: "/boot/efi/EFI/boot.cfg"},
		{name: "another case on FAT", guest: lvm, path: "/boot/efi/efi/BOOT.cfg", want: "/boot/efi/EFI/boot.cfg"},
		{name: "missing in a volume in a volume", guest: lvm, path: "/var/log/app/tomorrow", failed: true},

		{name: "hidden below a mount point, and on it", guest: moved, path: "/var/log/syslog", hits: []string{"Volume1-Ext4/var/log/syslog", "Volume2-Ext4/log/syslog"}},
		{name: "on a mount point that hides its folder", guest: moved, path: "/var/log/new", hits: []string{"Volume2-Ext4/log/new"}},
		{name: "on a mount point that hides its folder, under the partition", guest: moved, path: "Volume2-Ext4/log/new", want: "/var/log/new"},
		{name: "below a folder named as its mount point", guest: nested, path: "/data/data/x", hits: []string{"Volume2-Ext4/data/x"}},
		{name: "beside a folder named as its mount point", guest: nested, path: "/data/other/y", hits: []string{"Volume2-Ext4/other/y"}},
		{name: "below no such folder", guest: nested, path: "/data/x", hits: []string{"Volume2-Ext4/data/x"}},
		{name: "below a folder named as its mount point of the one root", guest: wholeNested, path: "/data/data/x", hits: []string{"Volume2-Ext4/data/x"}},
		{name: "below no such folder of the one root", guest: wholeNested, path: "/data/x", failed: true},

		{name: "partitions below disks", guest: many, path: "/etc/hosts", want: "/etc/hosts"},
		{name: "a mount point below disks", guest: many, path: "/var/log/syslog", want: "/var/log/syslog"},
		{name: "a mount point on another disk", guest: many, path: "/srv/data", want: "/srv/data"},
		{name: "disk and partition first", guest: many, path: "Disk1/Volume1-XFS/data", want: "/srv/data"},

		{name: "drive letter", guest: windows, path: `C:\inetpub\Web.config`, want: `C:\inetpub\Web.config`},
		{name: "another case on Windows", guest: windows, path: "c:/INETPUB/web.CONFIG", want: `C:\inetpub\Web.config`},
		{name: "drive as partition", guest: windows, path: "C/Data/Q1 Report.xlsx", want: `C:\Data\Q1 Report.xlsx`},
		{name: "a root that is spelt with a colon", guest: colon, path: `C:\inetpub\web.config`, want: `C:\inetpub\Web.config`},
		{name: "that root first", guest: colon, path: "C:/inetpub/Web.config", want: `C:\inetpub\Web.config`},
		{name: "the root of the letter, not one without", guest: mixed, path: `C:\twice.txt`, want: `C:\twice.txt`},
		{name: "a letter that no root bears, of one without", guest: mixed, path: `E:\twice.txt`, want: `D:\twice.txt`},
		{name: "no drive letter", guest: windows, path: "/Data/q1 report.xlsx", want: `C:\Data\Q1 Report.xlsx`},
		{name: "backslashes without a drive", guest: windows, path: `\Data\Q1 Report.xlsx`, failed: true},
		{name: "the letter of a drive that is not there", guest: windows, path: `D:\inetpub\Web.config`, failed: true},
		{name: "drive letter that no partition bears", guest: oldWindows, path: `D:\only-d.txt`, want: `D:\only-d.txt`},
		{name: "volume first, in another case", guest: oldWindows, path: "volume1-ntfs/INETPUB/web.config", want: `C:\inetpub\Web.config`},
		{name: "drive letter that no partition bears, on two", guest: oldWindows, path: `C:\twice.txt`, hits: []string{"Volume1-NTFS/twice.txt", "Volume2-NTFS/twice.txt"}},
		{name: "on one of two drives that have its folder", guest: oldWindows, path: `D:\Data\c.txt`, hits: []string{"Volume1-NTFS/Data/c.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.guest.build(t, w.web.Guest())
			var got bytes.Buffer
			_, err := w.Recover(t.Context(), w.guard(t, "web01"), tt.path, rewind.ToWriter(&got))
			var ambiguous *rewind.AmbiguousPathError
			switch {
			case tt.hits != nil && errors.As(err, &ambiguous):
				if diff := cmp.Diff(tt.hits, ambiguous.Hits); diff != "" {
					t.Errorf("hits (-want +got):\n%s", diff)
				}
			case tt.hits != nil, tt.failed != (err != nil):
				t.Errorf("got %q, %v", got.String(), err)
			case got.String() != tt.want:
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
			w.nothingMounted(t)
		})
	}
}

func TestDotsUpwardsAndBackslashesNeverReachTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().SetLayout(zvmtest.WindowsVolumeLayout()))
	must(t, w.web.Guest().WriteFile(`C:\a\b.txt`, []byte("b")))
	g := w.guard(t, "web01")
	for path, found := range map[string]bool{
		`C:\a\b.txt`: true, `c:/a\b.txt`: true, `C:\a\..\a\b.txt`: false, "/a/../a/b.txt": false, `\a\b.txt`: false, `a\b.txt`: false,
		`Volume1-NTFS\a\b.txt`: false, "..": false, "Volume1-NTFS/../Volume1-NTFS/a/b.txt": false, `C:a\b.txt`: false,
	} {
		if _, err := w.Stat(t.Context(), g, path); found != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, r := range w.sim.Requests() {
		if strings.HasPrefix(r.Path, "/v1/flrs") && (strings.Contains(r.Body, `\`) || strings.Contains(r.Body, "..")) {
			t.Errorf("%s %s was sent %s", r.Method, r.Path, r.Body)
		}
	}
}

// A path that is nowhere where it would have to be is said to be missing, whatever else bears its name.
func TestLaw3_AFileThatIsGoneIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().AddPartition("Volume2-Ext4", "/data", zvmtest.Ext4))
	for _, f := range []string{"/app.conf", "/data/app.conf", "/data/opt/app/app.conf", "/etc/app/other"} {
		must(t, w.web.Guest().WriteFile(f, []byte("another file")))
	}
	_, err := w.Recover(t.Context(), w.guard(t, "web01"), "/etc/app/app.conf", rewind.ToWriter(&bytes.Buffer{}))
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want *PathNotFoundError", err)
	}
	if diff := cmp.Diff([]string{"Volume1-Ext4", "Volume2-Ext4"}, missing.Roots); diff != "" {
		t.Errorf("searched (-want +got):\n%s", diff)
	}
}

// Partitions that may all be mounted in each other are not tried in every order there is.
func TestAPathThroughManyEmptyFoldersComesToAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	layout := zvmtest.LinuxLayout()
	for i := range 14 {
		layout = append(layout, zvmtest.Partition{Root: fmt.Sprintf("vg-%d", i), MountPoint: fmt.Sprintf("/m%d", i)})
	}
	must(t, w.web.Guest().SetLayout(layout))
	must(t, w.web.Guest().Mkdir("/a"))
	for _, p := range layout[1:] {
		must(t, w.web.Guest().Mkdir(p.MountPoint+"/a"))
	}
	_, err := w.Recover(t.Context(), w.guard(t, "web01"), strings.Repeat("/a", 20)+"/f", rewind.ToWriter(&bytes.Buffer{}))
	var missing *rewind.PathNotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("got %v, want *PathNotFoundError", err)
	}
}

// rows changes the rows of browse answers.
func rows(t *testing.T, edit func(rows []map[string]any) []map[string]any) func(*http.Request, []byte) []byte {
	t.Helper()
	return func(r *http.Request, body []byte) []byte {
		var answer map[string]any
		if !strings.HasSuffix(r.URL.Path, "/browse") || json.Unmarshal(body, &answer) != nil {
			return body
		}
		for key, value := range answer {
			list, ok := value.([]any)
			if !ok || !strings.EqualFold(key, "PathItems") {
				continue
			}
			items := make([]map[string]any, len(list))
			for i := range list {
				items[i], _ = list[i].(map[string]any)
			}
			answer[key] = edit(items)
		}
		changed, err := json.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		return changed
	}
}

// beside adds a copy of one row under another path. Servers spell fields and paths in ways of their own.
func beside(name, other string) func([]map[string]any) []map[string]any {
	return func(rows []map[string]any) []map[string]any {
		for _, row := range rows {
			for field, value := range row {
				if path, _ := value.(string); strings.EqualFold(field, "Path") && (path == name || strings.HasSuffix(path, "/"+name)) {
					added := maps.Clone(row)
					added[field] = other
					return append(rows, added)
				}
			}
		}
		return rows
	}
}

func TestLaw3_ARowOfAnotherFolderIsNoItemOfThisOne(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{
		"below":    "Volume1-Ext4/srv/old/app.conf",
		"upwards":  "Volume1-Ext4/srv/../app.conf",
		"unnamed":  "Volume1-Ext4/srv/",
		"far away": "Volume1-Ext4/srv//app.conf",
		"itself":   "Volume1-Ext4/srv/.",
		"above":    "Volume1-Ext4/srv/..",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			must(t, w.web.Guest().WriteFile("/srv/keep", []byte("x")))
			s := w.tampered(t, rows(t, beside("keep", row)))
			g, err := s.Protect(t.Context(), "web01", rewind.Change{})
			must(t, err)
			if r, err := s.Recover(t.Context(), g, "/srv/app.conf", rewind.ToWriter(&bytes.Buffer{})); err == nil {
				t.Errorf("there is no /srv/app.conf, and %s was taken", r.GuestPath)
			}
			l, err := s.Browse(t.Context(), g, "/srv")
			must(t, err)
			if l.Complete || len(l.Items) != 1 || l.Items[0].Name != "keep" {
				t.Errorf("/srv holds %+v, complete %t", l.Items, l.Complete)
			}
			if _, err := s.Recover(t.Context(), g, "/srv/keep", rewind.ToWriter(&bytes.Buffer{})); err != nil {
				t.Errorf("what is listed: %v", err)
			}
			w.nothingMounted(t)
		})
	}
}

func TestLaw3_NamesInAnotherCaseAreTakenOnlyWhenThereIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().SetLayout(zvmtest.WindowsLayout()))
	must(t, w.web.Guest().WriteFile(`C:\app\Web.config`, []byte("one")))
	s := w.tampered(t, rows(t, beside("Web.config", "C/app/WEB.config")))
	g, err := s.Protect(t.Context(), "web01", rewind.Change{})
	must(t, err)
	_, err = s.Recover(t.Context(), g, `C:\app\web.CONFIG`, rewind.ToWriter(&bytes.Buffer{}))
	var ambiguous *rewind.AmbiguousPathError
	if !errors.As(err, &ambiguous) {
		t.Fatalf("got %v, want *AmbiguousPathError", err)
	}
	if diff := cmp.Diff([]string{"C/app/WEB.config", "C/app/Web.config"}, ambiguous.Hits); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	var got bytes.Buffer
	if _, err := s.Recover(t.Context(), g, `C:\app\Web.config`, rewind.ToWriter(&got)); err != nil || got.String() != "one" {
		t.Errorf("by its exact name: %q, %v", got.String(), err)
	}
}
