package zvmtest

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
)

// unzip returns the names of an archive in order, each file's with its content.
func unzip(tb testing.TB, data []byte) []string {
	tb.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	done(tb, err)
	names := []string{}
	for _, file := range z.File {
		r, err := file.Open()
		done(tb, err)
		content, err := io.ReadAll(r)
		done(tb, err)
		if strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		} else {
			names = append(names, file.Name+"="+string(content))
		}
	}
	return names
}

func TestArchiveNamesAreRelativeToTheCommonParent(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, Layout{{Root: "V", MountPoint: "/"}, {Root: "C", MountPoint: "C:", FS: NTFS}})
	for _, path := range []string{"/etc/a", "/etc/nginx/b", "/etcetera/c", "/var/d", `C:\e`} {
		done(t, g.WriteFile(path, []byte(path[len(path)-1:])))
	}
	done(t, g.Mkdir("/empty"))
	for name, tc := range map[string]struct{ paths, want []string }{
		"one file":                  {[]string{"V/etc/nginx/b"}, []string{"b=b"}},
		"one folder":                {[]string{"V/etc"}, []string{"etc/", "etc/a=a", "etc/nginx/", "etc/nginx/b=b"}},
		"an empty folder":           {[]string{"V/empty"}, []string{"empty/"}},
		"two folders deep":          {[]string{"V/etc/nginx/b", "V/etc/a"}, []string{"nginx/b=b", "a=a"}},
		"names with one beginning":  {[]string{"V/etc/a", "V/etcetera/c"}, []string{"etc/a=a", "etcetera/c=c"}},
		"two partitions":            {[]string{"C/e", "V/var/d"}, []string{"C/e=e", "V/var/d=d"}},
		"a partition":               {[]string{"C"}, []string{"C/", "C/e=e"}},
		"the guest":                 {[]string{"V/etc/a", ""}, []string{"C/", "C/e=e", "V/", "V/empty/", "V/etc/", "V/etc/a=a", "V/etc/nginx/", "V/etc/nginx/b=b", "V/etcetera/", "V/etcetera/c=c", "V/var/", "V/var/d=d"}},
		"a folder and what it has":  {[]string{"V/etc/nginx/b", "V/etc/nginx", "V/etc/a"}, []string{"nginx/", "nginx/b=b", "a=a"}},
		"one file twice":            {[]string{"C/e", "C/E"}, []string{"e=e"}},
		"spelled as it was written": {[]string{"c/E"}, []string{"e=e"}},
		"nothing":                   {nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			done(t, g.snapshot().archive(&b, tc.paths))
			expect(t, "entries", tc.want, unzip(t, b.Bytes()))
		})
	}
}

func TestArchiveLeavesOutWhatCannotBeDownloaded(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	for _, path := range []string{"/dir/a", "/dir/denied", "/dir/vault/x", "/dir/z"} {
		done(t, g.WriteFile(path, []byte("MARKER-content")))
	}
	done(t, g.Symlink("a", "/dir/link"))
	done(t, g.Deny("/dir/denied", ""))
	done(t, g.Deny("/dir/vault", ""))
	for _, paths := range [][]string{{"Volume1-Ext4/dir"}, {"Volume1-Ext4/dir", "Volume1-Ext4/dir/link", "Volume1-Ext4/dir/denied"}} {
		var b bytes.Buffer
		done(t, g.snapshot().archive(&b, paths))
		expect(t, "entries", []string{"dir/", "dir/a=MARKER-content", "dir/z=MARKER-content"}, unzip(t, b.Bytes()))
	}
}

func TestArchiveOfAnUnknownPathWritesNothing(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteFile("/a", nil))
	done(t, g.WriteFile("/vault/x", nil))
	done(t, g.Deny("/vault", ""))
	for path, want := range map[string]error{
		"Volume1-Ext4/none": errGuestNotFound, "Volume1-Ext4/vault/x": errGuestNotFound, "../a": errGuestBadPath,
	} {
		var b bytes.Buffer
		if err := g.snapshot().archive(&b, []string{"Volume1-Ext4/a", path}); !errors.Is(err, want) || b.Len() != 0 {
			t.Errorf("archive of %q: %v after %d bytes, want %v after none", path, err, b.Len(), want)
		}
	}
}

