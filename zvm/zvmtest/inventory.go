package zvmtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Site is a site: the server's own, or one it is paired with.
type Site struct {
	ID   string
	Name string
}

type site struct {
	Site
	vcenter string // the server id in front of a VM's moref
}

func (s *Server) newSite(name string) *site {
	return &site{
		Site:    Site{ID: guid(s.cfg.seed, "site", name), Name: name},
		vcenter: guid(s.cfg.seed, "vcenter", name),
	}
}

// LocalSite is the site of this ZVM.
func (s *Server) LocalSite() Site { return s.local.Site }

// AddPeerSite pairs a site of that name, or returns the one that is there.
func (s *Server) AddPeerSite(name string) Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, peer := range s.peers {
		if peer.Name == name {
			return peer.Site
		}
	}
	peer := s.newSite(name)
	s.peers = append(s.peers, peer)
	return peer.Site
}

// siteOf resolves a Site of a configuration; the zero Site is the local one.
func (s *Server) siteOf(want Site) *site {
	if want.ID == "" || want.ID == s.local.ID {
		return s.local
	}
	for _, peer := range s.peers {
		if peer.ID == want.ID {
			return peer
		}
	}
	s.problem(fmt.Sprintf("site %q is not of this server", want.Name))
	return s.local
}

// VM is a simulated virtual machine.
type VM struct {
	s     *Server
	id    string
	name  string
	site  *site
	guest *Guest

	// Guarded by the server's mutex.
	vpgs       []*VPG
	ips        []string
	flrEnabled bool
	suspicion  int
}

// AddVM adds a VM and protects it by the VPGs: up to three, of one protected
// site, each with another recovery site (zvm-wire 13); anything else is a
// problem of the server. Without a VPG the VM is known to the
// virtualization site alone. Names may repeat.
func (s *Server) AddVM(name string, vpgs ...*VPG) *VM {
	guest := newGuest(s.settledNow)
	s.lock()
	defer s.mu.Unlock()
	vm := &VM{s: s, name: name, site: s.local, flrEnabled: true, guest: guest}
	if len(vpgs) > 3 {
		s.problem(fmt.Sprintf("VM %q is in %d VPGs; 3 is the most", name, len(vpgs)))
	}
	recovery := map[*site]bool{}
	for i, vpg := range vpgs {
		if i > 0 && vpg.protected != vm.site || recovery[vpg.recovery] {
			s.problem(fmt.Sprintf("VM %q cannot be in VPG %q beside its other VPGs", name, vpg.name))
		}
		recovery[vpg.recovery] = true
		vm.site = vpg.protected
		vpg.vms = append(vpg.vms, vm)
	}
	vm.vpgs = slices.Clone(vpgs)
	vm.id = vm.site.vcenter + ".vm-" + strconv.Itoa(38+len(s.vms))
	s.vms = append(s.vms, vm)
	return vm
}

// VMs lists the VMs in the order in which they were added.
func (s *Server) VMs() []*VM {
	s.lock()
	defer s.mu.Unlock()
	return slices.Clone(s.vms)
}

// VPGs lists the VPGs in the order in which they were added.
func (s *Server) VPGs() []*VPG {
	s.lock()
	defer s.mu.Unlock()
	return slices.Clone(s.vpgs)
}

// ID is the vmIdentifier, "<server id>.<moref>".
func (vm *VM) ID() string { return vm.id }

// Name is the VM's name.
func (vm *VM) Name() string { return vm.name }

// Guest is what the VM's disks hold.
func (vm *VM) Guest() *Guest { return vm.guest }

// SetIPs sets the addresses that the VM's network adapter reports.
func (vm *VM) SetIPs(ips ...string) {
	vm.s.mu.Lock()
	defer vm.s.mu.Unlock()
	vm.ips = slices.Clone(ips)
}

// SetFLREnabled sets EnabledActions.IsFlrEnabled. Mounting a VM without it
// is refused.
func (vm *VM) SetFLREnabled(enabled bool) {
	vm.s.mu.Lock()
	defer vm.s.mu.Unlock()
	vm.flrEnabled = enabled
}

