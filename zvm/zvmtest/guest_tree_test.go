package zvmtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBrowseDescribesEveryKindOfItem(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	done(t, g.SetLayout(Layout{{Root: "Disk0/Volume1-Ext4", MountPoint: "/"}}))
	made := clock.t
	clock.advance(time.Second)
	later := clock.t
	done(t, g.WriteFile("/dir/file", []byte("12345")))
	done(t, g.WriteFile("/dir/empty", nil))
	done(t, g.Symlink("/dir/file", "/dir/link"))
	done(t, g.WriteFile("/dir/secret", []byte("MARKER-denied")))
	done(t, g.WriteFile("/dir/vault/x", nil))
	done(t, g.Deny("/dir/secret", "Cannot restore. The file is encrypted."))
	done(t, g.Deny("/dir/vault", ""))
	clock.advance(time.Second)
	last := clock.t
	done(t, g.WriteFile("/dir/file", []byte("123456")))

	dated := func(n node, created, written time.Time) node {
		n.created, n.accessed, n.written = created, written, written
		return n
	}
	folder := node{kind: kindFolder, size: -1, browsable: true, downloadable: true}
	named := func(n node, path string) node { n.path = path; return n }
	of := func(n node, kind nodeKind) node { n.kind = kind; return n }
	const root = "Disk0/Volume1-Ext4"
	for _, tc := range []struct {
		path     string
		self     node
		children []node
	}{
		{"", dated(named(of(folder, kindPartition), ""), made, made), []node{dated(named(of(folder, kindDisk), "Disk0"), made, made)}},
		{"Disk0", dated(named(of(folder, kindDisk), "Disk0"), made, made), []node{dated(named(of(folder, kindPartition), root), made, later)}},
		{root, dated(named(of(folder, kindPartition), root), made, later), []node{dated(named(folder, root+"/dir"), later, later)}},
		{root + "/dir", dated(named(folder, root+"/dir"), later, later), []node{
			dated(node{path: root + "/dir/empty", size: 0, downloadable: true}, later, later),
			dated(node{path: root + "/dir/file", size: 6, downloadable: true}, later, last),
			dated(node{path: root + "/dir/link", size: -1, reason: "Cannot restore. Links are not supported."}, later, later),
			dated(node{path: root + "/dir/secret", size: 13, reason: "Cannot restore. The file is encrypted."}, later, later),
			dated(node{path: root + "/dir/vault", kind: kindFolder, size: -1, reason: "Cannot restore. Access is denied."}, later, later),
		}},
		{root + "/dir/file", dated(node{path: root + "/dir/file", size: 6, downloadable: true}, later, last), nil},
		{root + "/dir/vault", dated(node{path: root + "/dir/vault", kind: kindFolder, size: -1, reason: "Cannot restore. Access is denied."}, later, later), nil},
	} {
		self, children, err := g.snapshot().browse(tc.path)
		done(t, err)
		expect(t, fmt.Sprintf("%q itself", tc.path), tc.self, self)
		expect(t, fmt.Sprintf("children of %q", tc.path), tc.children, children)
	}
}

func TestDeniedItemsStayDeniedAndTheGuestStillReadsThem(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/a", []byte("one")))
	done(t, g.WriteFile("/dir/b", nil))
	done(t, g.Mkdir("/plain"))
	done(t, g.Deny("/a", ""))
	done(t, g.Deny("/dir", ""))
	done(t, g.WriteFile("/a", []byte("two")))
	got, err := g.ReadFile("/a")
	done(t, err)
	expect(t, "as the guest sees it", "two", string(got))
	for path, want := range map[string]error{"a": errGuestRefused, "dir": errGuestRefused, "dir/b": errGuestNotFound, "plain": errGuestNotFile} {
		expect(t, "open "+path, want.Error(), contentOf(t, g.snapshot(), "Volume1-Ext4/"+path))
	}
	done(t, g.Remove("/a"))
	done(t, g.WriteFile("/a", []byte("three")))
	expect(t, "made anew", "three", contentOf(t, g.snapshot(), "Volume1-Ext4/a"))
}

func TestSessionPathsAreTakenLiterally(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/etc/hosts", nil))
	done(t, g.WriteFile(`/back\slash`, nil))
	done(t, g.WriteFile("/100%41", nil))
	for path, want := range map[string]error{
		"Volume1-Ext4/etc/hosts":          nil,
		"/Volume1-Ext4/etc/hosts":         errGuestNotFound,
		"Volume1-Ext4/etc/hosts/":         errGuestNotFound,
		"Volume1-Ext4//etc":               errGuestNotFound,
		"Volume1-Ext4/./etc":              errGuestNotFound,
		"Volume1-Ext4/etc/../etc":         errGuestBadPath,
		"..":                              errGuestBadPath,
		"none/..":                         errGuestBadPath,
		`Volume1-Ext4\etc`:                errGuestBadPath,
		`Volume1-Ext4/back\slash`:         errGuestBadPath,
		"Volume1-Ext4/etc/hosts/x":        errGuestNotFound,
		"Volume1-Ext4/100A":               errGuestNotFound,
		"Volume1-Ext4/100%41":             nil,
		"Volume1-Ext4/etc%2Fhosts":        errGuestNotFound,
		"/":                               errGuestNotFound,
		"etc/hosts":                       errGuestNotFound,
		"Volume1-Ext4/etc/hosts\x00":      errGuestNotFound,
		strings.Repeat("Volume1-Ext4", 9): errGuestNotFound,
	} {
		if _, _, err := g.snapshot().browse(path); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("browse(%q) = %v, want %v", path, err, want)
		}
		_, _, err := g.snapshot().open(path)
		if (err == nil) != (want == nil) {
			t.Errorf("open(%q) = %v, want %v", path, err, want)
		}
	}
}

