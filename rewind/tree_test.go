package rewind_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// tree is what site holds, by path below it.
var tree = map[string]string{
	"nginx.conf": "server {}\n", "mime.types": "text/html\n", "empty": "",
	"conf.d/a.conf": "a", "conf.d/b.conf": "bb", "conf.d/deep/er/c.conf": "ccc",
}

func newTreeWorld(t *testing.T, opts ...zvmtest.Option) *world {
	t.Helper()
	w := newWorld(t, opts...)
	for name, content := range tree {
		must(t, w.web.Guest().WriteFile("/srv/site/"+name, []byte(content)))
	}
	must(t, w.web.Guest().Mkdir("/srv/site/bare"))
	return w
}

func folderRoot(t *testing.T) (root *os.Root, dir string) {
	t.Helper()
	dir = t.TempDir()
	return openRoot(t, dir), dir
}

// contents reads every regular file below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(filepath.Join(dir, name))
			got[name] = string(data)
		}
		return err
	}))
	return got
}

func omitted(r *rewind.TreeRecovery) string {
	var names []string
	for _, s := range r.Skipped {
		names = append(names, strings.TrimPrefix(s.GuestPath, "Volume1-Ext4/srv/site/"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestRecoverTreeBringsBackTheGuardedFolderWithEvidence(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zvmtest.Option{
		"several at once":      nil,
		"one file at a time":   {zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused)},
		"even one file zipped": {zvmtest.WithSwitch(zvmtest.DownloadZipped)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t, opts...)
			g := w.guard(t, "web01")
			must(t, w.web.Guest().Remove("/srv/site"))
			root, dir := folderRoot(t)
			r, err := w.RecoverTree(t.Context(), g, "/srv/site", root)
			must(t, err)
			if diff := cmp.Diff(tree, contents(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			var bytes int64
			for _, f := range r.Files {
				bytes += f.Bytes
				sum := sha256.Sum256([]byte(tree[f.Dest]))
				if f.SHA256 != hex.EncodeToString(sum[:]) || f.GuestPath != r.GuestPath+"/"+f.Dest {
					t.Errorf("evidence %+v", f)
				}
			}
			if r.Dest != dir || len(r.Files) != len(tree) || r.Folders != 4 || r.Bytes != bytes || len(r.Skipped) != 0 || !r.Unmounted || r.FLRSessionID == "" {
				t.Errorf("result %+v", r)
			}
			info, err := os.Stat(filepath.Join(dir, "bare"))
			must(t, err)
			if info.Mode().Perm() != 0o700 {
				t.Errorf("folder mode %v, want 0700", info.Mode())
			}
			w.nothingMounted(t)
		})
	}
}

func names(r *rewind.TreeRecovery) []string {
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Dest)
	}
	return names
}

// A server may refuse a download only because others are running, and not say so.
func TestAFileThatIsRefusedInCompanyIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t, zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused))
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/flrs/*/download").Times(3).Status(500, `{"Message":"scripted: another download is running"}`)
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), g, "/srv/site/conf.d", root)
	must(t, err)
	if len(r.Skipped) != 0 || len(contents(t, dir)) != 3 {
		t.Errorf("left out %+v, brought %q", r.Skipped, names(r))
	}
}

func TestFilesOfAFolderComeInOneRequestWhereTheServerLetsThem(t *testing.T) {
	t.Parallel()
	if !tellsAll() {
		return // this ZVM may send one file at a time
	}
	w := newWorld(t)
	must(t, w.web.Guest().WriteManyFiles("/many", 100))
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/many", root)
	must(t, err)
	if n := w.sim.Count("POST", "/v1/flrs/*/download"); n != 1 || len(r.Files) != 100 || len(contents(t, dir)) != 100 {
		t.Errorf("%d requests brought %d files", n, len(r.Files))
	}
}

