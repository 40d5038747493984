package zvmtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func writeHost(tb testing.TB, path, data string) {
	tb.Helper()
	done(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	done(tb, os.WriteFile(path, []byte(data), 0o600))
}

func TestMountedDirectoryIsFrozenAtEverySnapshot(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "conf/app.ini"), "one")
	done(t, g.MountDir("/srv/app", dir))
	var states []*tree
	for _, data := range []string{"one", "two", "six"} {
		writeHost(t, filepath.Join(dir, "conf/app.ini"), data)
		clock.advance(time.Second)
		states = append(states, g.snapshot())
	}
	done(t, os.RemoveAll(filepath.Join(dir, "conf")))
	clock.advance(time.Second)
	states = append(states, g.snapshot())
	want := []string{"one", "two", "six", errGuestNotFound.Error()}
	for i, state := range states {
		expect(t, "as handed out", want[i], contentOf(t, state, "Volume1-Ext4/srv/app/conf/app.ini"))
		at := g.at(guestEpoch.Add(time.Duration(i+1) * time.Second))
		expect(t, "as found again", want[i], contentOf(t, at, "Volume1-Ext4/srv/app/conf/app.ini"))
	}
	writeHost(t, filepath.Join(dir, "late"), "read at once")
	got, err := g.ReadFile("/srv/app/late")
	done(t, err)
	expect(t, "read", "read at once", string(got))
}

func TestAnUnchangedDirectoryMakesNoState(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "a/b"), "x")
	writeHost(t, filepath.Join(dir, "a/c"), "y")
	done(t, os.Symlink("b", filepath.Join(dir, "a/link")))
	done(t, g.MountDir("/mnt", dir))
	before := g.snapshot()
	clock.advance(time.Second)
	if g.snapshot() != before {
		t.Error("reading the directory again made a state")
	}
	touched := guestEpoch.Add(-time.Hour)
	done(t, os.Chtimes(filepath.Join(dir, "a/c"), touched, touched))
	after := g.snapshot()
	self, _, err := after.browse("Volume1-Ext4/mnt/a/c")
	done(t, err)
	if !self.written.Equal(touched) {
		t.Errorf("a file touched on the host is shown as written at %v", self.written)
	}
	_, unchanged, err := before.find("Volume1-Ext4/mnt/a/b")
	done(t, err)
	if _, same, err := after.find("Volume1-Ext4/mnt/a/b"); err != nil || same != unchanged {
		t.Error("what did not change is not shared")
	}
}

func TestMountedDirectoryShowsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	writeHost(t, outside, "MARKER-outside")
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "plain"), "x")
	done(t, os.Symlink(outside, filepath.Join(dir, "escape")))
	done(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "escapes")))
	large, err := os.Create(filepath.Join(dir, "large"))
	done(t, err)
	done(t, large.Truncate(captureLimit+1))
	done(t, large.Close())

	g := frozenGuest(t, LinuxLayout())
	done(t, g.MountDir("/mnt", dir))
	_, children, err := g.snapshot().browse("Volume1-Ext4/mnt")
	done(t, err)
	got := map[string]string{}
	for _, child := range children {
		got[strings.TrimPrefix(child.path, "Volume1-Ext4/mnt/")] = child.reason
	}
	expect(t, "reasons", map[string]string{
		"plain": "", "escape": linkRefusal, "escapes": linkRefusal,
		"large": "Cannot restore. the directory is larger than the simulator keeps.",
	}, got)

	done(t, os.RemoveAll(dir))
	self, _, err := g.snapshot().browse("Volume1-Ext4/mnt")
	done(t, err)
	if self.browsable || self.downloadable || !strings.Contains(self.reason, "no such file") || strings.Contains(self.reason, dir) {
		t.Errorf("a directory that is gone is shown as %+v", self)
	}
}

