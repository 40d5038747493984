package cli

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

const (
	dialLimit = 10 * time.Second
	// expirySoon is how long before a certificate ends it is warned about.
	expirySoon = 30 * 24 * time.Hour
	// Tokens live for minutes (zvm-wire 1.4): a clock that is off by as much makes them look expired, or not.
	skewSeen, skewTooMuch = 30 * time.Second, 5 * time.Minute
)

// checkZVM goes from the address to what the user may do. What needs a step that failed is skipped.
func (a *app) checkZVM(ctx context.Context, d *diagnosis) {
	rest := []string{"reachable", "TLS", "login", "roles", "clock", "VPGs", "file-level recovery"}
	skip := func(from string) {
		for _, name := range rest[slices.Index(rest, from):] {
			d.add(name, checkSkipped, "-", "")
		}
	}
	client, err := a.client()
	if err != nil {
		d.fail("settings", err, "")
		skip("reachable")
		return
	}
	d.add("settings", checkOK, client.BaseURL(), "")
	tokens := newTokenKeeper()
	if client, err = client.With(zvm.WithTokenCache(tokens)); err != nil { // a login of its own, whatever was kept of another
		d.fail("login", err, "")
		return
	}
	a.zvm = client
	certificate, reached := a.checkReach(ctx, d, client.BaseURL())
	if !reached {
		skip("TLS")
		return
	}
	site, err := client.GetLocalSite(ctx)
	if !a.checkTrust(d, certificate, err) {
		skip("login")
		return
	}
	if err != nil {
		d.refused = errors.Is(err, zvm.ErrUnauthorized) || errors.Is(err, zvm.ErrForbidden)
		d.fail("login", a.withTrouble(err), loginAdvice(err))
		skip("roles")
		return
	}
	d.add("login", checkOK, fmt.Sprintf("site %s, ZVM %s", site.Name, orDash(site.Version)), "")
	d.checkRoles(ctx, tokens)
	d.checkClock(ctx, client)
	d.checkVPGs(ctx, client)
}

