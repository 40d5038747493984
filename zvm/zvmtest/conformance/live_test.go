package conformance_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest/conformance"
)

// TestLiveZVM runs the suite against the ZVM at ZVM_URL and its VM
// ZVM_CONFORMANCE_VM. The ZVM_ variables of the command line say how to log
// in; a slow ZVM wants a longer -timeout than go test's. It reads only, unless
//
//	ZVM_CONFORMANCE_MUTATE=1  allows tagged checkpoints and a mount
//	ZVM_CONFORMANCE_TEST=1    allows a failover test besides
//
// ZVM_CONFORMANCE_REPORT names a file for the report, Markdown or .json;
// ZVM_CONFORMANCE_OMIT_NAMES=1 leaves even pseudonyms out of it.
func TestLiveZVM(t *testing.T) {
	t.Parallel()
	url, vm := os.Getenv("ZVM_URL"), os.Getenv("ZVM_CONFORMANCE_VM")
	if url == "" || vm == "" {
		t.Skip("ZVM_URL and ZVM_CONFORMANCE_VM do not name a ZVM and a VM of it")
	}
	tap := conformance.NewTap(liveTransport(t))
	options := []zvm.Option{zvm.WithTransport(tap)}
	if realm := os.Getenv("ZVM_REALM"); realm != "" {
		options = append(options, zvm.WithRealm(realm))
	}
	credentials, options := liveCredentials(t, options)
	client, err := zvm.New(url, credentials, options...)
	if err != nil {
		t.Fatal(err)
	}
	report := conformance.Run(t, conformance.Target{
		Client: client, Tap: tap, VM: vm,
		Mutate:    os.Getenv("ZVM_CONFORMANCE_MUTATE") == "1",
		Test:      os.Getenv("ZVM_CONFORMANCE_TEST") == "1",
		OmitNames: os.Getenv("ZVM_CONFORMANCE_OMIT_NAMES") == "1",
	})
	writeReport(t, report, os.Getenv("ZVM_CONFORMANCE_REPORT"))
}

func writeReport(t *testing.T, report *conformance.Report, path string) {
	t.Helper()
	text := []byte(report.Markdown())
	if path == "" {
		t.Logf("%s", text)
		return
	}
	if filepath.Ext(path) == ".json" {
		var err error
		if text, err = report.JSON(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func liveCredentials(t *testing.T, options []zvm.Option) (zvm.Credentials, []zvm.Option) {
	t.Helper()
	id := os.Getenv("ZVM_CLIENT_ID")
	if secret := secretOf(t, "ZVM_CLIENT_SECRET"); secret != "" {
		return zvm.ClientCredentials(id, secret), options
	}
	if id != "" {
		options = append(options, zvm.WithClientID(id))
	}
	return zvm.Password(os.Getenv("ZVM_USERNAME"), secretOf(t, "ZVM_PASSWORD")), options
}

// secretOf reads a secret from a variable, or from the file that the variable
// of the same name with _FILE names.
func secretOf(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable + "_FILE")
	if path == "" {
		return os.Getenv(variable)
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(secret), "\r\n")
}

func liveTransport(t *testing.T) *http.Transport {
	t.Helper()
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := os.Getenv("ZVM_CA_FILE"); path != "" {
		pem, err := os.ReadFile(path)
		settings.RootCAs = x509.NewCertPool()
		if err != nil || !settings.RootCAs.AppendCertsFromPEM(pem) {
			t.Fatalf("ZVM_CA_FILE holds no certificate (%v)", err)
		}
	}
	if fingerprint := os.Getenv("ZVM_CERT_SHA256"); fingerprint != "" {
		pin, err := hex.DecodeString(strings.ReplaceAll(fingerprint, ":", ""))
		if err != nil || len(pin) != sha256.Size {
			t.Fatal("ZVM_CERT_SHA256 is not the SHA-256 of a certificate")
		}
		// The pin replaces the chain, unless there is one to check.
		settings.InsecureSkipVerify = settings.RootCAs == nil
		settings.VerifyConnection = func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if !bytes.Equal(sum[:], pin) {
				return errors.New("the certificate is not the one that ZVM_CERT_SHA256 names")
			}
			return nil
		}
	}
	if os.Getenv("ZVM_INSECURE_SKIP_VERIFY") == "1" {
		t.Log("the certificate of the ZVM is not checked")
		settings.InsecureSkipVerify = true
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
