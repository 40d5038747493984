package rewind

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// VM names one virtual machine.
type VM struct {
	ID   zvm.VMID `json:"id"`
	Name string   `json:"name"`
}

// Protection is one VM and every VPG it is in.
type Protection struct {
	VM   VM              `json:"vm"`
	VPGs []VPGProtection `json:"vpgs"`
}

// VPGProtection says whether one VPG protects a VM, and why not when it does not.
type VPGProtection struct {
	VPGID      zvm.VPGID `json:"vpgId"`
	VPGName    string    `json:"vpgName"`
	Status     string    `json:"status"`
	SubStatus  string    `json:"subStatus"`
	Protecting bool      `json:"protecting"`
	// Reason says in words why the VPG does not protect. Empty when it does.
	Reason string `json:"reason"`
	// Local reports whether files can come back through the ZVM that was asked: FLR runs at the recovery site.
	Local         bool   `json:"local"`
	ProtectedSite string `json:"protectedSite"`
	RecoverySite  string `json:"recoverySite"`

	earliest time.Time // server clock, zero when unknown
}

// Protecting returns the VPGs in which a tagged checkpoint is certain.
func (p *Protection) Protecting() []VPGProtection {
	var protecting []VPGProtection
	for _, v := range p.VPGs {
		if v.Protecting {
			protecting = append(protecting, v)
		}
	}
	return protecting
}

// inventory is what one ZVM lists at one moment.
type inventory struct {
	vms  []zvm.VM
	vpgs map[zvm.VPGID]zvm.VPG
}

func (s *Session) readInventory(ctx context.Context) (inventory, error) {
	var inv inventory
	g, ctx := groupWithin(ctx)
	g.Go(func() (err error) {
		inv.vms, err = s.zvm.ListVMs(ctx, zvm.VMFilter{})
		return err
	})
	g.Go(func() error {
		vpgs, err := s.zvm.ListVPGs(ctx, zvm.VPGFilter{})
		inv.vpgs = make(map[zvm.VPGID]zvm.VPG, len(vpgs))
		for _, v := range vpgs {
			inv.vpgs[v.ID] = v
		}
		return err
	})
	return inv, g.Wait()
}

// FindProtection resolves a VM's name, host name, IP address or vmIdentifier to exactly one VM and every VPG it is in.
//
// An identifier beats an exact name, which beats a name in another case, which beats a host name (a short name meets an
// FQDN with that first label, either way round), which beats an address the guest reported. Several machines at the best
// of these are an [*AmbiguousVMError], none is a [*NotFoundError]. The same VM in several VPGs is one VM.
func (s *Session) FindProtection(ctx context.Context, vm string) (*Protection, error) {
	inv, err := s.inventory.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("find protection of %q: %w", vm, err)
	}
	p, err := s.resolve(ctx, inv, vm)
	if err != nil {
		return nil, err
	}
	s.progress(Event{Stage: StageFound, VM: p.VM})
	return p, nil
}

func (s *Session) resolve(ctx context.Context, inv inventory, wanted string) (*Protection, error) {
	best := bestMatches(inv.vms, wanted)
	machines := groupByID(best)
	switch len(machines) {
	case 0:
		return nil, s.notFound(ctx, wanted)
	case 1:
		return inv.protection(best), nil
	}
	ambiguous := &AmbiguousVMError{Wanted: wanted}
	for _, rows := range machines {
		ambiguous.Candidates = append(ambiguous.Candidates, *inv.protection(rows))
	}
	return nil, ambiguous
}

func (s *Session) notFound(ctx context.Context, wanted string) error {
	missing := &NotFoundError{Wanted: wanted}
	if site, err := s.zvm.GetLocalSite(ctx); err == nil {
		missing.Site = site.Name
	}
	return missing
}

// bestMatches returns the rows that meet wanted in the best way any row does.
func bestMatches(rows []zvm.VM, wanted string) []zvm.VM {
	if strings.TrimSpace(wanted) == "" {
		return nil
	}
	var best []zvm.VM
	bestRank := noMatch
	for _, row := range rows {
		switch rank := matchVM(row, wanted); {
		case rank < bestRank:
			best, bestRank = []zvm.VM{row}, rank
		case rank == bestRank && rank != noMatch:
			best = append(best, row)
		}
	}
	return best
}

const (
	matchID = iota
	matchName
	matchNameInAnotherCase
	matchHostName
	matchAddress
	noMatch
)

func matchVM(row zvm.VM, wanted string) int {
	switch {
	case string(row.ID) == wanted:
		return matchID
	case row.Name == wanted:
		return matchName
	case strings.EqualFold(row.Name, wanted):
		return matchNameInAnotherCase
	case sameHost(row.Name, wanted):
		return matchHostName
	case hasAddress(row.IPs, wanted):
		return matchAddress
	}
	return noMatch
}

