package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// NotMountableError says that the server would not mount a VM from a checkpoint now, and why. Nothing was mounted.
type NotMountableError struct {
	VM           VM
	VPGName      string
	CheckpointID zvm.CheckpointID
	Reason       string // in the server's words where it gives any
}

func (e *NotMountableError) Error() string {
	return fmt.Sprintf("%s cannot be mounted from checkpoint %s of %s: %s",
		shown(e.VM.Name), e.CheckpointID, shown(e.VPGName), shown(e.Reason))
}

// checkMount asks, before anything is mounted, whether the server would mount the one VM of a checkpoint that was just
// read in its journal. A no is a [*NotMountableError]. A question that the server does not answer forbids nothing: the
// mount itself decides.
func (s *Session) checkMount(ctx context.Context, from covered) error {
	vm := from.mountAs
	inv, err := s.inventory.get(ctx)
	if err != nil {
		return context.Cause(ctx)
	}
	said, err := s.mountable(ctx, inv, from.TaggedCheckpoint, vm)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := said.Reason
	if err != nil || said.OK {
		reason = forbidsMount(inv.vpgs[from.VPGID])
	}
	if reason == "" {
		return nil
	}
	return &NotMountableError{VM: vm, VPGName: from.VPGName, CheckpointID: from.CheckpointID, Reason: reason}
}

// forbidsMount returns which sync keeps a VPG from being recovered. During a bitmap sync it can be (zvm-wire 3.2, 3.3).
func forbidsMount(v zvm.VPG) string {
	sync := strings.HasSuffix(v.SubStatus.String(), "Sync") && v.SubStatus.String() != "BitmapSync"
	if sync || v.Status == zvm.StatusInitializing {
		return whyNotProtecting(v)
	}
	return ""
}

// explainRole adds to a refusal of the FLR pages what its own words do not say. Whoever mounts has just read a journal with
// the same token, so that a 401 there speaks of a role as a 403 does (zvm-wire 6.7, 13).
func explainRole(err error) error {
	var refused *zvm.Error
	if errors.As(err, &refused) && strings.HasPrefix(refused.Path, "/v1/flrs") &&
		(errors.Is(refused, zvm.ErrUnauthorized) || errors.Is(refused, zvm.ErrForbidden)) {
		return fmt.Errorf("%w; file-level recovery needs the Administrator role on 10.9, where the FLR Operator role does not work for it", err)
	}
	return err
}
