package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/zerto-rewind/zerto-rewind/adapters/ledger"
)

// checkLedger opens the ledger and reads its record. It makes none where there is none.
func (a *app) checkLedger(ctx context.Context, d *diagnosis) {
	const name = "ledger"
	r := a.reader()
	dir, err := r.stateDir()
	if err := errors.Join(err, r.err()); err != nil {
		d.fail(name, err, "")
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(name, checkOK, "none yet; the first guard makes it in "+dir, "")
		return
	case err != nil:
		d.fail(name, err, "")
		return
	case !info.IsDir():
		d.add(name, checkFail, dir+" is not a folder", "set "+setStateDir.variable)
		return
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		d.add("state folder", checkWarn, fmt.Sprintf("others can look into %s (mode %04o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
	}
	if exists, err := ledger.Exists(dir); err == nil && !exists {
		d.add(name, checkOK, "none yet; the first guard makes it in "+dir, "")
		return
	}
	l, err := ledger.Open(ctx, dir, ledger.Options{ZVM: r.text(setURL)})
	if err != nil {
		d.fail(name, err, "until it opens again, calls that change a VM are refused; it is left as it is")
		return
	}
	defer l.Close() //nolint:errcheck // it was read
	record, err := l.Verify(ctx)
	switch {
	case err != nil:
		d.fail(name, err, "until it can be read again, calls that change a VM are refused; it is left as it is")
		return
	case len(record.Problems) > 0:
		p := record.Problems[0]
		d.add(name, checkFail, fmt.Sprintf("the chain of the record does not hold at line %d: %s", p.Seq, p.What), "zerto-rewind audit verify")
		return
	}
	d.add(name, checkOK, fmt.Sprintf("%s, %d lines, head %s", l.Path(), record.Lines, orDash(record.Head)), "")
	freeze, err := l.Frozen(ctx)
	switch {
	case err != nil:
		d.fail("freeze", err, "")
	case freeze != nil:
		d.add("freeze", checkWarn, fmt.Sprintf("frozen by %s at %s: %s", orDash(freeze.By), moment(freeze.At), orDash(freeze.Reason)),
			"a person lifts it at a terminal: zerto-rewind thaw")
	}
}