type limit struct {
	LimitType  int
	LimitValue int
}

type volume struct {
	VMVolumeIdentifier string `json:"VmVolumeIdentifier"`
}

type networkAdapter struct {
	DisplayName       string
	NetworkIdentifier string
	IPAddresses       []string `json:"IpAddresses"`
}

type networkInformation struct {
	NetworkAdapters []networkAdapter
}

type enabledActions struct {
	IsFlrEnabled bool
}

type entities struct {
	Protected int
	Recovery  int
	Source    int
	Target    int
}

// vmBody is one element of GET /v1/vms (zvm-wire 2.2).
type vmBody struct {
	ActualRPO               int
	CPUCoresNum             int `json:"CpuCoresNum"`
	EnabledActions          *enabledActions
	Entities                entities
	GuestOs                 string
	HardwareVersion         string
	IOPs                    int
	IsAgentInstalled        bool
	IsVMExists              bool `json:"IsVmExists"`
	JournalHardLimit        limit
	JournalWarningThreshold limit
	JournalUsedStorageMb    int
	LastTest                *string
	Link                    resourceLink
	SelfLink                resourceLink `json:"Link_{0}"`
	MemorySizeInMB          int
	OrganizationName        string
	OutgoingBandWidthInMbps float64
	Priority                int
	ProtectedSite           resourceLink
	ProtectedSiteName       string
	ProvisionedStorageInMB  int
	RecoveryHostIdentifier  string
	RecoverySite            resourceLink
	RecoverySiteName        string
	SourceSite              string
	TargetSite              string
	Status                  int
	SubStatus               int
	ThroughputInMB          float64
	UsedStorageInMB         int
	VMIdentifier            string              `json:"VmIdentifier,omitempty"`
	VMName                  string              `json:"VmName"`
	VMNetworkInformation    *networkInformation `json:"VmNetworkInformation"`
	Volumes                 []*volume
	VpgIdentifier           string `json:",omitempty"`
	VpgName                 string
}

func (s *Server) siteLink(st *site) resourceLink {
	if st == s.local {
		return s.link("localsite", st.ID, "LocalSiteApi")
	}
	return s.link("peersites/"+st.ID, st.ID, "PeerSiteApi")
}

func (s *Server) vmBody(vm *VM, vpg *VPG) vmBody {
	linkID := vm.id + "?VpgIdentifier=" + vpg.id
	self := s.link("vms/"+linkID, "", "VmApi")
	rel := "self"
	self.Rel = &rel
	body := vmBody{
		ActualRPO:               7,
		CPUCoresNum:             2,
		EnabledActions:          &enabledActions{vm.flrEnabled},
		GuestOs:                 "Other Linux (64-bit)",
		HardwareVersion:         "vmx-15",
		IOPs:                    2,
		IsVMExists:              true,
		JournalHardLimit:        limit{1, 153600},
		JournalWarningThreshold: limit{1, 115200},
		JournalUsedStorageMb:    640,
		LastTest:                isoDate(vpg.lastTest),
		Link:                    s.link("vms/"+linkID, linkID, "VmApi"),
		SelfLink:                self,
		MemorySizeInMB:          4096,
		OutgoingBandWidthInMbps: 0.001953125,
		Priority:                1,
		ProtectedSite:           s.siteLink(vpg.protected),
		ProtectedSiteName:       vpg.protected.Name,
		ProvisionedStorageInMB:  40960,
		RecoveryHostIdentifier:  vpg.recovery.vcenter + ".host-15",
		RecoverySite:            s.siteLink(vpg.recovery),
		RecoverySiteName:        vpg.recovery.Name,
		SourceSite:              vpg.protected.Name,
		TargetSite:              vpg.recovery.Name,
		Status:                  vpg.status,
		SubStatus:               vpg.subStatus,
		UsedStorageInMB:         8192,
		VMIdentifier:            s.topID(vm.id),
		VMName:                  vm.name,
		VMNetworkInformation: &networkInformation{[]networkAdapter{{
			DisplayName:       "Network adapter 1",
			NetworkIdentifier: vpg.protected.vcenter + ".network-11",
			IPAddresses:       slices.Clone(vm.ips),
		}}},
		Volumes:       []*volume{{"scsi:0:0"}},
		VpgIdentifier: s.topID(vpg.id),
		VpgName:       vpg.name,
	}
	if s.cfg.has(BareVMLinks) {
		body.Link.Identifier = vm.id
	}
	if vpg.status == statusInitializing {
		body.ActualRPO = -1
	}
	if s.cfg.has(NullFields) {
		body.EnabledActions, body.VMNetworkInformation, body.Volumes = nil, nil, []*volume{nil}
	}
	return body
}

