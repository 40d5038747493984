package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// recoverySiteFlag adds the flag that names the ZVMs of recovery sites.
func (a *app) recoverySiteFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.recoverySites, "recovery-site", nil,
		"the ZVM of a site that VPGs recover to, as `SITE_ID=URL`; may be repeated")
}

// recoverySiteHelp is what the help of the commands with that flag says of it.
const recoverySiteHelp = `

Files of a VPG that is not local come back through the ZVM of its recovery site, given as --recovery-site; who tries without
it is told the SITE_ID. That ZVM is logged in to and trusted as the first one is, unless variables that begin with
ZVM_RECOVERY_ in place of ZVM_ say otherwise. One of USERNAME, PASSWORD, PASSWORD_FILE, CLIENT_ID, CLIENT_SECRET,
CLIENT_SECRET_FILE and REALM stands in for all of these, and one of CA_FILE, CERT_SHA256 and INSECURE_SKIP_VERIFY for all of
those.`

// sites returns a session's options for the recovery sites that the command line names.
func (a *app) sites() ([]rewind.Option, error) {
	var options []rewind.Option
	for i, given := range a.recoverySites {
		r := a.reader().forRecoverySites()
		id, url, _ := strings.Cut(given, "=")
		switch {
		case id == "" || url == "":
			return nil, &usageError{errors.New("--recovery-site has to be SITE_ID=URL")}
		case slices.ContainsFunc(a.recoverySites[:i], func(s string) bool { return sameSite(s, given) }):
			return nil, &usageError{fmt.Errorf("--recovery-site %s: the site is named twice", id)}
		}
		r.checkURL("--recovery-site "+id, url)
		client, err := a.dial(r, url)
		if err != nil {
			return nil, err
		}
		options = append(options, rewind.WithRecoverySite(zvm.SiteID(id), client))
	}
	return options, nil
}

func sameSite(a, b string) bool {
	a, _, _ = strings.Cut(a, "=")
	b, _, _ = strings.Cut(b, "=")
	return strings.EqualFold(a, b)
}

// forRecoverySites reads, in place of the settings that tell how to log in to the ZVM, and of those that tell how to trust
// it, those of recovery sites. Each of the two groups is replaced as a whole, as soon as one of it is set: a password never
// goes with the name of another user.
func (r *reader) forRecoverySites() *reader {
	there := &reader{flags: r.flags, variable: r.variable}
	for _, group := range [][]setting{
		{setUsername, setPassword, setPasswordFile, setClientID, setClientSecret, setClientSecretFile, setRealm},
		{setCAFile, setCertSHA256, setInsecure},
	} {
		if slices.ContainsFunc(group, func(s setting) bool { return r.variable(ofRecoverySites(s).variable) != "" }) {
			there.replaced = append(there.replaced, group...)
		}
	}
	return there
}

func ofRecoverySites(s setting) setting {
	return setting{variable: "ZVM_RECOVERY_" + strings.TrimPrefix(s.variable, "ZVM_")}
}

// as returns the setting that is read in place of s.
func (r *reader) as(s setting) setting {
	if slices.Contains(r.replaced, s) {
		return ofRecoverySites(s)
	}
	return s
}
