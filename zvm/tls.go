package zvm

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// trust is the one TLS policy of a client: for tokens, API and downloads.
type trust struct {
	roots      *x509.CertPool
	pin        *[sha256.Size]byte
	serverName string
	insecure   bool
}

func (t trust) check() error {
	if t.insecure && (t.pin != nil || t.roots != nil || t.serverName != "") {
		return refuse("WithInsecureSkipVerify", "it contradicts the other TLS options: they ask for a check, it asks for none")
	}
	return nil
}

func (t trust) tlsConfig() *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    t.roots,
		ServerName: t.serverName,
		// Hundreds of callers that start together open hundreds of connections; a resumed session costs the appliance no signature.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
		// A pin without authorities replaces the chain: VerifyConnection below is then the check, on resumed sessions too.
		InsecureSkipVerify: t.insecure || t.pin != nil && t.roots == nil,
	}
	if t.pin != nil {
		cfg.VerifyConnection = func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("the server sent no certificate")
			}
			if got := sha256.Sum256(state.PeerCertificates[0].Raw); got != *t.pin {
				return &pinError{got: got}
			}
			return nil
		}
	}
	return cfg
}

// pinError is a certificate other than the pinned one.
type pinError struct{ got [sha256.Size]byte }

func (e *pinError) Error() string {
	return "the server presented another certificate, SHA-256 " + hex.EncodeToString(e.got[:])
}

// newTransport is built as the default transport is, with limits of its own. All callers of a client share it, hundreds of which may
// poll at the same time: idle connections are kept for that many.
//
// It speaks HTTP/1.1 alone. Over HTTP/2 net/http cannot tell a write that left from one that did not, and one broken connection leaves
// the writes of all callers in doubt; for short JSON answers and whole files the appliance's ingress offers nothing in return.
func newTransport(t trust) http.RoundTripper {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     t.tlsConfig(),
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 256,
		// Shorter than servers keep idle connections: a write on one that is just being closed has an unknown outcome.
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		Protocols:              &http1,
	}
}

// TrustProblem is why a server was not trusted, named by what settles it.
type TrustProblem string

const (
	// TrustAuthority means that an unknown authority signed the certificate, or itself did. WithRootCAs or WithCertSHA256 settles it.
	TrustAuthority TrustProblem = "authority"
	// TrustPin means that the certificate is not the one of WithCertSHA256.
	TrustPin TrustProblem = "pin"
	// TrustName means that the certificate is for other names. One of them in the base URL, WithServerName or WithCertSHA256 settles it.
	TrustName TrustProblem = "name"
	// TrustUnfit means that no check of the chain can accept the certificate, because of its dates say. WithCertSHA256 settles it.
	TrustUnfit TrustProblem = "unfit"
)

// tlsProblem says what is wrong with the server's certificate or its TLS; both are empty if err is something else.
// None of these goes away by trying again.
func tlsProblem(err error) (trust TrustProblem, says string) {
	var (
		pin      *pinError
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		invalid  x509.CertificateInvalidError
		other    *tls.CertificateVerificationError
		notTLS   tls.RecordHeaderError
		alert    tls.AlertError
		noSystem x509.SystemRootsError
	)
	switch {
	case errors.As(err, &pin):
		return TrustPin, "the certificate is not the expected one; if the appliance got a new certificate, check it and give its fingerprint"
	case errors.As(err, &unknown), errors.As(err, &noSystem):
		return TrustAuthority, "the certificate comes from an authority that is not trusted or is self-signed; give the authority or the certificate's fingerprint"
	case errors.As(err, &host):
		return hostnameProblem(host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return TrustUnfit, validityProblem(invalid)
	case errors.As(err, &invalid), errors.As(err, &other):
		return TrustUnfit, "the certificate is not valid for this use; give its fingerprint if it is the right one"
	case errors.As(err, &notTLS):
		return "", "the server does not speak TLS on this port"
	case errors.As(err, &alert):
		return "", "the server refused the TLS handshake"
	}
	return "", ""
}

// failedTLS reports whether TLS is what failed.
func failedTLS(err error) bool {
	_, says := tlsProblem(err)
	return says != ""
}

func hostnameProblem(e x509.HostnameError) (TrustProblem, string) {
	cert := e.Certificate
	switch {
	case cert == nil:
		return TrustName, "the certificate is for another name"
	case len(cert.DNSNames) == 0 && len(cert.IPAddresses) == 0:
		return TrustUnfit, "the certificate has only a common name, which is not accepted; give its fingerprint"
	case net.ParseIP(e.Host) != nil:
		return TrustName, fmt.Sprintf("the certificate does not name the address %s; use a name from it", e.Host)
	}
	return TrustName, fmt.Sprintf("the certificate is for another name than %s; use a name from it", e.Host)
}

func validityProblem(e x509.CertificateInvalidError) string {
	if e.Cert != nil && time.Now().Before(e.Cert.NotBefore) {
		return "the certificate is not yet valid; check the clocks, or give its fingerprint"
	}
	return "the certificate has expired; renew it, or give its fingerprint"
}
