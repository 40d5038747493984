package mcpadapter

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDestinationIsNoLongerThanSystemsTake(t *testing.T) {
	t.Parallel()
	for dest, want := range map[string]bool{
		strings.Repeat("a/", maxDestination/2-1) + "ab": true, strings.Repeat("a/", maxDestination/2) + "a": false,
		strings.Repeat("a/", 2500) + "a": false,
	} {
		dir := t.TempDir()
		d, err := (&toolset{recoverDir: dir}).belowRecoverDir(dest, true)
		if (err == nil) != want {
			t.Errorf("%d bytes: %v, want it taken: %t", len(dest), err, want)
		}
		if err == nil {
			if err := d.folder.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d bytes left %v behind, %v", len(dest), left, err)
		}
	}
}

// Whatever the destination, nothing appears but below the recovery folder, and no file before there is one to recover.
func FuzzDestinationStaysBelowTheRecoveryFolder(f *testing.F) {
	for _, seed := range []string{
		"a", "a/b", "../a", "/a", "a/../../b", ".", "", "a//b", "out/a", "out", `a\b`, "a\x00", "a\n", "CON", "a:b", "ü", "\xff",
		strings.Repeat("a/", 100) + "a", strings.Repeat("a", 300), strings.Repeat("a/", 2500) + "a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dest string) {
		parent := t.TempDir()
		dir, outside := filepath.Join(parent, "in"), filepath.Join(parent, "outside")
		for _, d := range []string{dir, outside} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		d, err := (&toolset{recoverDir: dir}).belowRecoverDir(dest, true)
		if err == nil {
			if !strings.HasPrefix(d.path, dir+string(filepath.Separator)) {
				t.Errorf("%q is written to %s", dest, d.path)
			}
			if err := d.folder.Close(); err != nil {
				t.Error(err)
			}
		}
		err = filepath.WalkDir(parent, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && (entry.Type().IsRegular() || strings.HasPrefix(path, outside+"/")) {
				t.Errorf("%q left %s behind", dest, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
