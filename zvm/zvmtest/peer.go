package zvmtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// mirror is what a peer knows of the server that it is paired with.
type mirror struct {
	of   *Server
	at   *site         // this server's own
	vpgs map[*VPG]*VPG // from what is there to what is shown here
	vms  map[*VM]*VM
}

// NewPeer starts the ZVM of a site that s is paired with. It has the clock and the site ids of s, and nothing else of its
// options. The caller closes it.
//
// It lists the VPGs of s that recover to that site, with their state, their VMs and their journals as they are at each
// request, and serves file-level recovery for them, which s refuses (zvm-wire 13). Its FLR sessions are its own. It has
// handles of its own too: VPGs and VMs list them, and what is steered is steered at s.
//
// How the two ZVMs of a pair show one VPG is documented nowhere. It is inferred that both list it, its VMs and its
// checkpoints, with the same names, tags and times, under the same ids, or by [PeerIDsDiffer] under others. Writes at such
// a VPG are refused here; on an appliance they may be taken.
func (s *Server) NewPeer(at Site, opts ...Option) (*Server, error) {
	s.mu.Lock()
	peers := slices.Clone(s.peers)
	s.mu.Unlock()
	i := slices.IndexFunc(peers, func(p *site) bool { return p.ID == at.ID })
	if i < 0 {
		return nil, fmt.Errorf("NewPeer: site %q is not paired with this server", at.Name)
	}
	paired := func(c *config) error {
		c.mirror = &mirror{of: s, at: peers[i], vpgs: map[*VPG]*VPG{}, vms: map[*VM]*VM{}}
		return nil
	}
	return New(append([]Option{WithSeed(s.cfg.seed + 1), WithClock(s.Now), paired}, opts...)...)
}

// StartPeer is NewPeer for a test, as Start is New.
func (s *Server) StartPeer(tb TB, at Site, opts ...Option) *Server {
	tb.Helper()
	peer, err := s.NewPeer(at, opts...)
	return started(tb, peer, err)
}

// takeOver takes over what the other server knows now. The caller holds the mutex of s; the other's is always taken after
// it, and never before.
func (s *Server) takeOver() {
	m := s.cfg.mirror
	if m == nil {
		return
	}
	m.of.lock()
	defer m.of.mu.Unlock()
	s.peers = append([]*site{m.of.local}, m.of.peers...)
	s.peers = slices.DeleteFunc(s.peers, func(p *site) bool { return p == s.local })
	for _, theirs := range m.of.vpgs {
		if theirs.recovery == s.local {
			s.takeOverVPG(theirs)
		}
	}
}

func (s *Server) takeOverVPG(theirs *VPG) {
	own := s.cfg.mirror.vpgs[theirs]
	if own == nil {
		own = &VPG{s: s, id: theirs.id, name: theirs.name, protected: theirs.protected, recovery: s.local, mirrored: true}
		if s.cfg.has(PeerIDsDiffer) {
			own.id = guid(s.cfg.seed, "vpg", theirs.id)
		}
		s.cfg.mirror.vpgs[theirs] = own
		s.vpgs = append(s.vpgs, own)
	}
	own.status, own.subStatus, own.lastTest = theirs.status, theirs.subStatus, theirs.lastTest
	for _, vm := range theirs.vms {
		if shown := s.takeOverVM(vm); !slices.Contains(own.vms, shown) {
			own.vms, shown.vpgs = append(own.vms, shown), append(shown.vpgs, own)
		}
	}
	own.journal = s.takeOverJournal(theirs.journal)
}

func (s *Server) takeOverVM(theirs *VM) *VM {
	own := s.cfg.mirror.vms[theirs]
	if own == nil {
		own = &VM{s: s, id: theirs.id, name: theirs.name, site: theirs.site, guest: theirs.guest}
		if s.cfg.has(PeerIDsDiffer) {
			own.id = s.local.vcenter + ".vm-" + strconv.Itoa(38+len(s.vms))
		}
		s.cfg.mirror.vms[theirs] = own
		s.vms = append(s.vms, own)
	}
	own.ips, own.flrEnabled = theirs.ips, theirs.flrEnabled
	return own
}

// idDistance is how far the ids of checkpoints lie apart at two ZVMs with PeerIDsDiffer. Ids of one journal are so close
// to each other that one ZVM's id is another checkpoint's at the other.
const idDistance = 2 * idStride

func (s *Server) takeOverJournal(theirs journal) journal {
	own := theirs
	own.gaps, own.tagged = slices.Clone(theirs.gaps), slices.Clone(theirs.tagged)
	distance := int64(0)
	if s.cfg.has(PeerIDsDiffer) {
		distance = idDistance
	}
	own.firstID += distance
	own.lost, own.renamed = shifted(theirs.lost, distance), shifted(theirs.renamed, distance)
	for i := range own.tagged {
		c := &own.tagged[i]
		c.id += distance
		trees := make(map[*VM]*tree, len(c.trees))
		for vm, frozen := range c.trees {
			trees[s.takeOverVM(vm)] = frozen
		}
		c.trees = trees
	}
	return own
}

func shifted[V any](byID map[int64]V, distance int64) map[int64]V {
	moved := make(map[int64]V, len(byID))
	for id, value := range byID {
		moved[id+distance] = value
	}
	return moved
}

// refuseMirrored refuses a write at a VPG that another server protects.
func (s *Server) refuseMirrored(rt *route, c *call) (reply, bool) {
	if rt.access != write {
		return reply{}, false
	}
	vpg := s.findVPG(c.params["id"])
	if vpg == nil || !vpg.mirrored {
		return reply{}, false
	}
	return fail(http.StatusInternalServerError, "VPG "+vpg.name+" is protected at site "+vpg.protected.Name), true
}
