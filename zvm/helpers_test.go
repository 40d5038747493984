package zvm

import "crypto/x509"

func (f *fakeServer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(f.Certificate())
	return pool
}
