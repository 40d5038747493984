package zvmtest_test

import (
	"testing"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// A server has to start in well under 20 ms, so that each test has its own.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := zvmtest.New()
		if err != nil {
			b.Fatal(err)
		}
		s.AddVM("web01", s.AddVPG("web", zvmtest.VPGConfig{}))
		s.Close()
	}
}
