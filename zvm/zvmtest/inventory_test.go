package zvmtest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

type wireLink struct{ Href, Identifier, Type string }

type wireVM struct {
	VMIdentifier         string `json:"VmIdentifier"`
	VMName               string `json:"VmName"`
	VpgIdentifier        string
	VpgName              string
	Link                 wireLink
	ProtectedSite        wireLink
	RecoverySite         wireLink
	Status               int
	EnabledActions       *struct{ IsFlrEnabled bool }
	VMNetworkInformation *struct {
		NetworkAdapters []struct {
			IPAddresses []string `json:"IpAddresses"`
		}
	} `json:"VmNetworkInformation"`
}

func (c *client) vms(query string) []wireVM {
	c.t.Helper()
	var list []wireVM
	c.get("/v1/vms"+query).into(c.t, &list)
	return list
}

// threefold is a VM in three VPGs, the first of them local.
func threefold(s *zvmtest.Server) (*zvmtest.VM, []*zvmtest.VPG) {
	vpgs := []*zvmtest.VPG{
		s.AddVPG("local", zvmtest.VPGConfig{}),
		s.AddVPG("remote", zvmtest.VPGConfig{RecoverySite: s.AddPeerSite("Recovery")}),
		s.AddVPG("far", zvmtest.VPGConfig{RecoverySite: s.AddPeerSite("Far")}),
	}
	return s.AddVM("web01", vpgs...), vpgs
}

func TestVMIsListedOncePerVPG(t *testing.T) {
	t.Parallel()
	s := start(t)
	vm, vpgs := threefold(s)
	list := login(t, s).vms("")
	if len(list) != 3 {
		t.Fatalf("elements = %d, want 3", len(list))
	}
	for i, one := range list {
		if one.VMIdentifier != vm.ID() || one.VpgIdentifier != vpgs[i].ID() || one.VMName != "web01" {
			t.Errorf("element %d = %+v", i, one)
		}
		if want := vm.ID() + "?VpgIdentifier=" + vpgs[i].ID(); one.Link.Identifier != want {
			t.Errorf("link = %s, want %s", one.Link.Identifier, want)
		}
	}
	types := []string{list[0].RecoverySite.Type, list[1].RecoverySite.Type}
	if !slices.Equal(types, []string{"LocalSiteApi", "PeerSiteApi"}) {
		t.Errorf("recovery sites = %v", types)
	}
	if !strings.HasSuffix(vm.ID(), ".vm-38") {
		t.Errorf("id = %s", vm.ID())
	}
}

