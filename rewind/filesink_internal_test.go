package rewind

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What goes wrong after the last byte, when a full disk shows at the closing or something has taken the name, leaves neither
// the new file nor its temporary one, and what was there as it was.
func TestLaw8_AFileThatCannotBeFinishedLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(dir string, p *pendingDest) error
		names []string // that are there at the end
	}{
		"the file cannot be closed":  {func(_ string, p *pendingDest) error { return p.file.Close() }, []string{"f"}},
		"the temporary file is gone": {func(_ string, p *pendingDest) error { return p.folder.Remove(p.temp) }, []string{"f"}},
		"a folder has taken the name": {func(dir string, _ *pendingDest) error {
			return errors.Join(os.Remove(filepath.Join(dir, "f")), os.MkdirAll(filepath.Join(dir, "f", "in"), 0o700))
		}, []string{"f"}},
		"a link has taken the name": {func(dir string, _ *pendingDest) error {
			return errors.Join(os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g")), os.Symlink("g", filepath.Join(dir, "f")))
		}, []string{"f", "g"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			dest := filepath.Join(dir, "f")
			if err := os.WriteFile(dest, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := ToFile(dest, Replace()).open()
			if err != nil {
				t.Fatal(err)
			}
			_, err = file.Write([]byte("new"))
			if err := errors.Join(err, tt.spoil(dir, file.(*pendingDest))); err != nil {
				t.Fatal(err)
			}
			var failed *DestinationError
			if err := file.commit(); !errors.As(err, &failed) || failed.Dest != dest {
				t.Errorf("got %v, want a *DestinationError", err)
			}
			file.discard()
			var names []string
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if err != nil || len(names) != len(tt.names) || names[0] != tt.names[0] {
				t.Errorf("left %q, %v, want %q", names, err, tt.names)
			}
			for _, n := range names {
				info, err := os.Stat(filepath.Join(dir, n))
				content, _ := os.ReadFile(filepath.Join(dir, n))
				if err != nil || info.Mode()&fs.ModeType == 0 && string(content) != "mine" {
					t.Errorf("%s holds %q, %v", n, content, err)
				}
			}
		})
	}
}