func TestWhatCannotComeBackIsLeftOutAndListed(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	guest := w.web.Guest()
	must(t, guest.Symlink("/etc/passwd", "/srv/site/link"))
	must(t, guest.WriteFile("/srv/site/denied", []byte("x")))
	must(t, guest.Deny("/srv/site/denied", "scripted: denied"))
	for _, name := range []string{"notes:secret", "NUL", "x.", "Report.txt", "REPORT.TXT", "D/x", "d/x"} {
		must(t, guest.WriteFile("/srv/site/"+name, []byte(name)))
	}
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site", root)
	must(t, err)
	if diff := cmp.Diff("D NUL REPORT.TXT Report.txt d denied link notes:secret x.", omitted(r)); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tree, contents(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, s := range r.Skipped {
		if s.Reason == "" || tellsAll() && strings.HasSuffix(s.GuestPath, "/denied") && s.Reason != "scripted: denied" {
			t.Errorf("left out without the reason: %+v", s)
		}
	}
}

func TestRecoverTreeReplacesNothingAndFollowsNoLink(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(dir, elsewhere string) error{
		"a file is there": func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte("mine"), 0o600)
		},
		"a link to a file": func(dir, out string) error {
			return os.Symlink(filepath.Join(out, "x"), filepath.Join(dir, "nginx.conf"))
		},
		"a link to a folder":     func(dir, out string) error { return os.Symlink(out, filepath.Join(dir, "conf.d")) },
		"a link within the root": func(dir, _ string) error { return os.Symlink(".", filepath.Join(dir, "conf.d")) },
		"a file for a folder":    func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "conf.d"), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			root, dir := folderRoot(t)
			out := t.TempDir()
			must(t, plant(dir, out))
			r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site", root)
			var dest *rewind.DestinationError
			if !errors.As(err, &dest) || r == nil || !r.Unmounted {
				t.Errorf("got %+v, %v, want what has arrived and a *DestinationError", r, err)
			}
			folderIs(t, out)
			for file, content := range contents(t, dir) {
				if want, known := tree[file]; known && content != want && content != "mine" {
					t.Errorf("%s holds %q", file, content)
				}
			}
			w.nothingMounted(t)
		})
	}
}

func TestAZipThatTheServerMadeUpBringsOnlyWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for name, brought := range map[string]string{ // of the entry that holds "x", and what a.conf then is
		"a.conf":                                 "x",
		"conf.d/a.conf":                          "x",
		`conf.d\a.conf`:                          "x",
		"srv/site/conf.d/a.conf":                 "x",
		"Volume1-Ext4/srv/site/conf.d/a.conf":    "x",
		"../../b/a.conf":                         "a",
		`..\..\b\a.conf`:                         "a",
		"../conf.d/a.conf":                       "a",
		"b/a.conf":                               "a",
		"A.CONF":                                 "a",
		"/a.conf":                                "a",
		"/Volume1-Ext4/srv/site/conf.d/a.conf":   "a",
		`C:\a.conf`:                              "a",
		"C:/Volume1-Ext4/srv/site/conf.d/a.conf": "a",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			made := zipOf(t, "../../evil", "x", name, "x", "sub/b.conf", "zz", "b.conf", "zz")
			w.sim.On("POST", "/v1/flrs/*/download").Answer(200, string(made), "application/zip")
			root, dir := folderRoot(t)
			r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site/conf.d", root)
			must(t, err)
			// Of two entries that may be one file none is, and the file is asked for by itself.
			want := map[string]string{"a.conf": brought, "b.conf": "bb", "deep/er/c.conf": "ccc"}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if sum := sha256.Sum256([]byte(brought)); r.Files[0].SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("evidence %+v of a file that holds %q", r.Files[0], brought)
			}
		})
	}
}