func TestSingleGetOfAVMInSeveralVPGs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		opts   []zvmtest.Option
		status int
	}{
		{"is a 500", nil, 500},
		{"is a 400 by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.AmbiguousVMBadRequest)}, 400},
		{"is the first by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.AmbiguousVMFirstMatch)}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			vm, vpgs := threefold(s)
			c := login(t, s)
			if a := c.get("/v1/vms/" + vm.ID()); a.status != tc.status {
				t.Errorf("without the VPG: %d, want %d", a.status, tc.status)
			}
			var one wireVM
			c.get("/v1/vms/"+vm.ID()+"?vpgidentifier="+vpgs[1].ID()).into(t, &one)
			if one.VpgIdentifier != vpgs[1].ID() {
				t.Errorf("with the VPG: %+v", one)
			}
			if a := c.get("/v1/vms/" + vm.ID() + "/pointsInTime/stats"); a.status != tc.status {
				t.Errorf("points in time without the VPG: %d, want %d", a.status, tc.status)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	name := "a+b & c/100% ü"
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		path string
		want int
	}{
		{"VM name, any case", nil, "vms?vmName=WEB01", 1},
		{"VM name is not a part", nil, "vms?vmName=web", 0},
		{"VM name is a part by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.FiltersContain)}, "vms?vmName=web", 2},
		{"nothing filters by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.FiltersIgnored)}, "vms?vmName=x&status=8", 3},
		{"odd name", nil, "vms?vmname=" + url.QueryEscape(name), 1},
		{"VPG name of VMs", nil, "vms?vpgName=two", 1},
		{"status number", nil, "vms?status=1", 2},
		{"status name", nil, "vpgs?status=deltasync", 0},
		{"status name of VPGs", nil, "vpgs?status=meetingsla", 1},
		{"substatus", nil, "vpgs?substatus=BitmapSync", 1},
		{"VPG name", nil, "vpgs?name=TWO", 1},
		{"two filters", nil, "vms?vmName=web01&status=3", 0},
		{"recovery site", nil, "vpgs?recoverySiteIdentifier=x", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			one, two := s.AddVPG("one", zvmtest.VPGConfig{}), s.AddVPG("two", zvmtest.VPGConfig{Status: 3, SubStatus: 23})
			s.AddVM("web01", one)
			s.AddVM("web02", two)
			s.AddVM(name, one)
			var list []any
			login(t, s).get("/v1/"+tc.path).into(t, &list)
			if len(list) != tc.want {
				t.Errorf("%s has %d elements, want %d", tc.path, len(list), tc.want)
			}
		})
	}
}

func TestVMReportsWhatWasSet(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	vm.SetIPs("10.0.0.1", "fe80::1")
	vm.SetFLREnabled(false)
	vpg.SetStatus(0, 1)
	got := login(t, s).vms("")[0]
	if diff := cmp.Diff([]string{"10.0.0.1", "fe80::1"}, got.VMNetworkInformation.NetworkAdapters[0].IPAddresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if got.EnabledActions.IsFlrEnabled || got.Status != 0 {
		t.Errorf("VM = %+v", got)
	}
}

func TestSites(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSiteName("Here"))
	peer := s.AddPeerSite("There")
	if again := s.AddPeerSite("There"); again != peer {
		t.Errorf("the same peer twice: %v, %v", peer, again)
	}
	c := login(t, s)
	var local struct {
		SiteName, SiteIdentifier   string
		IsReplicationToSelfEnabled bool
		UtcOffsetInMinutes         int
		Link                       wireLink
	}
	c.get("/V1/LocalSite").into(t, &local)
	if local.SiteName != "Here" || local.SiteIdentifier != s.LocalSite().ID || local.UtcOffsetInMinutes != -240 || local.Link.Identifier != local.SiteIdentifier {
		t.Errorf("local site = %+v", local)
	}
	for query, want := range map[string]int{"": 1, "?peerName=There": 1, "?peerName=there": 0} {
		var peers []struct{ SiteIdentifier, PeerSiteName string }
		c.get("/v1/peersites"+query).into(t, &peers)
		if len(peers) != want || want == 1 && peers[0].SiteIdentifier != peer.ID {
			t.Errorf("peers%s = %+v", query, peers)
		}
	}
	if a := c.get("/v1/peersites/" + peer.ID); a.status != http.StatusOK {
		t.Errorf("one peer = %d", a.status)
	}
}

func TestUnprotectedVMIsKnownToItsSiteAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.AddVM("web01", s.AddVPG("web", zvmtest.VPGConfig{}))
	lonely := s.AddVM("lonely")
	c := login(t, s)
	var list []struct {
		VMIdentifier string `json:"VmIdentifier"`
	}
	c.get("/v1/virtualizationsites/"+s.LocalSite().ID+"/vms").into(t, &list)
	if len(list) != 1 || list[0].VMIdentifier != lonely.ID() || len(c.vms("")) != 1 {
		t.Errorf("unprotected = %+v, protected %d", list, len(c.vms("")))
	}
	var sites []struct{ SiteIdentifier string }
	c.get("/v1/virtualizationsites").into(t, &sites)
	if len(sites) != 1 || sites[0].SiteIdentifier != s.LocalSite().ID {
		t.Errorf("sites = %+v", sites)
	}
}

func TestKeyCaseAndIDSwitches(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSwitch(zvmtest.CamelCaseKeys, zvmtest.IDsOnlyInLinks))
	vpg := s.AddVPG("Web: \"A\"", zvmtest.VPGConfig{JournalAge: time.Minute})
	s.AddVM("web01", vpg)
	c := login(t, s)
	for _, path := range []string{"/v1/vms", "/v1/vpgs", "/v1/localsite", "/v1/vpgs/" + vpg.ID() + "/checkpoints"} {
		body := c.get(path).body
		for _, wrong := range []string{`"VmName":`, `"VpgName":`, `"SiteName":`, `"Tag":`, `"IOPs":`, `"iOPs":`, `"vmIdentifier":`, `"vpgIdentifier":`, `"siteIdentifier":`} {
			if strings.Contains(body, wrong) {
				t.Errorf("%s has %s", path, wrong)
			}
		}
	}
	if body := c.get("/v1/vpgs").body; !strings.Contains(body, `"vpgName":"Web: \"A\""`) || !strings.Contains(body, `"ioPs":`) {
		t.Errorf("vpgs = %s", body)
	}
}

func TestNullFieldsSwitch(t *testing.T) {
	t.Parallel()
	s := start(t, zvmtest.WithSwitch(zvmtest.NullFields))
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	s.AddVM("web01", vpg)
	c := login(t, s)
	id := c.insert(vpg, "x")
	for path, fields := range map[string][]string{
		"/v1/vms":         {"VmNetworkInformation", "EnabledActions"},
		"/v1/vpgs":        {"HistoryStatusApi", "FailSafeHistory", "ActiveProcessesApi"},
		"/v1/tasks/" + id: {"Vpgs", "FlrSessions"},
	} {
		body := c.get(path).body
		for _, field := range fields {
			if !strings.Contains(body, fmt.Sprintf("%q:null", field)) {
				t.Errorf("%s has no null %s: %s", path, field, body)
			}
		}
	}
}

func TestStatusNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want string
	}{
		{"newer releases", nil, "RpoNotMeetingSLA"},
		{"older releases", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.SwappedStatusNames)}, "HistoryNotMeetingSLA"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tc.opts...)
			vpg := s.AddVPG("web", zvmtest.VPGConfig{Status: 3, SubStatus: 42})
			c := login(t, s)
			var statuses, subStatuses []string
			c.get("/v1/vpgs/statuses").into(t, &statuses)
			c.get("/v1/vpgs/substatuses").into(t, &subStatuses)
			if statuses[3] != tc.want || subStatuses[23] != "BitmapSync" || len(subStatuses) != 41 {
				t.Errorf("names = %v %v", statuses, subStatuses)
			}
			var got struct{ StatusDescription, SubStatusDescription string }
			c.get("/v1/vpgs/"+vpg.ID()).into(t, &got)
			if got.StatusDescription != tc.want || got.SubStatusDescription != "" {
				t.Errorf("descriptions = %+v", got)
			}
		})
	}
}

func TestEncryptionDetection(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	s.AddVM("web02", vpg)
	c := login(t, s)
	vm.SetSuspicion(2)
	vpg.SetSuspicion(1)
	for path, want := range map[string]string{"vms": "web01", "vpgs": "web"} {
		var list []struct {
			Link           struct{ Name string }
			SuspicionLevel int
		}
		c.get("/v1/encryptionDetection/suspected/"+path).into(t, &list)
		if len(list) != 1 || list[0].Link.Name != want || list[0].SuspicionLevel == 0 {
			t.Errorf("suspected %s = %+v", path, list)
		}
	}
	if a := c.get("/v1/encryptionDetection/state"); a.body != `{"EncryptionDetectionEnabled":true}` {
		t.Errorf("state = %s", a.body)
	}
}
