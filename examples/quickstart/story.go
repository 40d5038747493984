package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// story is one change that goes wrong and is taken back.
type story struct {
	client   *zvm.Client
	vm, path string
	out      io.Writer

	// spoil makes the change, and before is what the file held until then. Both are nil when the guest cannot be changed
	// from here.
	spoil  func() error
	before []byte
}

func (s story) tell(ctx context.Context) error {
	session, err := rewind.NewSession(s.client, rewind.WithAgent("quickstart"), rewind.WithNormalForm(norm.NFC.String))
	if err != nil {
		return err
	}
	at := timeline{out: s.out, start: time.Now()}

	protection, err := session.FindProtection(ctx, s.vm)
	if err != nil {
		return err
	}
	at.report("find", "%s is in these VPGs", protection.VM.Name)
	for _, v := range protection.VPGs {
		at.add("%s, %s to %s, %s: %s", v.VPGName, v.ProtectedSite, v.RecoverySite, v.Status, standing(v))
	}

	guard, err := session.Protect(ctx, s.vm, rewind.Change{Action: "edit " + s.path})
	if err != nil {
		return err
	}
	at.report("guard", "change %s is guarded, proof %s", guard.ChangeID(), guard.Record().Proof)
	for _, c := range guard.Record().Checkpoints {
		at.add("%s: task %s %s, checkpoint %s", c.VPGName, c.TaskID, c.TaskState, c.CheckpointID)
	}

	if s.spoil == nil {
		at.report("change", "%s cannot be changed from here: the file comes back as it was guarded", s.vm)
	} else {
		if err := s.spoil(); err != nil {
			return err
		}
		at.report("change", "%s is wrong now", s.path)
	}
	return s.takeBack(ctx, session, guard, at)
}

// takeBack recovers the file into a folder of its own and checks what arrived.
func (s story) takeBack(ctx context.Context, session *rewind.Session, guard *rewind.Guard, at timeline) (err error) {
	folder, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()

	dest := filepath.Join(folder, "recovered")
	recovery, err := session.Recover(ctx, guard, s.path, rewind.ToFile(dest))
	if err != nil {
		return err
	}
	at.report("recover", "%s from checkpoint %s, %d bytes", recovery.GuestPath, recovery.CheckpointID, recovery.Bytes)
	at.add("FLR session %s, unmounted: %t", recovery.FLRSessionID, recovery.Unmounted)

	arrived, err := os.ReadFile(dest)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(arrived)
	if hex.EncodeToString(sum[:]) != recovery.SHA256 || int64(len(arrived)) != recovery.Bytes {
		return fmt.Errorf("%s holds %d bytes, SHA-256 %x: not what was recovered", dest, len(arrived), sum)
	}
	if s.spoil == nil {
		at.report("compare", "%d bytes on disk, SHA-256 %s, as recovered", len(arrived), recovery.SHA256)
		return nil
	}
	if want := sha256.Sum256(s.before); !bytes.Equal(want[:], sum[:]) {
		return fmt.Errorf("the file came back with SHA-256 %x; before the change it had %x", sum, want)
	}
	at.report("compare", "SHA-256 %s, as before the change", recovery.SHA256)
	return nil
}

func standing(v rewind.VPGProtection) string {
	switch {
	case !v.Protecting:
		return "not protecting, " + v.Reason
	case v.Local:
		return "protecting, files come back here"
	}
	return "protecting, files come back at " + v.RecoverySite
}

// timeline prints what happened and when, counted from its start.
type timeline struct {
	out   io.Writer
	start time.Time
}

func (t timeline) report(step, format string, args ...any) {
	fmt.Fprintf(t.out, "%5.2f s  %-8s "+format+"\n", append([]any{time.Since(t.start).Seconds(), step}, args...)...)
}

// add prints a detail of the step before.
func (t timeline) add(format string, args ...any) {
	fmt.Fprintf(t.out, "%18s"+format+"\n", append([]any{""}, args...)...)
}
