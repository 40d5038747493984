package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// settings are the flags that mirror the environment. A flag beats its variable; no flag takes a secret itself.
type settings struct{ flags *pflag.FlagSet }

// setting names a flag and the variable behind it.
type setting struct {
	flag, variable string
	help           string // with the placeholder of the value in backquotes
}

var (
	setURL              = setting{"url", "ZVM_URL", "`URL` of the ZVM, for example https://zvm.example.com"}
	setUsername         = setting{"username", "ZVM_USERNAME", "`user` of the ZVM"}
	setPassword         = setting{"", "ZVM_PASSWORD", ""}
	setPasswordFile     = setting{"password-file", "ZVM_PASSWORD_FILE", "`file` that holds the user's password"}
	setClientID         = setting{"client-id", "ZVM_CLIENT_ID", "Keycloak client `id` (default zerto-client)"}
	setClientSecret     = setting{"", "ZVM_CLIENT_SECRET", ""}
	setClientSecretFile = setting{"client-secret-file", "ZVM_CLIENT_SECRET_FILE", "`file` that holds the secret of the client, which then logs in instead of a user"}
	setRealm            = setting{"realm", "ZVM_REALM", "Keycloak `realm` (default zerto)"}
	setCAFile           = setting{"ca-file", "ZVM_CA_FILE", "PEM `file` of the authorities that may sign the ZVM's certificate"}
	setCertSHA256       = setting{"cert-sha256", "ZVM_CERT_SHA256", "SHA-256 `fingerprint` of the ZVM's own certificate"}
	setInsecure         = setting{"insecure-skip-verify", "ZVM_INSECURE_SKIP_VERIFY", "do not check the ZVM's certificate: whoever intercepts the connection reads the password"}
	setDownloadOrigins  = setting{"download-origin", "ZVM_DOWNLOAD_ORIGIN", "`address` to which the ZVM's download links may lead beside its own; several with blanks between"}
	setAgent            = setting{"agent", "ZERTO_REWIND_AGENT", "`name` of the agent, which goes into every tag"}
	setHuman            = setting{"human", "ZERTO_REWIND_HUMAN", "`name` of the person the agent works for"}
	setStateDir         = setting{"state-dir", "ZERTO_REWIND_STATE_DIR", "`folder` of the ledger, and of the tokens that --token-cache keeps (default ~/.local/state/zerto-rewind, or as the system says)"}
	setTokenCache       = setting{"token-cache", "ZERTO_REWIND_TOKEN_CACHE", "keep tokens in the state folder, so that not every run logs in"}
	setCatalog          = setting{"catalog", "ZERTO_REWIND_CATALOG", "`file` laid over the built-in catalogue"}
)

// texts and choices are the settings that have a flag.
func texts() []setting {
	return []setting{
		setURL, setUsername, setPasswordFile, setClientID, setClientSecretFile, setRealm, setCAFile, setCertSHA256, setDownloadOrigins,
		setAgent, setHuman, setStateDir, setCatalog,
	}
}

func choices() []setting { return []setting{setInsecure, setTokenCache} }

func (s *settings) register(flags *pflag.FlagSet) {
	s.flags = flags
	for _, text := range texts() {
		flags.String(text.flag, "", text.help+" [$"+text.variable+"]")
	}
	for _, choice := range choices() {
		flags.Bool(choice.flag, false, choice.help+" [$"+choice.variable+"=1]")
	}
}

// offline leaves the settings out of the help of a command that reaches no ZVM, but for those that it uses all the same.
// The flags stay where they are: in front of the command's name nobody knows yet which one it will be.
func (s *settings) offline(c *cobra.Command, used ...setting) *cobra.Command {
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		for _, set := range slices.Concat(texts(), choices()) {
			s.flags.Lookup(set.flag).Hidden = !slices.Contains(used, set)
		}
		c.Root().HelpFunc()(c, args)
	})
	return c
}

// reader reads settings and gathers everything that is wrong with them, so that one message tells it all.
type reader struct {
	flags    *pflag.FlagSet
	variable func(string) string
	replaced []setting // by those of recovery sites
	missing  []string
	problems []string
}