func TestMountedDirectoryChangesOnTheHostOnly(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, WindowsLayout())
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "a"), "x")
	done(t, g.MountDir(`C:\Docs\App`, dir))
	before := g.snapshot()
	for name, err := range map[string]error{
		"write":      g.WriteFile(`C:\docs\app\a`, nil),
		"add":        g.WriteFile(`c:\DOCS\APP\new\b`, nil),
		"remove":     g.Remove(`C:\Docs\app\a`),
		"deny":       g.Deny(`C:\Docs\App`, ""),
		"many files": g.WriteManyFiles(`C:\Docs\App`, 3),
		"copy":       g.CopyFS(`C:\Docs\App`, fstest.MapFS{"x": {}}),
		"mount":      g.MountDir(`C:\Docs\App\a`, dir),
	} {
		if !errors.Is(err, errGuestHostDir) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if g.snapshot() != before {
		t.Error("a refused change changed the guest")
	}

	ended := g.hostDirs[0]
	done(t, g.Remove(`C:\docs`))
	done(t, g.WriteFile(`C:\Docs\App\a`, []byte("mine")))
	g.show(ended, guestEpoch) // as a reading that the removal overtook does
	expect(t, "after the mount ended", "mine", contentOf(t, g.snapshot(), "C/Docs/App/a"))
	data, err := os.ReadFile(filepath.Join(dir, "a"))
	done(t, err)
	expect(t, "the host's file", "x", string(data))
}

func TestOnlyDirectoriesAreMountedOnEmptyFolders(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "a"), "x")
	done(t, g.WriteFile("/full/x", nil))
	done(t, g.Mkdir("/empty"))
	for name, tc := range map[string]struct{ got, want error }{
		"a folder with content": {g.MountDir("/full", dir), fs.ErrExist},
		"a file of the guest":   {g.MountDir("/full/x", dir), fs.ErrExist},
		"a malformed path":      {g.MountDir("full", dir), fs.ErrInvalid},
		"a file of the host":    {g.MountDir("/mnt", filepath.Join(dir, "a")), errGuestNotFolder},
		"nothing":               {g.MountDir("/mnt", filepath.Join(dir, "none")), fs.ErrNotExist},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, tc.got, tc.want)
		}
	}
	expect(t, "unchanged", []string{"Volume1-Ext4", "Volume1-Ext4/empty", "Volume1-Ext4/full", "Volume1-Ext4/full/x"}, listing(t, g.snapshot(), ""))
	done(t, g.MountDir("/empty", dir))
	expect(t, "mounted on an empty folder", "x", contentOf(t, g.snapshot(), "Volume1-Ext4/empty/a"))
	if err := g.MountDir("/empty", dir); !errors.Is(err, errGuestHostDir) {
		t.Errorf("mounting twice: %v", err)
	}
}

func TestAWholePartitionCanBeAHostDirectory(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	dir := t.TempDir()
	writeHost(t, filepath.Join(dir, "etc/hosts"), "x")
	done(t, g.MountDir("/", dir))
	expect(t, "browsed", []string{"Volume1-Ext4", "Volume1-Ext4/etc", "Volume1-Ext4/etc/hosts"}, listing(t, g.snapshot(), ""))
	done(t, g.SetLayout(LinuxLayout()))
	expect(t, "after a new layout", []string{"Volume1-Ext4"}, listing(t, g.snapshot(), ""))
}

