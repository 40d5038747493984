package zvm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// certified starts a fake server with a certificate made of template and signed by itself.
func certified(t *testing.T, template x509.Certificate) (f *fakeServer, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.IsCA, template.BasicConstraintsValid = true, true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	f = unstartedFakeServer(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/downloads/") {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_, _ = io.WriteString(w, `{}`)
	})
	f.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f, cert
}

func trusting(cert *x509.Certificate) Option {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return WithRootCAs(pool)
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

var localhost = x509.Certificate{DNSNames: []string{"zvm.internal"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}

// One policy holds for the token endpoint, the API and downloads: each of the three is the first to meet the server once.
func TestOneTLSPolicyForAllEndpoints(t *testing.T) {
	t.Parallel()
	f, cert := certified(t, localhost)
	static := Tokens(&staticSource{"MARKER-static"})
	endpoints := map[string]func(*testing.T, ...Option) error{
		"token": func(t *testing.T, opts ...Option) error {
			c := newTestClient(t, f.URL, opts...)
			_, err := c.tokens.get(t.Context(), token{})
			return err
		},
		"API": func(t *testing.T, opts ...Option) error {
			c, err := New(f.URL, static, opts...)
			if err != nil {
				return err
			}
			defer closeIdle(c)
			return c.read(t.Context(), getCall(), &struct{}{})
		},
		"download": func(t *testing.T, opts ...Option) error {
			c, err := New(f.URL, static, opts...)
			if err != nil {
				return err
			}
			defer closeIdle(c)
			resp, err := c.open(t.Context(), call{op: "Download"}, "/v1/downloads/x")
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		},
	}
	for name, tc := range map[string]struct {
		opts  []Option
		works bool
	}{
		"default verifies":      {nil, false},
		"authority given":       {[]Option{trusting(cert)}, true},
		"other authority":       {[]Option{WithRootCAs(x509.NewCertPool())}, false},
		"pinned":                {[]Option{WithCertSHA256(fingerprint(cert))}, true},
		"pinned with colons":    {[]Option{WithCertSHA256(colons(strings.ToUpper(fingerprint(cert))))}, true},
		"pinned to another":     {[]Option{WithCertSHA256(strings.Repeat("ab", 32))}, false},
		"pinned and authority":  {[]Option{WithCertSHA256(fingerprint(cert)), trusting(cert)}, true},
		"pinned, no authority":  {[]Option{WithCertSHA256(fingerprint(cert)), WithRootCAs(x509.NewCertPool())}, false},
		"right pin, wrong name": {[]Option{WithCertSHA256(fingerprint(cert)), WithServerName("other.internal")}, true},
		"name from the SAN":     {[]Option{trusting(cert), WithServerName("zvm.internal")}, true},
		"name not from the SAN": {[]Option{trusting(cert), WithServerName("other.internal")}, false},
		"no check at all":       {[]Option{WithInsecureSkipVerify()}, true},
	} {
		for endpoint, reach := range endpoints {
			t.Run(name+"/"+endpoint, func(t *testing.T) {
				t.Parallel()
				if err := reach(t, tc.opts...); (err == nil) != tc.works {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func colons(digits string) string {
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

func TestCertificateProblemsAreNamedAndNotRetried(t *testing.T) {
	t.Parallel()
	old := x509.Certificate{IPAddresses: localhost.IPAddresses, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	early := x509.Certificate{IPAddresses: localhost.IPAddresses, NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(2 * time.Hour)}
	for name, tc := range map[string]struct {
		template x509.Certificate
		trusted  bool
		pin      string
		trust    TrustProblem
		mentions []string
	}{
		"self-signed":       {localhost, false, "", TrustAuthority, []string{"not trusted or is self-signed"}},
		"common name alone": {x509.Certificate{Subject: pkix.Name{CommonName: "127.0.0.1"}}, true, "", TrustUnfit, []string{"common name"}},
		"address not named": {x509.Certificate{DNSNames: []string{"zvm.internal"}}, true, "", TrustName, []string{"127.0.0.1"}},
		"expired":           {old, true, "", TrustUnfit, []string{"expired"}},
		"not yet valid":     {early, true, "", TrustUnfit, []string{"not yet valid", "clock"}},
		"other than pinned": {localhost, false, strings.Repeat("ab", 32), TrustPin, []string{"not the expected one", "SHA-256"}},
		"pinned to zeros":   {localhost, false, strings.Repeat("00", 32), TrustPin, []string{"not the expected one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, cert := certified(t, tc.template)
			opts := []Option{quickRetry}
			if tc.trusted {
				opts = append(opts, trusting(cert))
			}
			if tc.pin != "" {
				opts = append(opts, WithCertSHA256(tc.pin))
			}
			c := newTestClient(t, f.URL, opts...)
			err := c.write(t.Context(), postCall(), nil)
			e := asError(t, err)
			if f.conns.Load() != 1 || e.Attempts != 1 {
				t.Errorf("%d connections, %d attempts, want one of each", f.conns.Load(), e.Attempts)
			}
			if e.Trust != tc.trust {
				t.Errorf("Trust is %q, want %q", e.Trust, tc.trust)
			}
			if e.Temporary() || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("a certificate problem looks like something that passes: %v", err)
			}
			for _, text := range tc.mentions {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not mention %q", err, text)
				}
			}
		})
	}
}

func TestPlainServerIsNamed(t *testing.T) {
	t.Parallel()
	f := unstartedFakeServer(func(http.ResponseWriter, *http.Request) {})
	f.Start()
	t.Cleanup(f.Close)
	u, _ := url.Parse(f.URL)
	c := newTestClient(t, "https://"+u.Host, quickRetry)
	err := c.read(t.Context(), getCall(), &struct{}{})
	if err == nil || !strings.Contains(err.Error(), "does not speak TLS") || asError(t, err).Attempts != 1 {
		t.Errorf("error is %v", err)
	}
}

func TestPinHoldsOnResumedSessions(t *testing.T) {
	t.Parallel()
	f, cert := certified(t, localhost)
	c := newTestClient(t, f.URL, WithCertSHA256(fingerprint(cert)))
	for range 3 {
		if err := c.read(t.Context(), getCall(), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		closeIdle(c)
	}
	if f.conns.Load() < 3 {
		t.Errorf("%d connections: no session was resumed", f.conns.Load())
	}
}
