package rewind_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestLaw3_ANamedPartitionSettlesAnAmbiguousPath(t *testing.T) {
	t.Parallel()
	volumes := append(zvmtest.LinuxLayout(), zvmtest.Partition{Root: "Volume2-Ext4", MountPoint: "/var", FS: zvmtest.Ext4})
	for _, tt := range []struct {
		name            string
		layout          zvmtest.Layout
		files           []string
		path, partition string
		want            string
		partitions      []string // that an error lists
	}{
		{name: "one of two", layout: volumes, files: []string{"/both", "/var/both"}, path: "/both", partition: "Volume2-Ext4", want: "/var/both"},
		{name: "the other of two", layout: volumes, files: []string{"/both", "/var/both"}, path: "/both", partition: "Volume1-Ext4", want: "/both"},
		{name: "one hit that another contests", layout: volumes, files: []string{"/etc/hosts", "/var/etc/x"}, path: "/etc/hosts", partition: "Volume1-Ext4", want: "/etc/hosts"},
		{name: "a mount point is not left", layout: volumes, files: []string{"/var/log/x"}, path: "/var/log/x", partition: "Volume1-Ext4"},
		{name: "without a slash", layout: volumes, files: []string{"/both", "/var/both"}, path: "both", partition: "Volume2-Ext4", want: "/var/both"},
		{name: "a drive that no partition bears", layout: zvmtest.WindowsVolumeLayout(), files: []string{`C:\twice`, `D:\twice`}, path: `D:\twice`, partition: "volume2-ntfs", want: `D:\twice`},
		{name: "below a disk, by its name", layout: zvmtest.ManyDisksLayout(), files: []string{"/srv/data"}, path: "/data", partition: "Volume1-XFS", want: "/srv/data"},
		{name: "below a disk, by its path", layout: zvmtest.ManyDisksLayout(), files: []string{"/srv/data"}, path: "/data", partition: "Disk1/Volume1-XFS", want: "/srv/data"},
		{name: "a drive as users write it", layout: zvmtest.WindowsLayout(), files: []string{`C:\x`}, path: "/x", partition: "c:", want: `C:\x`},
		{name: "none of that name", layout: volumes, path: "/both", partition: "Volume3", partitions: []string{"Volume1-Ext4", "Volume2-Ext4"}},
		{name: "another drive than the path's", layout: zvmtest.WindowsLayout(), path: `D:\x`, partition: "C", partitions: []string{"C"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			disks{layout: tt.layout, files: tt.files}.build(t, w.web.Guest())
			var got bytes.Buffer
			_, err := w.Recover(t.Context(), w.guard(t, "web01"), tt.path, rewind.ToWriter(&got), rewind.OnPartition(tt.partition))
			var none *rewind.PartitionNotFoundError
			var missing *rewind.PathNotFoundError
			switch {
			case tt.partitions != nil && errors.As(err, &none):
				if diff := cmp.Diff(tt.partitions, none.Partitions); diff != "" {
					t.Errorf("partitions (-want +got):\n%s", diff)
				}
			case tt.partitions != nil, tt.want == "" && !errors.As(err, &missing), tt.want != "" && err != nil:
				t.Errorf("got %q, %v", got.String(), err)
			case got.String() != tt.want:
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
			if missing != nil && strings.Join(missing.Roots, " ") != tt.partition {
				t.Errorf("looked through %q, want %q alone", missing.Roots, tt.partition)
			}
			w.nothingMounted(t)
		})
	}
}

func TestANamedPartitionIsTheTopOfWhatIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().AddPartition("Volume2-Ext4", "/var", zvmtest.Ext4))
	must(t, w.web.Guest().WriteFile("/var/a", []byte("a")))
	g := w.guard(t, "web01")
	must(t, w.web.Guest().WriteFile("/var/b", []byte("b")))
	after := w.guard(t, "web01")
	on := rewind.OnPartition("Volume2-Ext4")
	l, err := w.Browse(t.Context(), g, "/", on)
	must(t, err)
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer root.Close()
	tree, err := w.RecoverTree(t.Context(), g, "/", root, on)
	must(t, err)
	d, err := w.Diff(t.Context(), g, after, "/", on)
	must(t, err)
	got := []string{l.GuestPath, l.Items[0].Name, tree.GuestPath, tree.Files[0].Dest, d.After.GuestPath, d.Added[0].Path}
	if diff := cmp.Diff([]string{"Volume2-Ext4", "a", "Volume2-Ext4", "a", "Volume2-Ext4", "b"}, got); diff != "" {
		t.Errorf("what was read (-want +got):\n%s", diff)
	}
	if _, err := w.StartTest(t.Context(), g, on); err == nil {
		t.Error("a whole VM was started from one partition")
	}
}