func TestFilesThatComeOnlyUnderOtherNamesAreLeftOutAndListed(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.sim.On("POST", "/v1/flrs/*/download").Always().Answer(200, string(zipOf(t, "../../b/x", "a")), "application/zip")
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site/conf.d", root)
	must(t, err)
	if diff := cmp.Diff("conf.d/a.conf conf.d/b.conf conf.d/deep/er/c.conf", omitted(r)); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	for _, s := range r.Skipped {
		if !strings.Contains(s.Reason, "../../b/x") {
			t.Errorf("left out without the entry's name: %+v", s)
		}
	}
	if diff := cmp.Diff(map[string]string{}, contents(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	w.nothingMounted(t)
}

func TestRecoverTreeOfNoFolder(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	g := w.guard(t, "web01")
	root, dir := folderRoot(t)
	var refused *rewind.NotDownloadableError
	if r, err := w.RecoverTree(t.Context(), g, nginxConf, root); !errors.As(err, &refused) || r != nil {
		t.Errorf("a file gives %+v, %v, want *NotDownloadableError", r, err)
	}
	var missing *rewind.PathNotFoundError
	if r, err := w.RecoverTree(t.Context(), g, "/srv/none", root); !errors.As(err, &missing) || r != nil {
		t.Errorf("got %+v, %v, want *PathNotFoundError", r, err)
	}
	if _, err := w.RecoverTree(t.Context(), g, "/srv/site", nil); err == nil {
		t.Error("there is no root, and no error")
	}
	folderIs(t, dir)
}

func TestLaw8_ATreeThatIsCutHoldsWholeFilesAndSaysWhich(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t, zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused))
	g := w.guard(t, "web01")
	w.sim.On("POST", "/v1/flrs/*/download").After(2).Always().Status(503, `{"Message":"scripted"}`)
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), g, "/srv/site", root)
	if err == nil || r == nil || !r.Unmounted {
		t.Fatalf("got %+v, %v, want what has arrived and an error", r, err)
	}
	got := contents(t, dir)
	if len(got) != len(r.Files) {
		t.Errorf("%d files are there, %d are told", len(got), len(r.Files))
	}
	for name, content := range got {
		if content != tree[name] {
			t.Errorf("%s holds %q", name, content)
		}
	}
}

func TestFoldersThatLieTooDeepAreLeftOutAndListed(t *testing.T) {
	t.Parallel()
	const most = 128
	w := newWorld(t)
	last := "/srv" + strings.Repeat("/d", most)
	must(t, w.web.Guest().WriteFile(last+"/file", []byte("x")))
	must(t, w.web.Guest().WriteFile(last+"/below/file", []byte("x")))
	root, dir := folderRoot(t)
	r, err := w.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv", root)
	must(t, err)
	want := []rewind.TreeOmits{{GuestPath: "Volume1-Ext4" + last + "/below", Reason: "it lies too deep"}}
	if diff := cmp.Diff(want, r.Skipped); diff != "" || r.Folders != most {
		t.Errorf("%d folders, left out (-want +got):\n%s", r.Folders, diff)
	}
	if diff := cmp.Diff(map[string]string{strings.TrimPrefix(last, "/srv/") + "/file": "x"}, contents(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestTreeRecoveryJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(rewind.TreeRecovery{})
	must(t, err)
	want := "bytes changeId checkpointId checkpointTime dest files flrSessionId folders guestPath skipped stages tag unmounted vm vmId vpgId"
	if diff := cmp.Diff(want, strings.Join(keys(t, data), " ")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// A server may refuse everything in a session that is gone as it refuses one file: nothing of that is a file left out.
func TestATreeEndsWhenItIsTheSessionThatIsRefused(t *testing.T) {
	t.Parallel()
	for what, pattern := range map[string]string{"a file": download, "a folder": browse} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			_, s := connect(t, w.sim, rewind.WithProgress(func(e rewind.Event) {
				if e.Stage == rewind.StageDownloading && e.Bytes == 0 {
					w.sim.On("GET", "/v1/flrs/"+string(e.Session)).Always().Status(500, `{"Message":"scripted: no such session"}`)
					w.sim.On("POST", pattern).Always().Status(500, `{"Message":"scripted"}`)
				}
			}))
			root, _ := folderRoot(t)
			r, err := s.RecoverTree(t.Context(), w.guard(t, "web01"), "/srv/site", root)
			if err == nil || !strings.Contains(err.Error(), "no such session") || r == nil || len(r.Skipped) > 0 {
				t.Errorf("got %+v, %v", r, err)
			}
			w.nothingMounted(t)
		})
	}
}
