package cli

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/zerto-rewind/zerto-rewind/catalog"
	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// Connect returns a client of the ZVM at url, set up by the environment as the commands are. An empty url means that of
// ZVM_URL. Warnings go to io.Err. It does no network I/O.
func Connect(io IO, url string) (*zvm.Client, error) {
	a := &app{io: io}
	a.settings.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	if url != "" {
		if err := a.settings.flags.Set(setURL.flag, url); err != nil {
			return nil, err
		}
	}
	a.log = a.logger()
	return a.client()
}

// client returns the client that the settings describe, or one error that tells everything that is wrong with them.
func (a *app) client() (*zvm.Client, error) {
	r := a.reader()
	url := r.required(setURL)
	credentials, options := r.credentials(func(warning string) { a.log.Warn(warning) })
	options = append(options, zvm.WithLogger(a.log))
	if realm := r.text(setRealm); realm != "" {
		options = append(options, zvm.WithRealm(realm))
	}
	options = append(options, r.trust()...)
	options = append(options, r.tokenCache()...)
	if err := r.err(); err != nil {
		return nil, err
	}
	client, err := zvm.New(url, credentials, options...)
	if err != nil {
		return nil, &usageError{err}
	}
	return client, nil
}

func (r *reader) tokenCache() []zvm.Option {
	if !r.enabled(setTokenCache) {
		return nil
	}
	dir, err := r.stateDir()
	if err == nil {
		var cache *fileTokenCache
		if cache, err = newFileTokenCache(dir); err == nil {
			return []zvm.Option{zvm.WithTokenCache(cache)}
		}
	}
	r.problem("%s: %v", setTokenCache.variable, err)
	return nil
}

func (r *reader) trust() []zvm.Option {
	var options []zvm.Option
	if path := r.text(setCAFile); path != "" {
		if pool, err := readAuthorities(path); err != nil {
			r.problem("%s: %v", setCAFile.variable, err)
		} else {
			options = append(options, zvm.WithRootCAs(pool))
		}
	}
	if fingerprint := r.text(setCertSHA256); fingerprint != "" {
		options = append(options, zvm.WithCertSHA256(fingerprint))
	}
	if r.enabled(setInsecure) {
		options = append(options, zvm.WithInsecureSkipVerify())
	}
	return options
}

func readAuthorities(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	return pool, nil
}

// session returns a session on the ZVM, and the client under it.
func (a *app) session() (*rewind.Session, *zvm.Client, error) {
	client, err := a.client()
	if err != nil {
		return nil, nil, err
	}
	r := a.reader()
	options := []rewind.Option{
		rewind.WithAgent(r.text(setAgent)),
		rewind.WithHuman(r.text(setHuman)),
		rewind.WithProgress(a.progress()),
	}
	if err := r.err(); err != nil {
		return nil, nil, err
	}
	session, err := rewind.NewSession(client, options...)
	return session, client, err
}

// catalogue returns the built-in catalogue with the user's file laid over it.
func (a *app) catalogue() (*catalog.Catalog, error) {
	base, err := catalog.Default()
	if err != nil {
		return nil, err
	}
	r := a.reader()
	path := r.text(setCatalog)
	if err := r.err(); err != nil || path == "" {
		return base, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", setCatalog.variable, err)}
	}
	user, err := catalog.Load(data)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	merged, err := catalog.Merge(base, user)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return merged, nil
}

// progress returns what is told of each stage: a log line with -v, a line for a person at a terminal, nothing else.
func (a *app) progress() func(rewind.Event) {
	watched := a.io.Terminal && !a.json && !a.verbose
	return func(e rewind.Event) {
		if watched {
			a.say("%s", stageLine(e))
			return
		}
		a.log.Debug("stage", stageAttributes(e)...)
	}
}

func stageAttributes(e rewind.Event) []any {
	attributes := []any{slog.String("stage", string(e.Stage))}
	for _, text := range []struct{ name, value string }{
		{"vm", e.VM.Name},
		{"vpg", e.VPGName},
		{"task", string(e.Task.ID)},
		{"tag", e.Tag},
		{"checkpoint", string(e.Checkpoint)},
		{"session", string(e.Session)},
	} {
		if text.value != "" {
			attributes = append(attributes, slog.String(text.name, text.value))
		}
	}
	if e.Task.ID != "" {
		attributes = append(attributes, slog.String("state", e.Task.State.String()), slog.Int("progress", e.Task.Progress))
	}
	if e.Bytes > 0 {
		attributes = append(attributes, slog.Int64("bytes", e.Bytes))
	}
	return attributes
}

func stageLine(e rewind.Event) string {
	line := string(e.Stage)
	for _, text := range []string{e.VM.Name, e.VPGName, string(e.Checkpoint)} {
		if text != "" {
			line += " " + text
		}
	}
	if e.Task.ID != "" {
		line += fmt.Sprintf(" %s %s %d %%", e.Task.ID, e.Task.State, e.Task.Progress)
	}
	return line
}
