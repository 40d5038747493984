package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/text/unicode/norm"

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
	client, err := a.dial(r, r.url())
	a.zvm = client
	return client, err
}

// dial returns a client of the ZVM at url, by the settings that r reads.
func (a *app) dial(r *reader, url string) (*zvm.Client, error) {
	credentials, options := r.credentials(func(warning string) { a.log.Warn(warning) })
	options = append(options, zvm.WithLogger(a.log))
	if realm := r.text(r.as(setRealm)); realm != "" {
		options = append(options, zvm.WithRealm(realm))
	}
	for origin := range strings.FieldsSeq(r.text(setDownloadOrigins)) {
		options = append(options, zvm.WithDownloadOrigin(origin))
	}
	options = append(options, r.trust()...)
	options = append(options, r.tokenCache()...)
	if err := r.err(); err != nil {
		return nil, err
	}
	client, err := zvm.New(url, credentials, options...)
	if err != nil {
		return nil, &settingsError{r.inOurWords(err)}
	}
	return client, nil
}

// unreachable says why the ZVM gave no answer, where an error does not: what is tried again on behalf of several callers
// goes on when one of them leaves. It is empty when there is nothing to add.
func (a *app) unreachable(err error) string {
	if a.zvm == nil || is[*zvm.Error](err) || a.zvm.Trouble() == "" {
		return ""
	}
	return fmt.Sprintf("no answer from %s: %s", a.zvm.BaseURL(), a.zvm.Trouble())
}

// url returns the address of the ZVM. It is checked before anything else is known, so that one message tells it all.
func (r *reader) url() string {
	url := r.required(setURL)
	if url != "" {
		r.checkURL(setURL.variable, url)
	}
	return url
}

func (r *reader) checkURL(from, url string) {
	if _, err := zvm.New(url, zvm.Tokens(nobody{})); err != nil {
		r.problem("%s: %s", from, strings.TrimPrefix(err.Error(), "zvm: "))
	}
}

// nobody has no token.
type nobody struct{}

func (nobody) Token(context.Context) (zvm.Token, error) { return zvm.Token{}, errors.New("no token") }

// inOurWords names the variable in place of the option that the client takes it by.
func (r *reader) inOurWords(err error) error {
	var refused *zvm.OptionError
	if !errors.As(err, &refused) {
		return err
	}
	from, known := map[string]setting{
		"WithRealm": setRealm, "WithClientID": setClientID, "WithRootCAs": setCAFile,
		"WithCertSHA256": setCertSHA256, "WithInsecureSkipVerify": setInsecure, "WithDownloadOrigin": setDownloadOrigins,
	}[refused.Option]
	if !known {
		return err
	}
	return fmt.Errorf("%s: %s", r.as(from).variable, refused.Reason)
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
	if path := r.text(r.as(setCAFile)); path != "" {
		if pool, err := readAuthorities(path); err != nil {
			r.problem("%s: %v", r.as(setCAFile).variable, err)
		} else {
			options = append(options, zvm.WithRootCAs(pool))
		}
	}
	if fingerprint := r.text(r.as(setCertSHA256)); fingerprint != "" {
		options = append(options, zvm.WithCertSHA256(fingerprint))
	}
	if r.enabled(r.as(setInsecure)) {
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
		rewind.WithOpened(a.noteOpened),
		rewind.WithNormalForm(norm.NFC.String),
	}
	if err := r.err(); err != nil {
		return nil, nil, err
	}
	sites, err := a.sites()
	if err != nil {
		return nil, nil, err
	}
	session, err := rewind.NewSession(client, append(options, sites...)...)
	return session, client, err
}