func TestPagesMakeUpTheWhole(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteManyFiles("/many", 2500))
	whole, all, err := g.snapshot().browse("Volume1-Ext4/many")
	done(t, err)
	for _, size := range []int{1, 7, 100, 1250, 2499, 2500, 2501} {
		var joined []node
		for offset := 0; offset < 2500; offset += size {
			self, page, total, err := g.snapshot().browsePage("Volume1-Ext4/many", offset, size)
			done(t, err)
			if self != whole || total != 2500 || len(page) != min(size, 2500-offset) {
				t.Fatalf("page of %d at %d: %d children of %d", size, offset, len(page), total)
			}
			joined = append(joined, page...)
		}
		if !slices.Equal(all, joined) {
			t.Errorf("pages of %d are not the whole", size)
		}
	}
	for _, tc := range []struct{ offset, limit, want int }{
		{2500, 10, 0}, {9999, 10, 0}, {0, 0, 0}, {-5, 10, 10}, {2495, -1, 5}, {10, 1 << 62, 2490},
	} {
		_, page, total, err := g.snapshot().browsePage("Volume1-Ext4/many", tc.offset, tc.limit)
		done(t, err)
		expect(t, fmt.Sprintf("%+v", tc), []int{tc.want, 2500}, []int{len(page), total})
	}
}

func FuzzBrowse(f *testing.F) {
	for _, seed := range []string{
		"", "/", "C", "c/data", "C/Data/Q1 Report.xlsx", "partition#1 Ext3/ä", "partition#1 Ext3/a\u0308", "..", `C:\Data`,
		"C//Data", "C/./Data", "C/Data/", "\xff", "Disk0/Volume1", "C/Data\x00", "partition#1 Ext3/denied/x", "c/DATA/STRAßE",
	} {
		f.Add(seed)
	}
	g := newGuest(time.Now)
	done(f, g.SetLayout(Layout{
		{Root: "partition#1 Ext3", MountPoint: "/", FS: Ext3},
		{Root: "C", MountPoint: "C:", FS: NTFS},
		{Root: "Disk0/Volume1", MountPoint: "/disk", FS: Ext4},
	}))
	for _, path := range []string{"/ä", "/a\u0308", "/denied/x", "/disk/\xff", `C:\Data\Q1 Report.xlsx`, `C:\Data\straße`} {
		done(f, g.WriteFile(path, []byte(path)))
	}
	done(f, g.Deny("/denied", ""))
	state := g.snapshot()
	f.Fuzz(func(t *testing.T, path string) {
		self, children, err := state.browse(path)
		if err != nil {
			if !errors.Is(err, errGuestNotFound) && !errors.Is(err, errGuestBadPath) {
				t.Fatalf("browse(%q): %v", path, err)
			}
			return
		}
		if upcase(self.path) != upcase(path) {
			t.Fatalf("browse(%q) answered for %q", path, self.path)
		}
		again, _, err := state.browse(self.path)
		if err != nil || again != self {
			t.Fatalf("%q is not found under its own path %q: %v", path, self.path, err)
		}
		for _, child := range children {
			if found, _, err := state.browse(child.path); err != nil || found != child {
				t.Fatalf("child %q of %q is not found again: %v", child.path, path, err)
			}
		}
	})
}

// A path either is refused, or what was written to it is found by browsing and read back, and nothing else appears.
func FuzzGuestPath(f *testing.F) {
	for _, seed := range []string{
		"/etc/hosts", `C:\inetpub\web.config`, "c:/a//b/.", "/a/../b", "//", "/disk/x", "/a\\b", "C:", "/\xff", "C:\\con:x", "/" + strings.Repeat("ä", 128),
	} {
		f.Add(seed)
	}
	layout := append(ManyDisksLayout(), WindowsLayout()...)
	f.Fuzz(func(t *testing.T, path string) {
		g := frozenGuest(t, layout)
		before := listing(t, g.snapshot(), "")
		if err := g.WriteFile(path, []byte(path)); err != nil {
			expect(t, "after a refused write", before, listing(t, g.snapshot(), ""))
			return
		}
		got, err := g.ReadFile(path)
		done(t, err)
		expect(t, "read back", path, string(got))
		if err := g.Remove(path); err != nil {
			t.Fatalf("what was written to %q cannot be removed: %v", path, err)
		}
		if _, err := g.ReadFile(path); err == nil {
			t.Fatalf("%q is still there after it was removed", path)
		}
	})
}
