package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

// validated is what is wrong with a catalogue file.
type validated struct {
	Path     string    `json:"path"`
	Valid    bool      `json:"valid"`
	Tools    int       `json:"tools"`
	Void     int       `json:"void"` // tools whose ruling has expired
	Problems []problem `json:"problems"`
}

// problem has no place where the whole file is meant.
type problem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Problem string `json:"problem"`
}

func (a *app) catalogValidate() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "validate [FILE]",
		Short: "Tell what is wrong with a catalogue file, line by line",
		Long:  `Validate reads a catalogue file, that in use unless FILE names another, and exits 1 if it is not valid.`,
		Args:  atMostOne("FILE"),
	}, 0, func(_ context.Context, args []string) error {
		path, _, err := a.catalogPath()
		if len(args) == 1 {
			path, err = args[0], nil
		}
		if err != nil {
			return err
		}
		v, err := validate(path)
		if err != nil {
			return err
		}
		if !v.Valid {
			a.exit = exitFailed
		}
		return a.result(v, func(t *table) { showValidated(t, v) })
	})
}

func validate(path string) (validated, error) {
	v := validated{Path: path, Problems: []problem{}}
	base, err := catalog.Default()
	if err != nil {
		return v, err
	}
	file, err := openCatalog(path)
	var damaged *catalogfile.DamagedError
	if errors.As(err, &damaged) {
		v.Problems = problemsIn(damaged.Problems)
		return v, nil
	}
	if errors.Is(err, fs.ErrNotExist) && path == "" {
		return v, &usageError{errors.New("no catalogue file is in use; name one")}
	}
	if err != nil {
		return v, err
	}
	if _, err := catalog.Merge(base, file.Catalog); err != nil {
		v.Problems = problemsIn(err)
		return v, nil
	}
	v.Valid, v.Tools = true, file.Catalog.Len()
	for e := range file.Catalog.Entries() {
		if e.Void != "" {
			v.Void++
		}
	}
	return v, nil
}

// problemsIn takes apart what was joined.
func problemsIn(err error) []problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []problem
		for _, part := range joined.Unwrap() {
			all = append(all, problemsIn(part)...)
		}
		return all
	}
	var place *catalog.LoadError
	if errors.As(err, &place) {
		return []problem{{place.Line, place.Column, place.Problem}}
	}
	return []problem{{Problem: err.Error()}}
}

func showValidated(t *table, v validated) {
	for _, p := range v.Problems {
		place := ""
		if p.Line > 0 {
			place = fmt.Sprintf("%d:%d:", p.Line, p.Column)
		}
		t.row(fmt.Sprintf("%s:%s %s", v.Path, place, p.Problem))
	}
	if !v.Valid {
		return
	}
	t.row("file", v.Path)
	t.row("tools", fmt.Sprint(v.Tools))
	if v.Void > 0 {
		t.row("expired", fmt.Sprintf("the rulings on %d of them", v.Void))
	}
}

func atMostOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactly(name)(c, args)
	}
}

// imported is what an import drafted.
type imported struct {
	Server string `json:"server"`
	// Path is where the drafts were written, empty if they were printed alone.
	Path string `json:"path,omitempty"`
	*catalogfile.Drafts

	More bool `json:"more"` // the server has tools that are not in the file that was read
}

func (a *app) catalogImport() *cobra.Command {
	var from, server string
	var write bool
	c := a.command(cobra.Command{
		Use:   "import --from-tools-list FILE --server SERVER [--write]",
		Short: "Draft entries for the tools of an MCP server, for a person to review",
		Long: `Import reads a server's answer to tools/list, and prints a catalogue with a draft for each tool that is not yet in the
catalogue. A draft is mutating if the tool says so of itself, else unknown, and never read_only: what a tool says of
itself is quoted above it as a comment, and is no more than a claim. With --write, drafts go into the user's file.`,
		Args: exactly(),
	}, 0, func(ctx context.Context, _ []string) error {
		list, err := toolsListIn(from)
		if err != nil {
			return err
		}
		known, err := a.catalogue()
		if err != nil {
			return err
		}
		done := imported{Server: server, Drafts: catalogfile.Draft(known, server, list.Tools), More: list.More}
		for _, s := range done.Skipped {
			a.say("no draft for %s: %s", s.Tool, s.Reason)
		}
		if list.More {
			a.say("the server has more tools than %s lists", from)
		}
		if write {
			if done.Path, err = a.catalogToWrite(); err != nil {
				return err
			}
			if err := catalogfile.Update(ctx, done.Path, done.Put); err != nil {
				return err
			}
			return a.result(done, func(t *table) {
				t.row("file", done.Path)
				t.row("drafts", fmt.Sprint(len(done.Entries)))
			})
		}
		if a.json {
			return a.document(done)
		}
		text, err := done.Document()
		if err == nil {
			_, err = a.io.Out.Write(text)
		}
		return err
	})
	c.Flags().StringVar(&from, "from-tools-list", "", "`file` with the server's answer to tools/list")
	c.Flags().StringVar(&server, "server", "", "`key` of the server in the host's settings")
	c.Flags().BoolVar(&write, "write", false, "put the drafts into the user's file")
	for _, needed := range []string{"from-tools-list", "server"} {
		_ = c.MarkFlagRequired(needed) // the flag is there
	}
	return c
}