func TestCopyFSAddsAndReplaces(t *testing.T) {
	t.Parallel()
	clock := &guestClock{guestEpoch}
	g := newGuest(clock.now)
	done(t, g.SetLayout(WindowsLayout()))
	done(t, g.WriteFile(`C:\Web\Index.html`, []byte("old")))
	done(t, g.WriteFile(`C:\Web\kept`, []byte("kept")))
	changed := guestEpoch.Add(-time.Hour)
	done(t, g.WriteFile(`C:\Web\denied`, []byte("old")))
	done(t, g.Deny(`C:\Web\denied`, ""))
	clock.advance(time.Second)
	source := fstest.MapFS{
		"denied":     {Data: []byte("new")},
		"index.HTML": {Data: []byte("new"), ModTime: changed},
		"css/a.css":  {Data: []byte("css")},
		"link":       {Data: []byte("css"), Mode: fs.ModeSymlink},
	}
	done(t, g.CopyFS(`c:\web`, source))
	done(t, g.CopyFS(`c:\WEB`, source))
	expect(t, "browsed", []string{"C", "C/Web", "C/Web/css", "C/Web/css/a.css", "C/Web/denied", "C/Web/Index.html", "C/Web/kept", "C/Web/link"},
		listing(t, g.snapshot(), ""))
	expect(t, "replaced", "new", contentOf(t, g.snapshot(), "C/Web/Index.html"))
	expect(t, "case of a copied folder", "css", contentOf(t, g.snapshot(), "C/Web/CSS/A.CSS"))
	self, _, err := g.snapshot().browse("C/Web/Index.html")
	done(t, err)
	folder, _, err := g.snapshot().browse("C/Web")
	done(t, err)
	expect(t, "times", []time.Time{guestEpoch, changed, clock.t}, []time.Time{self.created, self.written, folder.written})
	expect(t, "a denied file", errGuestRefused.Error(), contentOf(t, g.snapshot(), "C/Web/denied"))
}

func TestCopyFSCopiesAllOrNothing(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, WindowsLayout())
	done(t, g.WriteFile(`C:\b\x`, nil))
	before := g.snapshot()
	for name, source := range map[string]fstest.MapFS{
		"names that NTFS cannot tell apart": {"a": {}, "A": {}},
		"a name that Windows reserves":      {"a": {}, "b:c": {}},
		"a special file":                    {"a": {}, "fifo": {Mode: fs.ModeNamedPipe}},
		"a file over a folder":              {"a": {}, "b": {}},
	} {
		if err := g.CopyFS(`C:\`, source); err == nil {
			t.Errorf("%s: copied", name)
		}
	}
	if g.snapshot() != before {
		t.Error("a failed copy changed the guest")
	}
}

// brokenFS fails to read whatever is called "bad".
type brokenFS struct{ fs.FS }

func (b brokenFS) Open(name string) (fs.File, error) {
	if filepath.Base(name) == "bad" {
		return nil, &fs.PathError{Op: "open", Path: "/MARKER-host/" + name, Err: errFull}
	}
	return b.FS.Open(name)
}

func TestReadingAHostNamesWhatFailed(t *testing.T) {
	t.Parallel()
	source := fstest.MapFS{
		"dir/bad": {Data: []byte("x")}, "bad/x": {}, "Good": {Data: []byte("x")}, "good": {}, "a:b": {},
	}
	reading := hostReading{source: brokenFS{source}, foldCase: true, stamp: guestEpoch, left: captureLimit}
	folder, err := reading.folder(".", nil)
	done(t, err)
	session := &tree{folder}
	expect(t, "read, without the names that NTFS cannot hold", []string{"bad", "dir", "dir/bad", "Good"}, listing(t, session, ""))
	for path, kind := range map[string]nodeKind{"bad": kindFolder, "dir/bad": kindFile} {
		self, _, err := session.browse(path)
		done(t, err)
		expect(t, path, node{path: path, kind: kind, size: -1, reason: "Cannot restore. full.", created: guestEpoch, accessed: guestEpoch, written: guestEpoch}, self)
	}
	reading.source, reading.left = fstest.MapFS{"a": {Data: []byte("12")}, "b": {Data: []byte("34")}}, 3
	folder, err = reading.folder(".", nil)
	done(t, err)
	expect(t, "beyond the limit", "Cannot restore. the directory is larger than the simulator keeps.", folder.entries.find("B").item.refusal)
	if err := frozenGuest(t, LinuxLayout()).CopyFS("/", brokenFS{source}); !errors.Is(err, errFull) {
		t.Errorf("copying what cannot be read: %v", err)
	}
}
