package cli

import (
	"context"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// built says what this program was built from.
type built struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty when it was not built from a checkout
	Go       string `json:"go"`
}

func (a *app) version() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  exactly(),
	}, 0, func(context.Context, []string) error {
		b := readBuild()
		return a.result(b, func(t *table) {
			t.row("zerto-rewind", b.Version)
			t.row("revision", orDash(b.Revision))
			t.row("go", b.Go)
		})
	})
}

func readBuild() built {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return built{Version: "unknown"}
	}
	b := built{Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
