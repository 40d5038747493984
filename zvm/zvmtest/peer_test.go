package zvmtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func TestAPeerServesFileLevelRecoveryForTheVPGsThatRecoverToIt(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zvmtest.Option{
		"the same ids":   nil,
		"ids of its own": {zvmtest.WithSwitch(zvmtest.PeerIDsDiffer)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			dr := s.AddPeerSite("DR")
			local, remote := s.AddVPG("local", zvmtest.VPGConfig{}), s.AddVPG("remote", zvmtest.VPGConfig{RecoverySite: dr})
			web := s.AddVM("web01", local, remote)
			write(t, web, "before")
			peer := s.StartPeer(t, dr, opts...)
			if peer.LocalSite() != dr {
				t.Errorf("the peer's site is %+v, want %+v", peer.LocalSite(), dr)
			}
			remote.RunForeignInsert("mine")
			s.Advance(time.Minute)
			write(t, web, "after")

			vpgs, vms := peer.VPGs(), peer.VMs()
			if len(vpgs) != 1 || len(vms) != 1 || vpgs[0].Name() != "remote" || vms[0].Name() != "web01" {
				t.Fatalf("the peer shows %d VPGs and %d VMs", len(vpgs), len(vms))
			}
			theirs, ours := vpgs[0].TaggedCheckpoints(), remote.TaggedCheckpoints()
			if len(theirs) != 1 || theirs[0].Tag != "mine" || !theirs[0].Time.Equal(ours[0].Time) {
				t.Fatalf("the peer's journal holds %+v, want %+v", theirs, ours)
			}
			same := vpgs[0].ID() == remote.ID() && vms[0].ID() == web.ID() && theirs[0].ID == ours[0].ID
			apart := vpgs[0].ID() != remote.ID() && vms[0].ID() != web.ID() && theirs[0].ID != ours[0].ID
			if opts == nil && !same || opts != nil && !apart {
				t.Errorf("VPG %s %s, VM %s %s, checkpoint %s %s", remote.ID(), vpgs[0].ID(), web.ID(), vms[0].ID(), ours[0].ID, theirs[0].ID)
			}
			m := mounted{login(t, peer), vpgs[0], vms[0], ""}
			m.session = m.mount(m.vpg, m.vm, theirs[0].ID).text(t)
			s.Advance(5 * time.Second) // the peer's clock is that of the pair
			if a := m.get(m.download(`"Volume1-Ext4/f"`).text(t)); a.body != "before" {
				t.Errorf("the file holds %q", a.body)
			}
			if len(peer.LiveFLRSessions()) != 1 || len(s.LiveFLRSessions()) != 0 {
				t.Errorf("%d sessions at the peer, %d at the protected site", len(peer.LiveFLRSessions()), len(s.LiveFLRSessions()))
			}
		})
	}
}

func TestAPeerFollowsWhatBecomesOfItsVPGs(t *testing.T) {
	t.Parallel()
	s := start(t)
	dr := s.AddPeerSite("DR")
	remote := s.AddVPG("remote", zvmtest.VPGConfig{RecoverySite: dr})
	peer := s.StartPeer(t, dr, zvmtest.WithSwitch(zvmtest.PeerIDsDiffer))
	s.AddVM("late", remote)
	remote.RunForeignInsert("mine")
	s.Advance(time.Minute)
	c := login(t, peer)
	if list := c.get("/v1/vms").body; !strings.Contains(list, `"late"`) {
		t.Errorf("the peer lists %s", list)
	}
	remote.LoseCheckpoint(remote.TaggedCheckpoints()[0].ID)
	remote.BitmapSync(true)
	if left := peer.VPGs()[0].TaggedCheckpoints(); len(left) != 0 {
		t.Errorf("the peer's journal still holds %+v", left)
	}
	if list := c.get("/v1/vpgs").body; !strings.Contains(list, `"SubStatus":23`) {
		t.Errorf("the peer lists %s", list)
	}
}

func TestAPeerTakesNoWritesAtWhatIsProtectedElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t)
	dr := s.AddPeerSite("DR")
	s.AddVM("web01", s.AddVPG("remote", zvmtest.VPGConfig{RecoverySite: dr}))
	peer := s.StartPeer(t, dr)
	own := peer.AddVPG("own", zvmtest.VPGConfig{})
	c := login(t, peer)
	for id, want := range map[string]int{peer.VPGs()[0].ID(): http.StatusInternalServerError, own.ID(): http.StatusOK} {
		if a := c.post("/v1/vpgs/"+id+"/checkpoints", `{"checkpointName":"x"}`); a.status != want {
			t.Errorf("an insert at %s: %d %s, want %d", id, a.status, a.body, want)
		}
	}
	if _, err := s.NewPeer(zvmtest.Site{ID: "none", Name: "elsewhere"}); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a peer of a site that is not paired: %v", err)
	}
}

func write(t *testing.T, vm *zvmtest.VM, content string) {
	t.Helper()
	if err := vm.Guest().WriteFile("/f", []byte(content)); err != nil {
		t.Fatal(err)
	}
}
