package zvmtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var guestEpoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// guestClock stands still until it is told.
type guestClock struct{ t time.Time }

func (c *guestClock) now() time.Time          { return c.t }
func (c *guestClock) advance(d time.Duration) { c.t = c.t.Add(d) }

func frozenGuest(tb testing.TB, layout Layout) *Guest {
	tb.Helper()
	g := newGuest((&guestClock{guestEpoch}).now)
	done(tb, g.SetLayout(layout))
	return g
}

func done(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func expect(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(node{})); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// contentOf returns the content of a file of a session, or the sentinel that opening it gave.
func contentOf(tb testing.TB, t *tree, path string) string {
	tb.Helper()
	r, size, err := t.open(path)
	for _, sentinel := range []error{errGuestNotFound, errGuestBadPath, errGuestRefused, errGuestNotFile} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	done(tb, err)
	data, err := io.ReadAll(r)
	done(tb, err)
	if int64(len(data)) != size {
		tb.Errorf("open(%q) announced %d bytes and gave %d", path, size, len(data))
	}
	return string(data)
}

// listing returns the stored paths of everything below path, in the order of browsing.
func listing(tb testing.TB, t *tree, path string) []string {
	tb.Helper()
	_, children, err := t.browse(path)
	done(tb, err)
	var all []string
	for _, child := range children {
		all = append(all, child.path)
		if child.browsable {
			all = append(all, listing(tb, t, child.path)...)
		}
	}
	return all
}

func TestGuestKeepsEarlierStates(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	clock.advance(time.Second)
	done(t, g.WriteFile("/etc/nginx/nginx.conf", []byte("one")))
	clock.advance(time.Second)
	done(t, g.WriteFile("/etc/nginx/nginx.conf", []byte("two")))
	clock.advance(time.Second)
	done(t, g.Remove("/etc"))

	got := map[string]string{}
	for name, at := range map[string]time.Duration{
		"before all": -time.Hour, "at the start": 0, "between": 1500 * time.Millisecond,
		"at the very stamp": 2 * time.Second, "a nanosecond before": 2*time.Second - 1, "removed": time.Hour,
	} {
		got[name] = contentOf(t, g.at(guestEpoch.Add(at)), "Volume1-Ext4/etc/nginx/nginx.conf")
	}
	none := errGuestNotFound.Error()
	expect(t, "content by moment", map[string]string{
		"before all": none, "at the start": none, "between": "one", "a nanosecond before": "one",
		"at the very stamp": "two", "removed": none,
	}, got)
}

func TestLayoutsAreVersionedToo(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	done(t, g.WriteFile("/old", nil))
	clock.advance(time.Second)
	done(t, g.SetLayout(WindowsLayout()))
	done(t, g.WriteFile(`C:\new`, nil))
	expect(t, "before", []string{"Volume1-Ext4", "Volume1-Ext4/old"}, listing(t, g.at(guestEpoch), ""))
	expect(t, "after", []string{"C", "C/new"}, listing(t, g.snapshot(), ""))
	if err := g.WriteFile("/old", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing below a mount point that is gone: %v", err)
	}
}

func TestOnlyTheLastChangeOfOneStampIsKept(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	done(t, g.WriteFile("/a", []byte("one")))
	held := g.snapshot()
	done(t, g.WriteFile("/a", []byte("two")))
	expect(t, "versions", 1, len(g.versions))
	expect(t, "the tree handed out earlier", "one", contentOf(t, held, "Volume1-Ext4/a"))
	expect(t, "the stamp's state", "two", contentOf(t, g.at(guestEpoch), "Volume1-Ext4/a"))
}

func TestAClockTurnedBackNeverReordersStates(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	clock.advance(time.Hour)
	done(t, g.WriteFile("/a", []byte("one")))
	clock.advance(-time.Minute)
	done(t, g.WriteFile("/a", []byte("two")))
	clock.advance(time.Second)
	done(t, g.WriteFile("/a", []byte("three")))
	clock.advance(time.Second)
	expect(t, "before all", errGuestNotFound.Error(), contentOf(t, g.at(clock.t), "Volume1-Ext4/a"))
	expect(t, "at the first stamp", "three", contentOf(t, g.at(guestEpoch.Add(time.Hour)), "Volume1-Ext4/a"))
}

func TestChangesThatChangeNothingMakeNoState(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	done(t, g.Mkdir("/a/b"))
	clock.advance(time.Second)
	done(t, g.Mkdir("/a/b"))
	done(t, g.Mkdir("/"))
	if err := g.Remove("/a/c/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing what is not there: %v", err)
	}
	expect(t, "versions", 1, len(g.versions))
}