// composing stands for a normal form of Unicode, for the letters that are used here.
func composing(name string) string {
	return strings.NewReplacer("e\u0301", "\u00e9", "E\u0301", "\u00c9").Replace(name)
}

func TestNamesAreComparedInNormalForm(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	for _, tt := range []struct {
		name  string
		files []string
		path  string
		want  string
		hits  []string
	}{
		{name: "decomposed in the guest, composed asked", files: []string{"/srv/" + decomposed + "/x"}, path: "/srv/" + composed + "/x", want: "Volume1-Ext4/srv/" + decomposed + "/x"},
		{name: "composed in the guest, decomposed asked", files: []string{"/srv/" + composed + "/x"}, path: "/srv/" + decomposed + "/x", want: "Volume1-Ext4/srv/" + composed + "/x"},
		{name: "both, asked as one of them", files: []string{"/srv/" + composed, "/srv/" + decomposed}, path: "/srv/" + composed, hits: []string{"Volume1-Ext4/srv/" + decomposed, "Volume1-Ext4/srv/" + composed}},
		{name: "both, asked as listed", files: []string{"/srv/" + composed, "/srv/" + decomposed}, path: "Volume1-Ext4/srv/" + decomposed, want: "Volume1-Ext4/srv/" + decomposed},
		{name: "another case is another name on Linux", files: []string{"/srv/" + decomposed}, path: "/srv/CAF\u00c9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, f := range tt.files {
				must(t, w.web.Guest().WriteFile(f, []byte(f)))
			}
			s, err := w.With(rewind.WithNormalForm(composing))
			must(t, err)
			item, err := s.Stat(t.Context(), w.guard(t, "web01"), tt.path)
			var ambiguous *rewind.AmbiguousPathError
			switch {
			case tt.hits != nil && errors.As(err, &ambiguous):
				if diff := cmp.Diff(tt.hits, ambiguous.Hits); diff != "" {
					t.Errorf("hits (-want +got):\n%s", diff)
				}
			case tt.hits != nil, (tt.want == "") != (err != nil):
				t.Errorf("got %+v, %v", item, err)
			case item != nil && item.Path != tt.want:
				t.Errorf("got %+q, want %+q", item.Path, tt.want)
			}
			w.nothingMounted(t)
		})
	}
}

// On Windows file systems case is ignored in normal form too.
func TestNamesInNormalFormAndAnotherCase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().SetLayout(zvmtest.WindowsLayout()))
	must(t, w.web.Guest().WriteFile("C:\\Cafe\u0301\\x", []byte("x")))
	s, err := w.With(rewind.WithNormalForm(composing))
	must(t, err)
	item, err := s.Stat(t.Context(), w.guard(t, "web01"), "c:/CAF\u00c9/x")
	must(t, err)
	if item.Path != "C/Cafe\u0301/x" {
		t.Errorf("got %+q", item.Path)
	}
}

func TestTheServersOwnSpellingIsWhatIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.web.Guest().WriteFile("/srv/e\u0301.txt", []byte("x")))
	s, err := w.With(rewind.WithNormalForm(composing))
	must(t, err)
	r, err := s.Recover(t.Context(), w.guard(t, "web01"), "/srv/\u00e9.txt", rewind.ToWriter(&bytes.Buffer{}))
	must(t, err)
	if r.GuestPath != "Volume1-Ext4/srv/e\u0301.txt" {
		t.Errorf("recovered %+q", r.GuestPath)
	}
}

// Some file systems take two spellings for one name: neither is written, as with names that differ in case alone.
func TestLaw8_NamesThatAreTheSameInNormalFormAreLeftOutOfATree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, f := range []string{"/srv/caf\u00e9", "/srv/cafe\u0301", "/srv/tea"} {
		must(t, w.web.Guest().WriteFile(f, []byte(f)))
	}
	s, err := w.With(rewind.WithNormalForm(composing))
	must(t, err)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	tree, err := s.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv", root)
	must(t, err)
	if len(tree.Skipped) != 2 {
		t.Errorf("left out %+v", tree.Skipped)
	}
	folderIs(t, dir, "tea")
}