func (a *app) reader() *reader { return &reader{flags: a.settings.flags, variable: a.io.variable} }

// flag returns the setting's flag if the command line gives it, else nil.
func (r *reader) flag(s setting) *pflag.Flag {
	if flag := r.flags.Lookup(s.flag); flag != nil && flag.Changed {
		return flag
	}
	return nil
}

// text returns the flag's value, else the variable's, else "". An empty value is no value.
func (r *reader) text(s setting) string {
	value, from := r.variable(s.variable), s.variable
	if flag := r.flag(s); flag != nil {
		value, from = flag.Value.String(), "--"+s.flag
	}
	if placeholder.MatchString(strings.TrimSpace(value)) {
		r.problem("%s holds a placeholder that nothing has replaced by its value", from)
		return ""
	}
	return value
}

// placeholder is what a host hands on when it did not expand it. A secret that really looks so comes from a file.
var placeholder = regexp.MustCompile(`^(\$\{[^{}]*\}|\$[A-Z_][A-Z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%)$`)

func (r *reader) required(s setting) string {
	before := len(r.problems)
	value := r.text(s)
	if value == "" && len(r.problems) == before {
		r.missing = append(r.missing, s.variable)
	}
	return value
}

func (r *reader) enabled(s setting) bool {
	if flag := r.flag(s); flag != nil {
		return flag.Value.String() == "true"
	}
	switch strings.ToLower(r.text(s)) {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	}
	r.problem("%s must be 1 or 0", s.variable)
	return false
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// err returns everything that is wrong as one error, nil without any.
func (r *reader) err() error {
	problems := r.problems
	if len(r.missing) > 0 {
		problems = append([]string{"not set: " + strings.Join(r.missing, ", ")}, problems...)
	}
	if len(problems) == 0 {
		return nil
	}
	err := &settingsError{errors.New(strings.Join(problems, "; "))}
	if len(r.missing) == 0 {
		return err
	}
	return hinted(err, "a service client logs in with %s and %s or %s in place of a user; without a ZVM, try: zerto-rewind sim",
		r.as(setClientID).variable, r.as(setClientSecret).variable, r.as(setClientSecretFile).variable)
}

// credentials returns who logs in: the client if it has a secret, else the user. Flags that name the user beat a client
// that only the environment knows.
func (r *reader) credentials(warn func(string)) (zvm.Credentials, []zvm.Option) {
	secretFile, passwordFile := r.as(setClientSecretFile), r.as(setPasswordFile)
	asUser := r.flag(secretFile) == nil && (r.flag(r.as(setUsername)) != nil || r.flag(passwordFile) != nil)
	if !asUser {
		if secret, given := r.secret(r.as(setClientSecret), secretFile, warn); given {
			return zvm.ClientCredentials(r.required(r.as(setClientID)), secret), nil
		}
	}
	user := r.required(r.as(setUsername))
	secret, given := r.secret(r.as(setPassword), passwordFile, warn)
	if !given {
		r.missing = append(r.missing, r.as(setPassword).variable+" or "+passwordFile.variable)
	}
	if id := r.text(r.as(setClientID)); id != "" {
		return zvm.Password(user, secret), []zvm.Option{zvm.WithClientID(id)}
	}
	return zvm.Password(user, secret), nil
}

// secret returns a secret from its variable or its file. Given is true when either was set, to something wrong too.
func (r *reader) secret(inline, file setting, warn func(string)) (secret string, given bool) {
	before := len(r.problems)
	path := r.text(file)
	if r.flag(file) == nil {
		secret = r.text(inline)
	}
	switch {
	case len(r.problems) > before:
		return "", true
	case secret != "" && path != "":
		r.problem("%s and %s are both set: unset one", inline.variable, file.variable)
		return "", true
	case path == "":
		return secret, secret != ""
	}
	secret, warning, err := readSecretFile(path)
	if err != nil {
		r.problem("%s: %v", file.variable, err)
	}
	if warning != "" {
		warn(warning)
	}
	return secret, true
}
