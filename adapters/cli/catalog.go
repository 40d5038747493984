package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	catalogfile "github.com/zerto-rewind/zerto-rewind/catalog/file"
)

func (a *app) catalog() *cobra.Command {
	c := group(
		cobra.Command{
			Use:   "catalog",
			Short: "Look up what tools are, and rule on them",
			Long: `The catalogue says which tools are read_only and which are mutating. A tool in neither list is unknown, and unknown is not
safe: the human is asked. A user's own file is laid over the built-in data: that of --catalog, else catalog.json in the
state folder if it is there. It is JSON, and may have comments.`,
		},
		a.catalogList(), a.catalogShow(), a.check(), a.catalogRule(), a.catalogAddMutating(), a.catalogValidate(), a.catalogImport(),
	)
	return a.settings.offline(c, setCatalog, setStateDir, setAgent, setHuman)
}

// rulebook is what is known of tools, and what a person chose about verdicts on them.
type rulebook struct {
	catalog   *catalog.Catalog  // the user's file laid over the built-in data
	file      *catalogfile.File // nil without one
	policy    catalogfile.Policy
	vmAliases map[string]string
}

// rules reads the user's file, if there is one.
func (a *app) rules() (*rulebook, error) {
	base, err := catalog.Default()
	if err != nil {
		return nil, err
	}
	path, chosen, err := a.catalogPath()
	if err != nil {
		return nil, err
	}
	file, err := openCatalog(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) && !chosen {
		return &rulebook{catalog: base}, nil
	}
	var damaged *catalogfile.DamagedError
	switch {
	case errors.As(err, &damaged):
		return nil, &settingsError{err}
	case err != nil:
		return nil, &settingsError{fmt.Errorf("%s: %w", setCatalog.variable, err)}
	}
	merged, err := catalog.Merge(base, file.Catalog)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("%s: %w", path, err)}
	}
	return &rulebook{merged, file, file.Policy, file.VMAliases}, nil
}

func openCatalog(path string) (*catalogfile.File, error) {
	if path == "" {
		return nil, fs.ErrNotExist
	}
	return catalogfile.Open(path, time.Now())
}

// catalogue returns the built-in catalogue with the user's file laid over it.
func (a *app) catalogue() (*catalog.Catalog, error) {
	r, err := a.rules()
	if err != nil {
		return nil, err
	}
	return r.catalog, nil
}

// catalogPath returns where the user's file is, and whether that was chosen: then it has to be there. It is empty where
// nothing can be kept, so that there cannot be one.
func (a *app) catalogPath() (path string, chosen bool, err error) {
	r := a.reader()
	path = r.text(setCatalog)
	dir, noPlace := r.stateDir()
	if err := r.err(); err != nil || path != "" {
		return path, path != "", err
	}
	if noPlace != nil {
		return "", false, nil
	}
	return filepath.Join(dir, "catalog.json"), false, nil
}

// catalogToWrite is catalogPath for a command that writes.
func (a *app) catalogToWrite() (string, error) {
	path, _, err := a.catalogPath()
	if err == nil && path == "" {
		err = &settingsError{fmt.Errorf("no place for a catalogue: set %s or %s", setCatalog.variable, setStateDir.variable)}
	}
	return path, err
}
