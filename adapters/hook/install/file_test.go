package install_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

func TestLinksAndModesStay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Log("links need a right of their own there")
		return
	}
	for name, to := range map[string]string{"absolute": "DIR/dotfiles/real.json", "relative": "../../dotfiles/real.json", "dangling": "../../dotfiles/none.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			root := filepath.Dir(b.place.Home)
			for _, dir := range []string{filepath.Join(root, "dotfiles"), filepath.Dir(b.path)} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			real := filepath.Join(root, "dotfiles", "real.json")
			if err := os.WriteFile(real, []byte("{}"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(real, 0o640); err != nil {
				t.Fatal(err)
			}
			link := strings.Replace(to, "DIR", root, 1)
			if err := os.Symlink(link, b.path); err != nil {
				t.Fatal(err)
			}
			b.install()
			if got, err := os.Readlink(b.path); err != nil || got != link {
				t.Errorf("the link is %q, %v", got, err)
			}
			if !strings.Contains(b.text(), "onFailure") {
				t.Errorf("the file holds %q", b.text())
			}
			info, err := os.Stat(b.path)
			if err != nil {
				t.Fatal(err)
			}
			want := fs.FileMode(0o640)
			if name == "dangling" {
				want = 0o600
			}
			if info.Mode().Perm() != want {
				t.Errorf("mode %v, want %v", info.Mode().Perm(), want)
			}
		})
	}
	b := newBench(t, "claude")
	b.write("{}")
	for _, step := range []error{os.Remove(b.path), os.Symlink(b.path, b.path)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if _, err := install.Plan(b.hook, b.place); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestBackupKeepsTheFirstBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, "claude")
	b.write(`{"a":1}`)
	b.install()
	b.hook.Binary = "/usr/local/bin/zerto-rewind"
	b.install()
	backup, err := os.ReadFile(b.path + ".zerto-rewind-backup")
	if err != nil || string(backup) != `{"a":1}` {
		t.Errorf("the backup holds %q, %v", backup, err)
	}
	info, err := os.Stat(b.path + ".zerto-rewind-backup")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is %v, %v", info.Mode(), err)
	}
	b.uninstall()
	if b.text() != `{"a":1}` {
		t.Errorf("given back: %q", b.text())
	}
}

func TestFileChangedMeanwhileIsNotWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, "claude")
	c, err := install.Plan(b.hook, b.place)
	if err != nil {
		t.Fatal(err)
	}
	b.write(`{"a":1}`)
	if err := c.Apply(); !errors.Is(err, install.ErrChanged) {
		t.Errorf("error %v", err)
	}
	if b.text() != `{"a":1}` {
		t.Errorf("the file holds %q", b.text())
	}
}
