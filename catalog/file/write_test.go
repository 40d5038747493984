package catalogfile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

func putting(tool string) func(*catalogfile.Edit) error {
	return func(e *catalogfile.Edit) error {
		return e.Put(catalog.Entry{Server: "s", Tool: tool, Class: catalog.Mutating})
	}
}

// list returns the names in a folder but for locks.
func list(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestUpdateMakesTheFileAndItsFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(folder, "catalog.json")
	if err := catalogfile.Update(t.Context(), path, putting("a")); err != nil {
		t.Fatal(err)
	}
	f, err := catalogfile.Open(path, now)
	if err != nil || f.Catalog.Len() != 1 {
		t.Fatalf("file %+v, error %v", f, err)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, path + ".lock": 0o600, folder: 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

func TestUpdateKeepsTheMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o660} {
		path := write(t, `{"version": 1}`)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := catalogfile.Update(t.Context(), path, putting("a")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != mode {
			t.Errorf("mode %o became %o", mode, got)
		}
	}
}

// A file that another tool keeps, and links to, is edited where it is.
func TestUpdateFollowsLinksAndKeepsThem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		behaviour string
		links     [][2]string // name and what it leads to, in a folder with the folders real and linked -> real/deep
		there     bool
		path      string
		want      string // that was edited
	}{
		{"an absolute link", [][2]string{{"c.json", "ROOT/real/c.json"}}, true, "c.json", "real/c.json"},
		{"a relative link", [][2]string{{"c.json", "real/c.json"}}, true, "c.json", "real/c.json"},
		{"a link to a link", [][2]string{{"c.json", "d.json"}, {"d.json", "real/c.json"}}, true, "c.json", "real/c.json"},
		{"a link up from a linked folder", [][2]string{{"real/deep/c.json", "../c.json"}}, true, "linked/c.json", "real/c.json"},
		{"a link to a file that is not there", [][2]string{{"c.json", "real/c.json"}}, false, "c.json", "real/c.json"},
		{"no link in the last place", nil, true, "linked/../c.json", "real/c.json"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "real", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		links := append([][2]string{{"linked", "real/deep"}}, tt.links...)
		for _, link := range links {
			if err := os.Symlink(strings.ReplaceAll(link[1], "ROOT", root), filepath.Join(root, link[0])); err != nil {
				t.Fatal(err)
			}
		}
		target := filepath.Join(root, tt.want)
		if tt.there {
			if err := os.WriteFile(target, []byte("{\"version\": 1} // mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Not Join, which would cut "linked/.." away.
		if err := catalogfile.Update(t.Context(), root+"/"+tt.path, putting("a")); err != nil {
			t.Errorf("%s: %v", tt.behaviour, err)
			continue
		}
		info, err := os.Lstat(target)
		if err != nil || !info.Mode().IsRegular() || !strings.Contains(content(t, target), `"a"`) {
			t.Errorf("%s: %v, %v", tt.behaviour, info, err)
		}
		for _, link := range links {
			if info, err := os.Lstat(filepath.Join(root, link[0])); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s: link %s is now %v, %v", tt.behaviour, link[0], info, err)
			}
		}
	}
}

// The file is replaced in one step, so what else has its old content keeps all of it.
func TestUpdateLeavesHardLinksTheOldContent(t *testing.T) {
	t.Parallel()
	path := write(t, `{"version": 1}`)
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	if err := catalogfile.Update(t.Context(), path, putting("a")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, other); got != `{"version": 1}` || !strings.Contains(content(t, path), `"a"`) {
		t.Errorf("the other name has %s, the file %s", got, content(t, path))
	}
}

func TestUpdateRefusesWhatIsNoPlaceForAFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, to := range map[string]string{"round": "about", "about": "round", "self": "self", "nowhere": "none/c.json"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "locked.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := list(t, root)
	for name, want := range map[string]string{
		"round": "links", "self": "links", "nowhere": "none", ".": "is not a file", "locked": "was not changed: a lock beside it could not be had",
	} {
		err := catalogfile.Update(t.Context(), filepath.Join(root, name), putting("a"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	if diff := cmp.Diff(before, list(t, root)); diff != "" {
		t.Errorf("the folder changed (-before +after):\n%s", diff)
	}
}

func TestADamagedFileIsReportedAndKept(t *testing.T) {
	t.Parallel()
	for behaviour, text := range map[string]string{
		"an empty file": "", "half a file": `{"version": 1, "ser`, "a file for a later version": `{"version": 2}`,
		"a tool twice": `{"version": 1, "servers": [{"server": "s", "tools": [{"names": ["a", "A"], "class": "mutating"}]}]}`,
		"UTF-16":       "\xff\xfe{\x00}\x00",
	} {
		path := write(t, text)
		err := catalogfile.Update(t.Context(), path, putting("b"))
		var damaged *catalogfile.DamagedError
		if !errors.As(err, &damaged) || damaged.Path != path {
			t.Errorf("%s: error %v", behaviour, err)
		}
		if got := content(t, path); got != text {
			t.Errorf("%s: the file is now %q", behaviour, got)
		}
	}
}

// A rename that is refused for good leaves everything as it was.
func TestAFailedReplacementLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	for behaviour, failure := range map[string]error{
		"a folder that may not be written": fs.ErrPermission, "a full disk": syscall.ENOSPC, "a file in use for ever": catalogfile.AccessDenied,
	} {
		synctest.Test(t, func(t *testing.T) {
			path := write(t, `{"version": 1}`)
			tries := 0
			err := catalogfile.UpdateWith(t.Context(), func(from, to string) error {
				tries++
				return &os.LinkError{Op: "rename", Old: from, New: to, Err: failure}
			}, path, putting("a"))
			if !errors.Is(err, failure) || !strings.Contains(err.Error(), path+" was not changed") {
				t.Errorf("%s: error %v", behaviour, err)
			}
			inUse := errors.Is(failure, catalogfile.AccessDenied)
			if strings.Contains(err.Error(), "virus scanner") != inUse || (tries > 1) != inUse || tries > 20 {
				t.Errorf("%s: %d tries, error %v", behaviour, tries, err)
			}
			if got := content(t, path); got != `{"version": 1}` {
				t.Errorf("%s: the file is now %s", behaviour, got)
			}
			if names := list(t, filepath.Dir(path)); len(names) != 1 {
				t.Errorf("%s: left behind: %v", behaviour, names)
			}
		})
	}
}

// On Windows a file that somebody reads cannot be replaced at once.
func TestAFileInUseIsReplacedWhenItIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := write(t, `{"version": 1}`)
		refusals := []error{catalogfile.AccessDenied, catalogfile.SharingViolation, catalogfile.AccessDenied}
		err := catalogfile.UpdateWith(t.Context(), func(from, to string) error {
			if len(refusals) > 0 {
				refusal := refusals[0]
				refusals = refusals[1:]
				return &os.LinkError{Op: "rename", Old: from, New: to, Err: refusal}
			}
			return os.Rename(from, to)
		}, path, putting("a"))
		if err != nil || !strings.Contains(content(t, path), `"a"`) {
			t.Errorf("error %v, file %s", err, content(t, path))
		}
	})
}

func TestWaitingForAFileInUseEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := write(t, `{"version": 1}`)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		err := catalogfile.UpdateWith(ctx, func(string, string) error {
			cancel(gone)
			return catalogfile.SharingViolation
		}, path, putting("a"))
		if !errors.Is(err, gone) || len(list(t, filepath.Dir(path))) != 1 {
			t.Errorf("error %v, folder %v", err, list(t, filepath.Dir(path)))
		}
	})
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path := write(t, `{"version": 1}`)
	err := catalogfile.Update(t.Context(), path, func(*catalogfile.Edit) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return catalogfile.Update(ctx, path, putting("a"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// workersOf is set in the processes that TestProcessesLoseNothing starts.
const workerOf = "CATALOGFILE_TEST_WORKER"

func TestMain(m *testing.M) {
	if path := os.Getenv(workerOf); path != "" {
		os.Exit(work(path, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

const (
	processes = 4
	putsEach  = 10
)

func work(path, name string) int {
	for i := range putsEach {
		if err := catalogfile.Update(context.Background(), path, putting(fmt.Sprintf("tool_%s_%d", name, i))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	path := write(t, "{\n  \"version\": 1 // ours\n}\n")
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], fmt.Sprint(i))
			cmd.Env = append(os.Environ(), workerOf+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	group.Wait()
	f, err := catalogfile.Open(path, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Catalog.Len(); got != processes*putsEach || !strings.Contains(content(t, path), "// ours") {
		t.Errorf("%d tools are left of %d:\n%s", got, processes*putsEach, content(t, path))
	}
	if names := list(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}