// sameHost compares a short name with an FQDN. Two FQDNs that differ are two hosts, and so is an address.
func sameHost(a, b string) bool {
	aLabel, aDomain, aFQDN := strings.Cut(strings.TrimSuffix(a, "."), ".")
	bLabel, bDomain, bFQDN := strings.Cut(strings.TrimSuffix(b, "."), ".")
	if isAddress(a) || isAddress(b) || aLabel == "" {
		return false
	}
	return strings.EqualFold(aLabel, bLabel) && (aFQDN != bFQDN || strings.EqualFold(aDomain, bDomain))
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func hasAddress(reported []string, wanted string) bool {
	address, err := netip.ParseAddr(wanted)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(reported, func(r string) bool {
		a, err := netip.ParseAddr(r)
		return err == nil && a.Unmap() == address.Unmap()
	})
}

// groupByID returns the rows of each machine, machines ordered by id so that no verdict depends on the server's order.
func groupByID(rows []zvm.VM) [][]zvm.VM {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b zvm.VM) int { return strings.Compare(string(a.ID), string(b.ID)) })
	var machines [][]zvm.VM
	for i, row := range sorted {
		if i == 0 || row.ID != sorted[i-1].ID {
			machines = append(machines, nil)
		}
		machines[len(machines)-1] = append(machines[len(machines)-1], row)
	}
	return machines
}

// protection describes one machine from its rows, and from every other row that bears its id.
func (inv inventory) protection(rows []zvm.VM) *Protection {
	p := &Protection{VM: VM{ID: rows[0].ID, Name: rows[0].Name}}
	for _, row := range inv.vms {
		if row.ID != p.VM.ID || slices.ContainsFunc(p.VPGs, func(v VPGProtection) bool { return v.VPGID == row.VPG }) {
			continue
		}
		if vpg, listed := inv.vpgs[row.VPG]; listed {
			p.VPGs = append(p.VPGs, vpgProtection(vpg))
			continue
		}
		p.VPGs = append(p.VPGs, VPGProtection{
			VPGID: row.VPG, VPGName: row.VPGName, Status: "unknown", SubStatus: "unknown",
			Reason:        "the VM names this VPG but the ZVM does not list it",
			ProtectedSite: siteName(row.ProtectedSite), RecoverySite: siteName(row.RecoverySite),
		})
	}
	slices.SortFunc(p.VPGs, func(a, b VPGProtection) int {
		return cmp.Or(strings.Compare(a.VPGName, b.VPGName), strings.Compare(string(a.VPGID), string(b.VPGID)))
	})
	return p
}

// membersOf returns the machines of a VPG.
func (inv inventory) membersOf(vpg zvm.VPGID) []VM {
	var members []VM
	for _, row := range inv.vms {
		if row.VPG == vpg {
			members = append(members, VM{ID: row.ID, Name: row.Name})
		}
	}
	return members
}

func vpgProtection(v zvm.VPG) VPGProtection {
	reason := whyNotProtecting(v)
	p := VPGProtection{
		VPGID: v.ID, VPGName: v.Name,
		Status: v.Status.String(), SubStatus: v.SubStatus.String(),
		Protecting: reason == "", Reason: reason,
		Local:         v.Local(),
		ProtectedSite: siteName(v.ProtectedSite), RecoverySite: siteName(v.RecoverySite),
	}
	if v.History.Earliest != nil {
		p.earliest = v.History.Earliest.Time.Time
	}
	return p
}

func siteName(s zvm.SiteRef) string {
	if s.Name != "" {
		return s.Name
	}
	return string(s.ID)
}

// whyNotProtecting returns "" for a VPG in which a checkpoint is certain: status 1 to 4 and nothing going on beside it
// but a retention job (zvm-wire 3.2). Every other number, known or not, is a reason.
func whyNotProtecting(v zvm.VPG) string {
	switch v.Status {
	case zvm.StatusMeetingSLA, zvm.StatusNotMeetingSLA, zvm.StatusRPONotMeetingSLA, zvm.StatusHistoryNotMeeting:
	default:
		return statusReason(v)
	}
	switch v.SubStatus {
	case zvm.SubStatusNone, zvm.SubStatusBackup:
		return ""
	}
	return subStatusReason(v)
}

func statusReason(v zvm.VPG) string {
	name := v.Status.String()
	switch v.Status {
	case zvm.StatusInitializing:
		return name + ": the first sync is not over, no checkpoint can be added yet"
	case zvm.StatusFailingOver, zvm.StatusMoving:
		return name + ": the VMs are being recovered at another site"
	case zvm.StatusDeleting:
		return name + ": the VPG and its journal are being deleted"
	case zvm.StatusRecovered:
		return name + ": the VMs were recovered, nothing is being replicated"
	case zvm.StatusUnknown:
		return fmt.Sprintf("unknown status %q: not taken for protection", v.StatusText)
	}
	return name + ": not a status known to protect"
}

func subStatusReason(v zvm.VPG) string {
	name := v.SubStatus.String()
	switch {
	case name == "BitmapSync":
		return name + ": no new checkpoints are added while it runs"
	case strings.HasPrefix(name, "ReplicationPaused"):
		return name + ": replication stands still, a new checkpoint would not hold the present"
	case strings.HasSuffix(name, "Sync") || name == "Creating" || name == "AddedVmsInInitialSync":
		return name + ": a checkpoint is not certain, and existing ones may be deleted, while it runs"
	case strings.HasPrefix(name, "Disconnected"):
		return name + ": the sites do not reach each other"
	case v.SubStatus == zvm.SubStatusUnknown:
		return fmt.Sprintf("unknown substatus %q: not taken for protection", v.SubStatusText)
	}
	return name + ": a checkpoint is not certain in this state"
}