// matchesText is a name filter. Exact or contains is documented nowhere
// (zvm-wire 2.4).
func (s *Server) matchesText(filter, value string) bool {
	switch {
	case filter == "" || s.cfg.has(FiltersIgnored):
		return true
	case s.cfg.has(FiltersContain):
		return strings.Contains(strings.ToLower(value), strings.ToLower(filter))
	case s.cfg.has(FiltersWildcard):
		return matchesWildcard(strings.ToLower(filter), strings.ToLower(value))
	}
	return strings.EqualFold(filter, value)
}

// matchesWildcard lets each * of a pattern stand for any characters.
func matchesWildcard(pattern, value string) bool {
	first, rest, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == value
	}
	value, fits := strings.CutPrefix(value, first)
	for skip := 0; fits && skip <= len(value); skip++ {
		if matchesWildcard(rest, value[skip:]) {
			return true
		}
	}
	return false
}

// matchesID is a filter by id or number.
func (s *Server) matchesID(filter, value string) bool {
	return filter == "" || s.cfg.has(FiltersIgnored) || strings.EqualFold(filter, value)
}

func (s *Server) matchesNumber(filter string, value int, names []string) bool {
	return filter == "" || s.cfg.has(FiltersIgnored) || matchesEnum(filter, value, names)
}

func handleVMs(s *Server, c *call) reply {
	list := []vmBody{}
	for _, vm := range s.vms {
		for _, vpg := range vm.vpgs {
			if s.matchesText(c.param("vmName"), vm.name) &&
				s.matchesText(c.param("vpgName"), vpg.name) &&
				s.matchesID(c.param("vmIdentifier"), vm.id) &&
				s.matchesVPG(c, vpg) {
				list = append(list, s.vmBody(vm, vpg))
			}
		}
	}
	return ok(list)
}

// vmInVPG picks the VPG that a call about one VM means. A VM in several VPGs
// needs vpgIdentifier (zvm-wire 2.3).
func (s *Server) vmInVPG(c *call) (*VM, *VPG, reply) {
	vm := s.findVM(c.params["id"])
	if vm == nil || len(vm.vpgs) == 0 {
		return nil, nil, s.unknownID("VM", c.params["id"])
	}
	wanted := c.param("vpgIdentifier")
	if wanted == "" && len(vm.vpgs) > 1 && !s.cfg.has(AmbiguousVMFirstMatch) {
		status := http.StatusInternalServerError
		if s.cfg.has(AmbiguousVMBadRequest) {
			status = http.StatusBadRequest
		}
		return nil, nil, fail(status, "VM "+vm.id+" is in several VPGs; the VPG identifier is needed")
	}
	for _, vpg := range vm.vpgs {
		if wanted == "" || strings.EqualFold(wanted, vpg.id) {
			return vm, vpg, reply{}
		}
	}
	return nil, nil, s.unknownID("VPG", wanted)
}

func handleVM(s *Server, c *call) reply {
	vm, vpg, refusal := s.vmInVPG(c)
	if vm == nil {
		return refusal
	}
	return ok(s.vmBody(vm, vpg))
}

func (s *Server) findVM(id string) *VM {
	for _, vm := range s.vms {
		if strings.EqualFold(vm.id, id) {
			return vm
		}
	}
	return nil
}
