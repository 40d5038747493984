package zvm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// VM is one protected virtual machine in one VPG. A machine in several VPGs is listed once for each, with the same ID
// (zvm-wire 2.3).
type VM struct {
	ID            VMID
	Name          string
	VPG           VPGID
	VPGName       string
	ProtectedSite SiteRef
	RecoverySite  SiteRef
	// IPs are the addresses the guest reported. Empty when it has reported none, which is common.
	IPs []string
	// FLREnabled is what the server says of file-level recovery right now; nil when it says nothing.
	FLREnabled *bool
	// Journal is how much of its journal the VM uses in this VPG.
	Journal JournalUse
}

// JournalUse is what a VM's journal takes, in MB. Limits are zero when there is none, when the server does not say, or when it gives
// them in another unit.
type JournalUse struct {
	UsedMB, WarnAtMB, HardLimitMB int64
}

// VMFilter narrows [Client.ListVMs]. Empty fields do not narrow. Names are compared without regard to case.
type VMFilter struct {
	ID      VMID
	Name    string
	VPGName string
}

func (f VMFilter) query() url.Values {
	q := url.Values{"includeBackupedVms": {"false"}}
	setNonEmpty(q, "vmIdentifier", string(f.ID))
	setNonEmpty(q, "vmName", f.Name)
	setNonEmpty(q, "vpgName", f.VPGName)
	return q
}

func (f VMFilter) match(vm VM) bool {
	return (f.ID == "" || strings.EqualFold(string(f.ID), string(vm.ID))) &&
		(f.Name == "" || strings.EqualFold(f.Name, vm.Name)) &&
		(f.VPGName == "" || strings.EqualFold(f.VPGName, vm.VPGName))
}

type wireVM struct {
	VMIdentifier            string `json:"VmIdentifier"`
	VMName                  string `json:"VmName"`
	VpgIdentifier           string
	VpgName                 string
	Link                    *link
	ProtectedSite           *link
	RecoverySite            *link
	ProtectedSiteName       string
	RecoverySiteName        string
	SourceSite              string
	TargetSite              string
	JournalUsedStorageMB    int64 `json:"JournalUsedStorageMb"`
	JournalHardLimit        *wireLimit
	JournalWarningThreshold *wireLimit
	EnabledActions          *struct {
		IsFlrEnabled *bool
	}
	VMNetworkInformation *struct {
		NetworkAdapters []*struct {
			IPAddresses []string `json:"IpAddresses"`
		}
	} `json:"VmNetworkInformation"`
}

// wireLimit is a limit of a journal. Type 1 counts in MB (zvm-wire 2.2).
type wireLimit struct {
	LimitType  json.RawMessage
	LimitValue int64
}

var limitTypes = []string{"Unlimited", "Megabytes", "Percentage"}

func (l *wireLimit) megabytes() int64 {
	if l == nil || decodeEnum(l.LimitType, limitTypes).Number != 1 || l.LimitValue < 0 {
		return 0
	}
	return l.LimitValue
}

func (w wireVM) vm() (VM, error) {
	id, err := oneID("VM", w.VMIdentifier, w.Link.id())
	if err != nil {
		return VM{}, err
	}
	vpg, err := oneID("VM", w.VpgIdentifier, linkedVPG(w.Link))
	if err != nil {
		return VM{}, err
	}
	vm := VM{
		ID:            VMID(id),
		Name:          w.VMName,
		VPG:           VPGID(vpg),
		VPGName:       w.VpgName,
		ProtectedSite: siteRef(w.ProtectedSite, w.ProtectedSiteName, w.SourceSite),
		RecoverySite:  siteRef(w.RecoverySite, w.RecoverySiteName, w.TargetSite),
	}
	vm.Journal = JournalUse{
		UsedMB: w.JournalUsedStorageMB, WarnAtMB: w.JournalWarningThreshold.megabytes(), HardLimitMB: w.JournalHardLimit.megabytes(),
	}
	if w.EnabledActions != nil {
		vm.FLREnabled = w.EnabledActions.IsFlrEnabled
	}
	if w.VMNetworkInformation != nil {
		for _, adapter := range w.VMNetworkInformation.NetworkAdapters {
			if adapter != nil {
				vm.IPs = append(vm.IPs, adapter.IPAddresses...)
			}
		}
	}
	return vm, nil
}

// linkedVPG reads the VPG out of a VM link's "?VpgIdentifier=" part.
func linkedVPG(l *link) string {
	if l == nil {
		return ""
	}
	_, query, _ := strings.Cut(l.Identifier, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	for k, v := range values {
		if strings.EqualFold(k, "VpgIdentifier") {
			return v[0]
		}
	}
	return ""
}

// ListVMs returns the protected VMs this ZVM lists, one row per VM and VPG. Rows that do not match the filter are
// dropped here, whatever the server made of it.
func (c *Client) ListVMs(ctx context.Context, filter VMFilter) ([]VM, error) {
	cl := call{op: "ListVMs", method: http.MethodGet, path: "/v1/vms", query: filter.query()}
	return list(ctx, c, cl, wireVM.vm, filter.match)
}