func TestFileDataIsCopied(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	data := []byte("mine")
	done(t, g.WriteFile("/a", data))
	copy(data, "XXXX")
	got, err := g.ReadFile("/a")
	done(t, err)
	copy(got, "YYYY")
	expect(t, "content", "mine", contentOf(t, g.snapshot(), "Volume1-Ext4/a"))
}

func TestGuestPathsReachTheirPartition(t *testing.T) {
	t.Parallel()
	linux := Layout{
		{Root: "root", MountPoint: "/"},
		{Root: "log", MountPoint: "/var/log"},
		{Root: "var", MountPoint: "/var"},
	}
	windows := Layout{
		{Root: "Disk0/C", MountPoint: "C:", FS: NTFS},
		{Root: "Disk1/Data", MountPoint: `C:\Mount\Data`, FS: NTFS},
	}
	for _, tc := range []struct {
		name, path, want string
		layout           Layout
	}{
		{"plain", "/etc/hosts", "root/etc/hosts", linux},
		{"longest mount point wins", "/var/log/syslog", "log/syslog", linux},
		{"shorter mount point", "/var/lib/x", "var/lib/x", linux},
		{"a name that only begins like a mount point", "/variable", "root/variable", linux},
		{"doubled slashes and dots", "//etc/./ssh//x/", "root/etc/ssh/x", linux},
		{"a backslash is an ordinary character", `/a\b`, `root/a\b`, linux},
		{"backslashes", `C:\inetpub\web.config`, "Disk0/C/inetpub/web.config", windows},
		{"slashes and a small drive letter", "c:/inetpub/web.config", "Disk0/C/inetpub/web.config", windows},
		{"mixed slashes", `C:\a/b\c`, "Disk0/C/a/b/c", windows},
		{"a partition mounted in a folder", `c:\mount\DATA\x`, "Disk1/Data/x", windows},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := frozenGuest(t, tc.layout)
			done(t, g.WriteFile(tc.path, []byte(tc.path)))
			_, _, err := g.snapshot().browse(strings.ReplaceAll(tc.want, `\`, "?"))
			if err != nil && !strings.Contains(tc.want, `\`) {
				t.Errorf("browse(%q): %v", tc.want, err)
			}
			paths := listing(t, g.snapshot(), "")
			if !strings.Contains("\n"+strings.Join(paths, "\n")+"\n", "\n"+tc.want+"\n") {
				t.Errorf("%q is not in %q", tc.want, paths)
			}
			got, err := g.ReadFile(tc.path)
			done(t, err)
			expect(t, "read back", tc.path, string(got))
		})
	}
}

func TestMalformedGuestPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, path string
		layout     Layout
		want       error
	}{
		{"empty", "", LinuxLayout(), fs.ErrInvalid},
		{"relative", "etc/hosts", LinuxLayout(), fs.ErrInvalid},
		{"parent", "/etc/../x", LinuxLayout(), fs.ErrInvalid},
		{"NUL", "/a\x00b", LinuxLayout(), fs.ErrInvalid},
		{"256 bytes", "/" + strings.Repeat("x", 256), LinuxLayout(), fs.ErrInvalid},
		{"Windows path on Linux", `C:\x`, LinuxLayout(), fs.ErrNotExist},
		{"Linux path on Windows", "/etc/hosts", WindowsLayout(), fs.ErrNotExist},
		{"another drive", `D:\x`, WindowsLayout(), fs.ErrNotExist},
		{"network path", `\\server\share\x`, WindowsLayout(), fs.ErrInvalid},
		{"parent with backslashes", `C:\a\..\b`, WindowsLayout(), fs.ErrInvalid},
		{"drive-relative", `C:a`, WindowsLayout(), fs.ErrInvalid},
		{"reserved character", `C:\a?b`, WindowsLayout(), fs.ErrInvalid},
		{"stream", `C:\a:b`, WindowsLayout(), fs.ErrInvalid},
		{"256 UTF-16 units", `C:\` + strings.Repeat("😀", 128), WindowsLayout(), fs.ErrInvalid},
		{"no partition at all", "/x", nil, fs.ErrNotExist},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := frozenGuest(t, tc.layout)
			before := g.snapshot()
			err := g.WriteFile(tc.path, nil)
			if named := (*fs.PathError)(nil); !errors.Is(err, tc.want) || !errors.As(err, &named) || named.Path != tc.path {
				t.Errorf("WriteFile(%q) = %v, want a path error that wraps %v", tc.path, err, tc.want)
			}
			if g.snapshot() != before {
				t.Error("a refused write changed the guest")
			}
		})
	}
}

func TestKindsOfItemsAreNotMixed(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/file", []byte("x")))
	done(t, g.Mkdir("/folder"))
	done(t, g.Symlink("/file", "/link"))
	before := g.snapshot()
	read := func(path string) error { _, err := g.ReadFile(path); return err }
	for name, tc := range map[string]struct{ got, want error }{
		"write a folder":           {g.WriteFile("/folder", nil), errGuestNotFile},
		"write a link":             {g.WriteFile("/link", nil), errGuestNotFile},
		"write below a file":       {g.WriteFile("/file/x", nil), errGuestNotFolder},
		"write below a link":       {g.WriteFile("/link/x", nil), errGuestNotFolder},
		"write a partition":        {g.WriteFile("/", nil), errGuestNotFile},
		"write a negative size":    {g.WriteSparse("/sparse", -1, 0), fs.ErrInvalid},
		"write negative zeros":     {g.WriteZeros("/sparse", -1), fs.ErrInvalid},
		"make a folder of a file":  {g.Mkdir("/file"), fs.ErrExist},
		"make a folder of a link":  {g.Mkdir("/link"), fs.ErrExist},
		"link over a file":         {g.Symlink("x", "/file"), fs.ErrExist},
		"link to nothing":          {g.Symlink("", "/new"), fs.ErrInvalid},
		"many files over a file":   {g.WriteManyFiles("/file", 2), fs.ErrExist},
		"fewer than no files":      {g.WriteManyFiles("/many", -1), fs.ErrInvalid},
		"deny what is not there":   {g.Deny("/none", ""), fs.ErrNotExist},
		"remove a partition":       {g.Remove("/"), fs.ErrInvalid},
		"read a folder":            {read("/folder"), errGuestNotFile},
		"read a link":              {read("/link"), errGuestNotFile},
		"read what is not there":   {read("/none"), fs.ErrNotExist},
		"read below a file":        {read("/file/x"), fs.ErrNotExist},
		"read a malformed path":    {read("none"), fs.ErrInvalid},
		"copy to a malformed path": {g.CopyFS("none", nil), fs.ErrInvalid},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, tc.got, tc.want)
		}
	}
	if g.snapshot() != before {
		t.Error("a refused change changed the guest")
	}
}

func TestNTFSIgnoresAndKeepsCase(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, WindowsLayout())
	done(t, g.WriteFile(`C:\Data\Q1 Report.xlsx`, []byte("one")))
	done(t, g.WriteFile(`c:\DATA\q1 report.XLSX`, []byte("two")))
	done(t, g.WriteFile(`c:\data\Ärger`, []byte("umlaut")))
	done(t, g.WriteFile(`c:\data\straße`, []byte("sharp s")))
	done(t, g.WriteFile(`c:\data\STRASSE`, []byte("double s")))
	done(t, g.WriteFile("c:\\data\\a\xff", []byte("ff")))
	done(t, g.WriteFile("c:\\data\\A\xfe", []byte("fe")))
	want := []string{
		"C", "C/Data", "C/Data/A\xfe", "C/Data/a\xff", "C/Data/Q1 Report.xlsx", "C/Data/STRASSE", "C/Data/straße", "C/Data/Ärger",
	}
	expect(t, "stored spelling", want, listing(t, g.snapshot(), ""))
	expect(t, "second spelling", "two", contentOf(t, g.snapshot(), "c/dAtA/Q1 REPORT.xlsx"))
	expect(t, "umlaut", "umlaut", contentOf(t, g.snapshot(), "C/data/ÄRGER"))
	self, _, err := g.snapshot().browse("c/data")
	done(t, err)
	expect(t, "path of the item asked for", "C/Data", self.path)
	done(t, g.Remove(`C:\dATA\strasse`))
	expect(t, "the other name stays", "sharp s", contentOf(t, g.snapshot(), "C/Data/STRAßE"))
}

func TestLinuxMindsCase(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	for _, name := range []string{"Report.txt", "report.txt", "REPORT.TXT"} {
		done(t, g.WriteFile("/"+name, []byte(name)))
		expect(t, name, name, contentOf(t, g.snapshot(), "Volume1-Ext4/"+name))
	}
	expect(t, "unknown spelling", errGuestNotFound.Error(), contentOf(t, g.snapshot(), "Volume1-Ext4/rEPORT.txt"))
	expect(t, "root in another case", errGuestNotFound.Error(), contentOf(t, g.snapshot(), "volume1-ext4/report.txt"))
}

func TestNamesAreStoredByteForByte(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, NumberedLayout())
	names := []string{
		"Cyber 2077", "Données", "100%.txt", "%41", "a+b&c=d.txt", "semi;colon?.log", "#hash", " leading", "trailing ", "dot.",
		"\u00e4 composed", "a\u0308 decomposed", "😀", "\u200frtl", "new\nline", `"quoted"`, "CON", "a:b", "\xff\xfe invalid",
		strings.Repeat("x", 255), strings.Repeat("ä", 127) + "x", "-rf", "...",
	}
	for _, name := range names {
		done(t, g.WriteFile("/dir/"+name, []byte(name)))
	}
	for _, name := range names {
		expect(t, name, name, contentOf(t, g.snapshot(), "partition#1 Ext3/dir/"+name))
	}
	_, children, err := g.snapshot().browse("partition#1 Ext3/dir")
	done(t, err)
	expect(t, "number of names", len(names), len(children))
}

func TestPartitionsAreChecked(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, ManyDisksLayout())
	done(t, g.WriteFile("/taken", nil))
	before := g.snapshot()
	for _, tc := range []struct {
		name, root, point string
		kind              FS
		want              error
	}{
		{"root taken", "Disk0/Volume1-Ext4", "/new", Ext4, fs.ErrExist},
		{"disk's name taken", "Disk0", "/new", Ext4, fs.ErrExist},
		{"mount point taken", "new", "/var/", Ext4, fs.ErrExist},
		{"no root", "", "/new", Ext4, fs.ErrInvalid},
		{"root with three elements", "a/b/c", "/new", Ext4, fs.ErrInvalid},
		{"root with an empty element", "a/", "/new", Ext4, fs.ErrInvalid},
		{"root with a parent", "a/..", "/new", Ext4, fs.ErrInvalid},
		{"root with a backslash", `a\b`, "/new", Ext4, fs.ErrInvalid},
		{"no mount point", "new", "", Ext4, fs.ErrInvalid},
		{"relative mount point", "new", "new", Ext4, fs.ErrInvalid},
		{"mount point is a file", "new", "/taken", Ext4, errGuestNotFolder},
		{"below a file", "new", "/taken/x", Ext4, errGuestNotFolder},
	} {
		if err := g.AddPartition(tc.root, tc.point, tc.kind); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
	if g.snapshot() != before {
		t.Error("a refused partition changed the guest")
	}
	done(t, g.AddPartition("Z", "Z:", NTFS))
	done(t, g.AddPartition("Disk2/C", "C:", NTFS))
	done(t, g.WriteFile(`C:\x`, []byte("x")))
	expect(t, "a drive below its disk in another case", "x", contentOf(t, g.snapshot(), "Disk2/c/X"))
	if err := g.AddPartition("z", "Y:", NTFS); !errors.Is(err, fs.ErrExist) {
		t.Errorf("root taken in another case: %v", err)
	}
	if err := g.AddPartition("Y", `z:\`, NTFS); !errors.Is(err, fs.ErrExist) {
		t.Errorf("drive taken in another case: %v", err)
	}
}

func TestAMountPointKeepsAnEmptyFolderBelow(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/var/hidden", []byte("old")))
	done(t, g.AddPartition("Volume2-Ext4", "/var", Ext4))
	done(t, g.AddPartition("Volume3-Ext4", "/srv/data", Ext4))
	done(t, g.WriteFile("/var/seen", []byte("new")))
	expect(t, "browsed", []string{
		"Volume1-Ext4", "Volume1-Ext4/srv", "Volume1-Ext4/srv/data", "Volume1-Ext4/var", "Volume1-Ext4/var/hidden",
		"Volume2-Ext4", "Volume2-Ext4/seen", "Volume3-Ext4",
	}, listing(t, g.snapshot(), ""))
	done(t, g.SetLayout(Layout{{Root: "var", MountPoint: "/var"}, {Root: "root", MountPoint: "/"}}))
	expect(t, "whatever the order of a layout", []string{"root", "root/var", "var"}, listing(t, g.snapshot(), ""))
}

func TestAMountHidesWhatIsBelow(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/var/hidden", []byte("old")))
	done(t, g.AddPartition("Volume2-Ext4", "/var", Ext4))
	if _, err := g.ReadFile("/var/hidden"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the guest still sees what the mount hides: %v", err)
	}
}

func TestEveryLayoutIsValid(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]Layout{
		"Linux": LinuxLayout(), "numbered": NumberedLayout(), "Windows": WindowsLayout(),
		"Windows volumes": WindowsVolumeLayout(), "many disks": ManyDisksLayout(), "empty": nil,
	} {
		g := frozenGuest(t, layout)
		for _, p := range layout {
			if err := g.WriteFile(p.MountPoint+"/probe", []byte("x")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			expect(t, name, "x", contentOf(t, g.snapshot(), p.Root+"/probe"))
		}
	}
	expect(t, "a fresh guest", []string{"Volume1-Ext4"}, listing(t, newGuest(time.Now).snapshot(), ""))
	if err := newGuest(time.Now).SetLayout(append(LinuxLayout(), LinuxLayout()...)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a layout with one partition twice: %v", err)
	}
}

func TestGeneratedContentIsStableAndSeekable(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	const size = 5 << 40
	done(t, g.WriteSparse("/noise", size, 7))
	done(t, g.WriteSparse("/other", 100, 8))
	done(t, g.WriteSparse("/short", 13, 7))
	done(t, g.WriteZeros("/zeros", size))
	read := func(path string, offset, n int64) string {
		r, total, err := g.snapshot().open("Volume1-Ext4" + path)
		done(t, err)
		_, err = r.Seek(offset, io.SeekStart)
		done(t, err)
		data := make([]byte, min(n, total-offset))
		_, err = io.ReadFull(r, data)
		done(t, err)
		return string(data)
	}
	whole := read("/noise", 0, 100)
	for offset := int64(0); offset < 20; offset++ {
		for n := int64(0); n < 20; n++ {
			expect(t, fmt.Sprintf("%d bytes from %d", n, offset), whole[offset:offset+n], read("/noise", offset, n))
		}
	}
	several := read("/noise", 0, 5*noiseChunk)
	for offset := int64(noiseChunk - 9); offset < noiseChunk+10; offset++ {
		for _, n := range []int64{1, 7, 8, 9, noiseChunk, 2*noiseChunk + 1} {
			expect(t, fmt.Sprintf("%d bytes from %d", n, offset), several[offset:offset+n], read("/noise", offset, n))
		}
	}
	if several[:noiseChunk] == several[noiseChunk:2*noiseChunk] {
		t.Error("two chunks are the same")
	}
	expect(t, "a shorter file of the seed", whole[:13], read("/short", 0, 100))
	if whole == read("/other", 0, 100) {
		t.Error("two seeds gave the same noise")
	}
	if tail := read("/noise", size-64, 100); len(tail) != 64 || tail == whole[:64] {
		t.Errorf("the end of the file is %x", tail)
	}
	expect(t, "zeros", strings.Repeat("\x00", 64), read("/zeros", size-64, 100))
}

func TestManyFilesCostLittle(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, WindowsLayout())
	const n = 200_000
	done(t, g.WriteFile(`C:\many\a`, []byte("kept")))
	done(t, g.WriteManyFiles(`C:\MANY`, 3))
	done(t, g.WriteManyFiles(`C:\big`, n))
	done(t, g.WriteFile(`C:\big\FILE-000001.txt`, []byte("mine")))
	expect(t, "added to what was there", []string{"C/many/a", "C/many/file-000000.txt", "C/many/file-000001.txt", "C/many/file-000002.txt"},
		listing(t, g.snapshot(), "C/many"))
	_, all, err := g.snapshot().browse("C/big")
	done(t, err)
	expect(t, "number of files", n, len(all))
	for i := 0; i < n; i += 997 {
		child := all[i]
		if want := fmt.Sprintf("C/big/file-%06d.txt", i); child.path != want {
			t.Fatalf("file %d is %q, want %q", i, child.path, want)
		}
	}
	expect(t, "generated content", "file-123456.txt\n", contentOf(t, g.snapshot(), "C/big/file-123456.txt"))
	expect(t, "a file changed among them", "mine", contentOf(t, g.snapshot(), "C/big/file-000001.txt"))
}

func TestGuestIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	g := newGuest(time.Now)
	done(t, g.MountDir("/host", t.TempDir()))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				path := fmt.Sprintf("/w%d/f%d", worker, i)
				if err := g.WriteFile(path, []byte(path)); err != nil {
					t.Error(err)
				}
				if i%5 == 4 {
					if err := g.Remove(path); err != nil {
						t.Error(err)
					}
				}
				if _, _, err := g.at(time.Now()).browse("Volume1-Ext4/host"); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if err := g.snapshot().archive(io.Discard, []string{fmt.Sprintf("Volume1-Ext4/w%d", worker)}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	_, children, err := g.snapshot().browse("Volume1-Ext4")
	done(t, err)
	expect(t, "folders", 9, len(children))
	for _, child := range children[1:] {
		expect(t, child.path, 40, len(listing(t, g.snapshot(), child.path)))
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := newGuest(time.Now)
			done(b, g.WriteManyFiles("/many", n))
			for b.Loop() {
				g.snapshot()
			}
		})
	}
}

func BenchmarkWriteIntoFolder(b *testing.B) {
	for _, n := range []int{10, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := newGuest((&guestClock{guestEpoch}).now)
			done(b, g.WriteManyFiles("/many", n))
			for b.Loop() {
				done(b, g.WriteFile("/many/file-000005.txt", nil))
			}
		})
	}
}
