package zvmtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// identity is an authority and a server certificate signed by it.
type identity struct {
	authority    *x509.Certificate
	authorityPEM []byte
	leaf         tls.Certificate
	leafSHA256   string
}

// processIdentity is made once per process and never changes: keys cost time,
// and no two servers of a process need to differ in them.
var processIdentity = sync.OnceValues(newIdentity)

func newIdentity() (*identity, error) {
	// Fixed dates that hold in the fake time of testing/synctest as well.
	from := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	until := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)

	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "zvmtest authority"},
		NotBefore:             from,
		NotAfter:              until,
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "zvmtest"},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(caDER)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(leafDER)
	return &identity{
		authority:    authority,
		authorityPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		leaf:         tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: leafKey},
		leafSHA256:   hex.EncodeToString(sum[:]),
	}, nil
}

func (i *identity) serverConfig() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{i.leaf},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	}
}
