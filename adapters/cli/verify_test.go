package cli_test

import (
	"testing"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.guard()
	golden(t, "verify.txt", steady(w.mustRun("verify", "--change", "c1").out))
	golden(t, "verify.json", steady(w.mustRun("verify", "--change", "c1", "--json").out))
	for _, cp := range w.local.TaggedCheckpoints() {
		w.local.LoseCheckpoint(cp.ID)
	}
	o := w.run("verify", "--change", "c1")
	o.want(t, 5)
	golden(t, "verify-gone.txt", steady(o.out))
}