func TestArchiveKeepsNamesAndStates(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	names := []string{"Données", "a\u0308", "100%.txt", `back\slash`, "invalid \xff", "😀"}
	for _, name := range names {
		done(t, g.WriteFile("/dir/"+name, []byte("old")))
	}
	before := g.snapshot()
	done(t, g.Remove("/dir"))
	var b bytes.Buffer
	done(t, before.archive(&b, []string{"Volume1-Ext4/dir"}))
	got := map[string]bool{}
	for _, entry := range unzip(t, b.Bytes()) {
		got[entry] = true
	}
	for _, name := range names {
		if !got["dir/"+name+"=old"] {
			t.Errorf("%q is not in %v", name, got)
		}
	}
}

var errFull = errors.New("full")

// brokenWriter fails after its value in bytes.
type brokenWriter int

func (w *brokenWriter) Write(p []byte) (int, error) {
	if *w -= brokenWriter(len(p)); *w < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestArchiveEndsWithItsWriter(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	done(t, g.WriteZeros("/endless", 1<<62))
	done(t, g.Mkdir("/dir/sub"))
	done(t, g.WriteManyFiles("/dir/sub", 1000))
	for _, path := range []string{"Volume1-Ext4/endless", "Volume1-Ext4/dir"} {
		w := brokenWriter(8 << 10)
		if err := g.snapshot().archive(&w, []string{path}); !errors.Is(err, errFull) {
			t.Errorf("archive of %q to a full writer: %v", path, err)
		}
	}
}

// sparseFile keeps the blocks written to it that are not all zeros.
type sparseFile struct {
	blocks map[int64][]byte
	size   int64
}

const sparseBlock = 1 << 16

func (s *sparseFile) Write(p []byte) (int, error) {
	n := len(p)
	var zeros [sparseBlock]byte
	for len(p) > 0 {
		at, within := s.size/sparseBlock, s.size%sparseBlock
		part := p[:min(int64(len(p)), sparseBlock-within)]
		if !bytes.Equal(part, zeros[:len(part)]) {
			if s.blocks[at] == nil {
				s.blocks[at] = make([]byte, sparseBlock)
			}
			copy(s.blocks[at][within:], part)
		}
		p, s.size = p[len(part):], s.size+int64(len(part))
	}
	return n, nil
}

func (s *sparseFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < s.size {
		within := off % sparseBlock
		part := p[n:min(int64(len(p)), int64(n)+sparseBlock-within, int64(n)+s.size-off)]
		clear(part)
		if block := s.blocks[off/sparseBlock]; block != nil {
			copy(part, block[within:])
		}
		n, off = n+len(part), off+int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestArchiveGoesBeyondFourGiB(t *testing.T) {
	t.Parallel()
	g := frozenGuest(t, LinuxLayout())
	const size = 4<<30 + 1
	done(t, g.WriteZeros("/a/large", size))
	done(t, g.WriteFile("/a/small", []byte("after it")))
	file := &sparseFile{blocks: map[int64][]byte{}}
	done(t, g.snapshot().archive(file, []string{"Volume1-Ext4/a"}))
	z, err := zip.NewReader(file, file.size)
	done(t, err)
	type entry struct {
		size   uint64
		method uint16
	}
	got := map[string]entry{}
	for _, file := range z.File {
		got[file.Name] = entry{file.UncompressedSize64, file.Method}
	}
	want := map[string]entry{"a/": {0, zip.Store}, "a/large": {size, zip.Store}, "a/small": {8, zip.Deflate}}
	if !maps.Equal(want, got) {
		t.Errorf("sizes and methods: want %v, got %v", want, got)
	}
	small, err := z.Open("a/small")
	done(t, err)
	data, err := io.ReadAll(small)
	done(t, err)
	expect(t, "the entry behind it", "after it", string(data))
}
