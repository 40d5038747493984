package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) find() *cobra.Command {
	return a.command(cobra.Command{
		Use:   "find VM",
		Short: "Find the protection of a VM: every VPG it is in, and whether each protects it",
		Long: `Find resolves a VM's name, host name, IP address or vmIdentifier to exactly one VM, and shows every VPG it is in. A VPG
that protects takes a tagged checkpoint now. A VPG is local when files come back through this ZVM: file-level recovery
runs at the recovery site. A VM that no VPG protects now is found all the same.`,
		Args: exactly("VM"),
	}, time.Minute, func(ctx context.Context, args []string) error {
		session, _, err := a.session()
		if err != nil {
			return err
		}
		protection, err := session.FindProtection(ctx, args[0])
		if err != nil {
			return err
		}
		return a.result(protection, func(t *table) { showProtection(t, protection) })
	})
}

func showProtection(t *table, p *rewind.Protection) {
	t.row(p.VM.Name, string(p.VM.ID))
	t.blank()
	t.row("VPG", "PROTECTING", "LOCAL", "STATUS", "SUBSTATUS", "FROM", "TO", "REASON")
	for _, v := range p.VPGs {
		t.row(v.VPGName, yesNo(v.Protecting), yesNo(v.Local), v.Status, v.SubStatus, v.ProtectedSite, v.RecoverySite, orDash(v.Reason))
	}
}