// withTrouble adds why there was no answer, where the error does not say it.
func (a *app) withTrouble(err error) error {
	if why := a.unreachable(err); why != "" {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

func loginAdvice(err error) string {
	switch {
	case errors.Is(err, zvm.ErrNoLogin):
		return "only ZVMs from version 10 on, with Keycloak, are supported; if this is one, check " + setURL.variable + " and " + setRealm.variable
	case errors.Is(err, zvm.ErrUnauthorized):
		return "check " + setUsername.variable + " and " + setPassword.variable + ", or " + setClientID.variable + " and its secret"
	case errors.Is(err, zvm.ErrForbidden):
		return "give the user a role in Keycloak"
	}
	return ""
}

// checkReach opens a connection and sends nothing on it: whoever answers sees no secret. It returns the certificate if the
// connection is one of TLS, and no proxy is in between.
func (a *app) checkReach(ctx context.Context, d *diagnosis, base string) (certificate *x509.Certificate, reached bool) {
	const name = "reachable"
	address, err := url.Parse(base)
	if err != nil {
		d.fail(name, err, "")
		return nil, false
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: address}); err != nil || proxy != nil {
		d.add(name, checkSkipped, "a proxy is in between", "")
		return nil, true
	}
	port := address.Port()
	if port == "" {
		port = address.Scheme
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dialLimit, errors.New("no answer within "+inWords(dialLimit)))
	defer cancel()
	host := net.JoinHostPort(address.Hostname(), port)
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		d.fail(name, err, "check "+setURL.variable+", the network and whether the ZVM runs")
		return nil, false
	}
	defer connection.Close() //nolint:errcheck // nothing was sent
	if address.Scheme == "http" {
		d.add(name, checkOK, host, "")
		return nil, true
	}
	// Nothing is trusted here: the client decides by its own settings, and this only shows what it decides on.
	encrypted := tls.Client(connection, &tls.Config{ServerName: address.Hostname(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // see above
	if err := encrypted.HandshakeContext(ctx); err != nil {
		d.fail(name, fmt.Errorf("%s answers, but not with TLS 1.2 or later: %w", host, err), "check the port in "+setURL.variable)
		return nil, false
	}
	d.add(name, checkOK, host, "")
	return encrypted.ConnectionState().PeerCertificates[0], true
}

// checkTrust tells by what the certificate was accepted, or why it was not. The error is what the login met.
func (a *app) checkTrust(d *diagnosis, certificate *x509.Certificate, err error) bool {
	const name = "TLS"
	var refused *zvm.Error
	if errors.As(err, &refused) && refused.Trust != "" {
		d.fail(name, err, "")
		return false
	}
	if certificate == nil {
		d.add(name, checkSkipped, "the certificate was not seen", "")
		return true
	}
	r := a.reader()
	by := "signed by an authority of this system"
	switch {
	case r.enabled(setInsecure):
		d.add(name, checkWarn, "the certificate is not checked: whoever intercepts the connection reads the password",
			fmt.Sprintf("unset %s, and if this is the ZVM's certificate, set %s to %s", setInsecure.variable, setCertSHA256.variable, fingerprint(certificate)))
		return true
	case r.text(setCertSHA256) != "":
		by = "pinned to this certificate"
	case r.text(setCAFile) != "":
		by = "signed by an authority of " + r.text(setCAFile)
	}
	ends := certificate.NotAfter.UTC().Format(time.DateOnly)
	switch left := time.Until(certificate.NotAfter); {
	case left < 0:
		d.add(name, checkWarn, by+", expired on "+ends+", which the pin overrules", "renew the ZVM's certificate, and pin the new one")
	case left < expirySoon:
		d.add(name, checkWarn, by+", expires on "+ends, "renew the ZVM's certificate in time")
	default:
		d.add(name, checkOK, by+", expires on "+ends, "")
	}
	return true
}

func fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// tokenKeeper keeps a token in memory, to look at what it says of its owner.
type tokenKeeper struct {
	turn chan struct{} // holds one
	kept zvm.SavedToken
}

func newTokenKeeper() *tokenKeeper { return &tokenKeeper{turn: make(chan struct{}, 1)} }

// Lock waits for the one entry.
func (t *tokenKeeper) Lock(ctx context.Context, _ string) (zvm.TokenEntry, error) {
	select {
	case t.turn <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Load returns what was stored last.
func (t *tokenKeeper) Load() (zvm.SavedToken, error) { return t.kept, nil }

// Store replaces it.
func (t *tokenKeeper) Store(token zvm.SavedToken) error { t.kept = token; return nil }

// Unlock lets the next one in.
func (t *tokenKeeper) Unlock() error { <-t.turn; return nil }

// roles returns the realm roles that an access token claims, and false for a token that is no JWT or claims none. The ZVM
// decides by them, so that nobody else has to check the signature.
func (t *tokenKeeper) roles() ([]string, bool) {
	parts := strings.Split(t.kept.Access.Reveal(), ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Realm struct {
			Roles []string `json:"roles"`
		} `json:"realm_access"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Realm.Roles == nil {
		return nil, false
	}
	return slices.DeleteFunc(claims.Realm.Roles, func(role string) bool {
		return role == "offline_access" || role == "uma_authorization" || strings.HasPrefix(role, "default-roles-")
	}), true
}

func (d *diagnosis) checkRoles(ctx context.Context, tokens *tokenKeeper) {
	const name = "roles"
	if _, err := tokens.Lock(ctx, ""); err != nil {
		d.fail(name, err, "")
		return
	}
	roles, told := tokens.roles()
	_ = tokens.Unlock() // it does not fail
	switch {
	case !told:
		d.add(name, checkSkipped, "the token does not tell them", "")
	case slices.ContainsFunc(roles, func(role string) bool { return strings.EqualFold(role, "admin") }):
		d.add(name, checkOK, strings.Join(roles, ", "), "")
	default:
		d.add(name, checkWarn, orDash(strings.Join(roles, ", ")),
			"a guard needs the right to manage VPGs, and file-level recovery the Administrator role on 10.9: give the user the role admin if either is refused")
	}
}

func (d *diagnosis) checkClock(ctx context.Context, client *zvm.Client) {
	const name = "clock"
	asked := time.Now()
	server, err := client.GetServerTime(ctx)
	if err != nil {
		d.fail(name, err, "")
		return
	}
	took := time.Since(asked)
	skew := server.Sub(asked.Add(took / 2))
	evidence := fmt.Sprintf("the ZVM is %s ahead of this machine, to within %s", skew.Round(time.Second), max(took, time.Second).Round(time.Second))
	if skew < 0 {
		evidence = fmt.Sprintf("the ZVM is %s behind this machine, to within %s", (-skew).Round(time.Second), max(took, time.Second).Round(time.Second))
	}
	result := checkOK
	switch off := skew.Abs() - took; {
	case off > skewTooMuch:
		result = checkFail
	case off > skewSeen:
		result = checkWarn
	}
	d.add(name, result, evidence, "set both clocks by NTP: the age of guards and the life of tokens go by them")
}

func (d *diagnosis) checkVPGs(ctx context.Context, client *zvm.Client) {
	const name, recovery = "VPGs", "file-level recovery"
	vpgs, err := client.ListVPGs(ctx, zvm.VPGFilter{})
	if err != nil {
		d.fail(name, err, "the user needs the right to see VPGs")
		d.add(recovery, checkSkipped, "-", "")
		return
	}
	local := map[zvm.VPGID]bool{}
	for _, v := range vpgs {
		if v.Local() {
			local[v.ID] = true
		}
	}
	evidence := fmt.Sprintf("%d, of which %d replicate within this site", len(vpgs), len(local))
	switch {
	case len(vpgs) == 0:
		d.add(name, checkWarn, "none", "nothing can be guarded before a VPG protects it, and this user sees it")
	case len(local) == 0:
		d.add(name, checkWarn, evidence, "VMs can be guarded; files come back only through a VPG whose protected and recovery site are one")
	default:
		d.add(name, checkOK, evidence, "")
	}
	if len(local) == 0 {
		d.add(recovery, checkSkipped, "no VPG replicates within this site", "")
		return
	}
	vms, err := client.ListVMs(ctx, zvm.VMFilter{})
	if err != nil {
		d.fail(recovery, err, "")
		return
	}
	can, cannot := 0, 0
	for _, vm := range vms {
		switch {
		case !local[vm.VPG] || vm.FLREnabled == nil:
		case *vm.FLREnabled:
			can++
		default:
			cannot++
		}
	}
	switch evidence := fmt.Sprintf("the ZVM offers it for %d VMs, and refuses it for %d", can, cannot); {
	case can > 0:
		d.add(recovery, checkOK, evidence+"; whether this user may is first seen on a mount", "")
	case cannot > 0:
		d.add(recovery, checkWarn, evidence, "see why in the ZVM: the VPG's state, or a licence or role without file-level recovery")
	default:
		d.add(recovery, checkSkipped, "the ZVM does not tell", "")
	}
}
