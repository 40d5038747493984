package zvmtest

import (
	"net/http"
	"strings"
	"time"
)

type localSiteBody struct {
	BandwidthThrottlingInMBs   float64
	ContactEmail               string
	ContactName                string
	ContactPhone               string
	DisplayVersion             string
	IPAddress                  string `json:"IpAddress"`
	IsLoginBannerEnabled       bool
	IsReplicationToSelfEnabled bool
	Link                       resourceLink
	Location                   string
	LoginBanner                string
	SiteIdentifier             string `json:",omitempty"`
	SiteName                   string
	SiteType                   string
	SiteTypeVersion            string
	UtcOffsetInMinutes         int
	Version                    string
	ZvmAPIVersion              string `json:"ZvmApiVersion"`
}

const zvmVersion = "10.9.0"

// handleLocalSite answers as zvm-wire 8.1.
func handleLocalSite(s *Server, _ *call) reply {
	return ok(localSiteBody{
		BandwidthThrottlingInMBs:   -1,
		DisplayVersion:             "10.9",
		IPAddress:                  "127.0.0.1",
		IsReplicationToSelfEnabled: true,
		Link:                       s.siteLink(s.local),
		SiteIdentifier:             s.topID(s.local.ID),
		SiteName:                   s.local.Name,
		SiteType:                   "VCenter",
		SiteTypeVersion:            "8.0",
		UtcOffsetInMinutes:         int(s.cfg.utcOffset / time.Minute),
		Version:                    zvmVersion,
		ZvmAPIVersion:              zvmVersion,
	})
}

type peerSiteBody struct {
	HostName       string
	Link           resourceLink
	Location       string
	PairingStatus  int
	PeerSiteName   string
	Port           int
	SiteIdentifier string `json:",omitempty"`
	SiteType       string
	Version        string
}

func (s *Server) peerSiteBody(peer *site) peerSiteBody {
	return peerSiteBody{
		HostName:       "zvm." + peer.ID[:8] + ".example",
		Link:           s.siteLink(peer),
		PeerSiteName:   peer.Name,
		Port:           9081,
		SiteIdentifier: s.topID(peer.ID),
		SiteType:       "VCenter",
		Version:        zvmVersion,
	}
}

// handlePeerSites filters by peerName with regard to case (zvm-wire 2.4).
func handlePeerSites(s *Server, c *call) reply {
	list := []peerSiteBody{}
	for _, peer := range s.peers {
		if name := c.param("peerName"); name == "" || name == peer.Name {
			list = append(list, s.peerSiteBody(peer))
		}
	}
	return ok(list)
}

func handlePeerSite(s *Server, c *call) reply {
	for _, peer := range s.peers {
		if strings.EqualFold(peer.ID, c.params["id"]) {
			return ok(s.peerSiteBody(peer))
		}
	}
	return s.unknownID("site", c.params["id"])
}

type virtualizationSite struct {
	SiteIdentifier         string
	VirtualizationSiteName string
}

func handleVirtualizationSites(s *Server, _ *call) reply {
	list := []virtualizationSite{{s.local.ID, s.local.Name}}
	for _, peer := range s.peers {
		list = append(list, virtualizationSite{peer.ID, peer.Name})
	}
	return ok(list)
}

type siteVM struct {
	VMIdentifier string `json:"VmIdentifier"`
	VMName       string `json:"VmName"`
}

// handleSiteVMs lists what is not protected (zvm-wire 2.5): VMs without a
// VPG, and clones.
func handleSiteVMs(s *Server, c *call) reply {
	wanted := c.params["id"]
	found := strings.EqualFold(wanted, s.local.ID)
	for _, peer := range s.peers {
		found = found || strings.EqualFold(wanted, peer.ID)
	}
	if !found {
		return s.unknownID("site", wanted)
	}
	list := []siteVM{}
	for _, vm := range s.vms {
		if len(vm.vpgs) == 0 && strings.EqualFold(vm.site.ID, wanted) {
			list = append(list, siteVM{vm.id, vm.name})
		}
	}
	for _, clone := range s.clones {
		for _, vm := range clone.VMs {
			if strings.EqualFold(clone.SiteID, wanted) {
				list = append(list, siteVM{vm.ID, vm.Name})
			}
		}
	}
	return ok(list)
}

// handleLegacySession is how a client tells an appliance from a Windows ZVM
// (zvm-wire 1.1).
func handleLegacySession(*Server, *call) reply { return reply{status: http.StatusNotFound} }
