package install_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/adapters/hook/install"
)

func TestWhatAHookDoesNotSeeIsToldForEveryHost(t *testing.T) {
	t.Parallel()
	for _, host := range install.Hosts() {
		if len(install.Gaps(host)) == 0 {
			t.Errorf("nothing is told of %s", host)
		}
	}
	codex := strings.Join(install.Gaps("codex"), "\n")
	for _, uncovered := range []string{"nested exec of code mode", "on Windows some ways of running commands and apply_patch"} {
		if !strings.Contains(codex, uncovered) {
			t.Errorf("of codex it is not told: %s", uncovered)
		}
	}
}

// A plugin that names its hooks twice has none. There is no plugin here; whoever adds one has its host validate it.
func TestNoPluginIsShippedThatNobodyValidates(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(os.DirFS("../../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".bin"):
			return fs.SkipDir
		case d.Name() == ".claude-plugin", d.Name() == "plugin.json":
			t.Errorf("%s is part of a plugin", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
