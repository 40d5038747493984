package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/rewind/gate"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// fold makes one spelling of the ways in which people write a name.
func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Claims returns what is known of the guards of the VM with this name, newest first.
func (l *Ledger) Claims(ctx context.Context, vm string) ([]gate.Claim, error) {
	return l.claims(ctx, "looking for guards",
		"vm IN (SELECT vm FROM names WHERE zvm = ?1 AND name = ?2)", fold(vm))
}

// AllClaims returns what is known of the guards that were proven since a moment, newest first.
func (l *Ledger) AllClaims(ctx context.Context, since time.Time) ([]gate.Claim, error) {
	return l.claims(ctx, "listing guards", "proven_at >= ?2", since.UnixNano())
}

func (l *Ledger) claims(ctx context.Context, what, where string, arg any) ([]gate.Claim, error) {
	var claims []gate.Claim
	now := l.now()
	err := l.query(ctx, func(scan func(...any) error) error {
		var c gate.Claim
		var vm, record string
		var at int64
		if err := scan(&vm, &record, &at, &c.Closed, &c.Void); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(record), &c.Record); err != nil {
			return err
		}
		c.Age = now.Sub(time.Unix(0, at))
		c.VM.ID = zvm.VMID(vm)
		if i := slices.IndexFunc(c.Record.VMs, func(v rewind.VM) bool { return v.ID == c.VM.ID }); i >= 0 {
			c.VM = c.Record.VMs[i]
		}
		claims = append(claims, c)
		return nil
	}, "SELECT vm, record, proven_at, closed, void FROM guards WHERE zvm = ?1 AND "+where+" ORDER BY proven_at DESC, change", l.o.ZVM, arg)
	return claims, l.failed(what, err)
}

// Keep records a guard that was proven just now, and other names of its VM if it is of one.
func (l *Ledger) Keep(ctx context.Context, guard rewind.GuardRecord, names ...string) error {
	record, err := json.Marshal(guard)
	if err != nil {
		return l.failed("keeping a guard", err)
	}
	return l.change(ctx, "keeping a guard", func(tx *sql.Tx) error {
		isNew := false
		for _, vm := range guard.VMs {
			added, err := l.keep(ctx, tx, guard.ChangeID, string(vm.ID), string(record))
			if err != nil {
				return err
			}
			isNew = isNew || added
			own := []string{string(vm.ID), vm.Name}
			if len(guard.VMs) == 1 {
				own = append(own, names...)
			}
			for _, name := range own {
				if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO names VALUES (?, ?, ?)", l.o.ZVM, fold(name), string(vm.ID)); err != nil {
					return err
				}
			}
		}
		if !isNew {
			return nil
		}
		return l.append(ctx, tx, gate.Event{
			Kind: gate.EventGuarded, Targets: vmNames(guard), Changes: []string{guard.ChangeID}, Evidence: gate.Evidence(guard),
			Agent: guard.Agent, Human: guard.Human,
		})
	})
}

func vmNames(guard rewind.GuardRecord) []string {
	var names []string
	for _, vm := range guard.VMs {
		names = append(names, vm.Name)
	}
	return names
}

// keep reports whether the guard is a new one.
func (l *Ledger) keep(ctx context.Context, tx *sql.Tx, change, vm, record string) (bool, error) {
	now := l.now().UnixNano()
	done, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO guards (zvm, change, vm, record, proven_at) VALUES (?, ?, ?, ?, ?)",
		l.o.ZVM, change, vm, record, now)
	if err != nil {
		return false, err
	}
	if added, err := done.RowsAffected(); err != nil || added > 0 {
		return true, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE guards SET record = ?, proven_at = ? WHERE zvm = ? AND change = ? AND vm = ?",
		record, now, l.o.ZVM, change, vm)
	return false, err
}

// Void records that a guard of a VM stands no more.
func (l *Ledger) Void(ctx context.Context, claim gate.Claim, why string) error {
	return l.change(ctx, "voiding a guard", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE guards SET void = ? WHERE zvm = ? AND change = ? AND vm = ? AND void = ''",
			why, l.o.ZVM, claim.Record.ChangeID, string(claim.VM.ID))
		if err != nil {
			return err
		}
		return l.append(ctx, tx, gate.Event{
			Kind: gate.EventVoid, Reason: why, Targets: []string{claim.VM.Name}, Changes: []string{claim.Record.ChangeID},
		})
	})
}

// CloseChange records that a change is over: its guard lets nothing run any more. It reports whether the ledger knows a guard
// of that change; where it does not, nothing is recorded.
func (l *Ledger) CloseChange(ctx context.Context, changeID string) (known bool, err error) {
	err = l.change(ctx, "closing a change", func(tx *sql.Tx) error {
		var open int
		err := tx.QueryRowContext(ctx, "SELECT count(*) > 0, count(*) FILTER (WHERE closed = 0) FROM guards WHERE zvm = ? AND change = ?",
			l.o.ZVM, changeID).Scan(&known, &open)
		if err != nil || open == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE guards SET closed = 1 WHERE zvm = ? AND change = ?", l.o.ZVM, changeID); err != nil {
			return err
		}
		return l.append(ctx, tx, gate.Event{Kind: gate.EventClosed, Changes: []string{changeID}})
	})
	return known && err == nil, err
}
