package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

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
	setAgent            = setting{"agent", "ZERTO_REWIND_AGENT", "`name` of the agent, which goes into every tag"}
	setHuman            = setting{"human", "ZERTO_REWIND_HUMAN", "`name` of the person the agent works for"}
	setStateDir         = setting{"state-dir", "ZERTO_REWIND_STATE_DIR", "`folder` for what is kept between runs"}
	setCatalog          = setting{"catalog", "ZERTO_REWIND_CATALOG", "`file` laid over the built-in catalogue"}
)

func (s *settings) register(flags *pflag.FlagSet) {
	s.flags = flags
	for _, text := range []setting{
		setURL, setUsername, setPasswordFile, setClientID, setClientSecretFile, setRealm, setCAFile, setCertSHA256,
		setAgent, setHuman, setStateDir, setCatalog,
	} {
		flags.String(text.flag, "", text.help+" [$"+text.variable+"]")
	}
	flags.Bool(setInsecure.flag, false, setInsecure.help+" [$"+setInsecure.variable+"=1]")
}

// reader reads settings and gathers everything that is wrong with them, so that one message tells it all.
type reader struct {
	flags    *pflag.FlagSet
	env      func(string) (string, bool)
	problems []string
}

func (a *app) reader() *reader { return &reader{flags: a.settings.flags, env: a.io.Env} }

// text returns the flag's value, else the variable's, else "". An empty value is no value.
func (r *reader) text(s setting) string {
	value, _ := r.env(s.variable)
	from := s.variable
	if s.flag != "" {
		if flag := r.flags.Lookup(s.flag); flag != nil && flag.Changed {
			value, from = flag.Value.String(), "--"+s.flag
		}
	}
	if isPlaceholder(value) {
		r.problem("%s holds a placeholder that nothing has replaced by its value", from)
		return ""
	}
	return value
}

// isPlaceholder finds what a host hands on when it did not expand it: ${NAME}, $NAME or %NAME%.
func isPlaceholder(value string) bool { return placeholder.MatchString(strings.TrimSpace(value)) }

var placeholder = regexp.MustCompile(`^(\$\{[^{}]*\}|\$[A-Z_][A-Z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%)$`)

func (r *reader) enabled(s setting) bool {
	if flag := r.flags.Lookup(s.flag); flag != nil && flag.Changed {
		return flag.Value.String() == "true"
	}
	switch value := r.text(s); strings.ToLower(value) {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		r.problem("%s must be 1 or 0", s.variable)
		return false
	}
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// err returns all problems as one usage error, nil without any.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &usageError{errors.New(strings.Join(r.problems, "; "))}
}

// credentials returns who logs in: the client if it has a secret, else the user.
func (r *reader) credentials(warn func(string)) (zvm.Credentials, []zvm.Option) {
	clientID := r.text(setClientID)
	if secret, given := r.secret(setClientSecret, setClientSecretFile, warn); given {
		if clientID == "" {
			r.problem("%s is missing: the client that the secret belongs to", setClientID.variable)
		}
		return zvm.ClientCredentials(clientID, secret), nil
	}
	user := r.text(setUsername)
	if user == "" {
		r.problem("%s is missing", setUsername.variable)
	}
	secret, given := r.secret(setPassword, setPasswordFile, warn)
	if !given {
		r.problem("%s or %s is missing", setPassword.variable, setPasswordFile.variable)
	}
	if clientID == "" {
		return zvm.Password(user, secret), nil
	}
	return zvm.Password(user, secret), []zvm.Option{zvm.WithClientID(clientID)}
}

// secret returns a secret from its variable or its file. Given is true when one of them was set, a problem included.
func (r *reader) secret(inline, file setting, warn func(string)) (secret string, given bool) {
	before := len(r.problems)
	path := r.text(file)
	flag := r.flags.Lookup(file.flag)
	if flag == nil || !flag.Changed {
		secret = r.text(inline)
	}
	switch {
	case len(r.problems) > before:
		return "", true
	case secret != "" && path != "":
		r.problem("%s and %s are both set: which one holds?", inline.variable, file.variable)
		return "", true
	case path == "":
		return secret, secret != ""
	}
	secret, warning, err := readSecretFile(path)
	if err != nil {
		r.problem("%s: %v", cmp.Or(file.variable, file.flag), err)
	}
	if warning != "" {
		warn(warning)
	}
	return secret, true
}
