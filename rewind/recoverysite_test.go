package rewind_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// pair is a ZVM whose dr01 recovers to another site alone, and the ZVM of that site.
type pair struct {
	*world
	peer   *zvmtest.Server
	dr     *zvmtest.VM
	site   zvm.SiteID
	there  *zvm.Client
	before *rewind.Guard
}

func newPair(t *testing.T, opts ...zvmtest.Option) *pair {
	t.Helper()
	return pairOf(t, newWorld(t), opts...)
}

func pairOf(t *testing.T, w *world, opts ...zvmtest.Option) *pair {
	t.Helper()
	p := &pair{world: w}
	at := p.sim.AddPeerSite("DR")
	p.dr = p.sim.AddVM("dr01", p.remote)
	must(t, p.dr.Guest().WriteFile("/etc/nginx/nginx.conf", []byte(goodConfig)))
	p.peer = w.startPeer(t, at, opts...)
	p.site = zvm.SiteID(at.ID)
	p.there, _ = connect(t, p.peer)
	p.Session = p.with(t, rewind.WithRecoverySite(p.site, p.there))
	p.before = p.guard(t, "dr01")
	must(t, p.dr.Guest().WriteFile("/etc/nginx/nginx.conf", []byte("broken by the agent")))
	return p
}

// startPeer starts the ZVM of another site, in the profile of the suite and with the clock of the first.
func (w *world) startPeer(t *testing.T, at zvmtest.Site, opts ...zvmtest.Option) *zvmtest.Server {
	t.Helper()
	return w.sim.StartPeer(t, at, append(append(profile(t), zvmtest.WithClock(w.sim.Now)), opts...)...)
}

func (p *pair) with(t *testing.T, opts ...rewind.Option) *rewind.Session {
	t.Helper()
	s, err := p.With(opts...)
	must(t, err)
	return s
}

// mountedThereAlone fails unless everything of FLR happened at the peer, and was closed.
func (p *pair) mountedThereAlone(t *testing.T, mounts int) {
	t.Helper()
	p.nothingMounted(t)
	if left := p.peer.LiveFLRSessions(); len(left) != 0 {
		t.Errorf("left mounted at the recovery site: %+v", left)
	}
	if here, there := p.sim.Count("", "/v1/flrs"), p.peer.Count("POST", "/v1/flrs"); here != 0 || there != mounts {
		t.Errorf("%d FLR requests at the protected site and %d mounts at the recovery site, want 0 and %d", here, there, mounts)
	}
}

func sharedOrOwnIDs() map[string][]zvmtest.Option {
	return map[string][]zvmtest.Option{
		"both ZVMs know it by the same ids": nil,
		"each ZVM has ids of its own":       {zvmtest.WithSwitch(zvmtest.PeerIDsDiffer)},
	}
}

func TestAFileOfAVPGThatIsNotLocalComesBackThroughItsRecoverySite(t *testing.T) {
	t.Parallel()
	for name, opts := range sharedOrOwnIDs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, opts...)
			dest := filepath.Join(t.TempDir(), "nginx.conf")
			r, err := p.Recover(t.Context(), p.before, nginxConf, rewind.ToFile(dest))
			must(t, err)
			got, err := os.ReadFile(dest)
			must(t, err)
			if string(got) != goodConfig || !r.Unmounted {
				t.Errorf("got %q, unmounted %t", got, r.Unmounted)
			}
			theirs := p.peer.VPGs()[0]
			want := []string{p.dr.ID(), theirs.ID(), theirs.TaggedCheckpoints()[0].ID, string(p.site)}
			if diff := cmp.Diff(want, []string{string(r.VMID), string(r.VPGID), string(r.CheckpointID), string(r.RecoverySiteID)}); diff != "" {
				t.Errorf("VM, VPG, checkpoint and site (-want +got):\n%s", diff)
			}
			p.mountedThereAlone(t, 1)
		})
	}
}

func TestEveryWayToReadAGuestLeadsThroughTheRecoverySite(t *testing.T) {
	t.Parallel()
	for name, opts := range sharedOrOwnIDs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, opts...)
			ctx := t.Context()
			p.sim.Advance(5 * time.Second)
			after := p.guard(t, "dr01")
			listing, err := p.Browse(ctx, p.before, "/etc/nginx")
			must(t, err)
			item, err := p.Stat(ctx, p.before, nginxConf)
			must(t, err)
			file, err := p.Open(ctx, p.before, nginxConf)
			must(t, err)
			read, err := io.ReadAll(file)
			must(t, errors.Join(err, file.Close()))
			difference, err := p.Diff(ctx, p.before, after, "/etc/nginx")
			must(t, err)
			plan, err := p.Plan(ctx, p.before, nginxConf, rewind.LiveBytes([]byte("broken by the agent")), rewind.ChangedBy(after))
			must(t, err)
			root, err := os.OpenRoot(t.TempDir())
			must(t, err)
			defer root.Close()
			tree, err := p.RecoverTree(ctx, p.before, "/etc", root)
			must(t, err)
			got := []string{
				listing.Items[0].Name, item.Path, string(read), difference.Changed[0].Path, string(plan.Effect), tree.Files[0].Dest,
			}
			want := []string{
				"nginx.conf", "Volume1-Ext4/etc/nginx/nginx.conf", goodConfig, "nginx.conf", string(rewind.EffectUndoes), "nginx/nginx.conf",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what was read (-want +got):\n%s", diff)
			}
			for what, site := range map[string]zvm.SiteID{
				"Browse": listing.RecoverySiteID, "Open": file.Recovery().RecoverySiteID, "RecoverTree": tree.RecoverySiteID,
				"Diff before": difference.Before.RecoverySiteID, "Diff after": difference.After.RecoverySiteID,
				"Plan pinned": plan.Pinned.RecoverySiteID, "Plan after": plan.After.RecoverySiteID,
			} {
				if site != p.site {
					t.Errorf("%s names the site %q, want %q", what, site, p.site)
				}
			}
			p.mountedThereAlone(t, 8)
		})
	}
}

// The fresh guard is made where the VM is protected, whichever ZVM mounts.
func TestPinFirstTagsAtTheProtectedSite(t *testing.T) {
	t.Parallel()
	p := newPair(t, zvmtest.WithSwitch(zvmtest.PeerIDsDiffer))
	r, err := p.Recover(t.Context(), p.before, nginxConf, rewind.ToWriter(&bytes.Buffer{}), rewind.PinFirst())
	must(t, err)
	if tags := taggedIn(p.remote); len(tags) != 2 || r.Pinned == nil || r.Pinned.Checkpoints[0].VPGID != zvm.VPGID(p.remote.ID()) {
		t.Errorf("pinned as %+v; the journal holds %q", r.Pinned, tags)
	}
	if n := p.peer.Count("POST", "/v1/vpgs/*/checkpoints"); n != 0 {
		t.Errorf("%d inserts at the recovery site", n)
	}
}

func TestALocalCheckpointIsPreferredToARecoverySite(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	g := p.guard(t, "web01")
	r, err := p.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
	must(t, err)
	if r.RecoverySiteID != "" || p.peer.Count("POST", "/v1/flrs") != 0 {
		t.Errorf("mounted at %q", r.RecoverySiteID)
	}
	r, err = p.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&bytes.Buffer{}), rewind.InVPG("web-dr"))
	must(t, err)
	if r.RecoverySiteID != p.site {
		t.Errorf("InVPG names a VPG of site %s, and it was mounted at %q", p.site, r.RecoverySiteID)
	}
}

// A session made at the recovery site itself mounts there, without an option.
func TestASessionAtTheRecoverySiteMountsThere(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, s := connect(t, p.peer)
	g, err := s.FindGuard(t.Context(), p.before.ChangeID(), "dr01")
	must(t, err)
	var got bytes.Buffer
	_, err = s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&got))
	must(t, err)
	if got.String() != goodConfig {
		t.Errorf("got %q", got.String())
	}
	p.mountedThereAlone(t, 1)
}

func TestNotLocalNamesTheSiteAndTheWaysOn(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, s := connect(t, p.sim, rewind.WithRecoverySite("another-site", p.there))
	_, err := s.Stat(t.Context(), p.before, nginxConf)
	var notLocal *rewind.NotLocalError
	if !errors.As(err, &notLocal) || !errors.Is(err, rewind.ErrNotLocal) {
		t.Fatalf("got %v, want *NotLocalError", err)
	}
	if diff := cmp.Diff([]zvm.SiteRef{{ID: p.site, Name: "DR"}}, notLocal.RecoverySites); diff != "" {
		t.Errorf("sites (-want +got):\n%s", diff)
	}
	for _, words := range []string{"DR", string(p.site), "WithRecoverySite", "failover test", "clone"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q does not say %q", err, words)
		}
	}
}

func TestLaw3_TheCounterpartOfACheckpointIsOneOrNone(t *testing.T) {
	t.Parallel()
	tag := func(p *pair) string { return p.before.Record().Checkpoints[0].Tag }
	second := func(p *pair, name string) *zvmtest.VPG {
		vpg := p.peer.AddVPG(name, zvmtest.VPGConfig{})
		p.peer.AddVM("dr01", vpg)
		return vpg
	}
	for _, tt := range []struct {
		name string
		opts []zvmtest.Option
		with func(*pair)
		gone bool
		want int // counterparts in the error; negative when it is mounted
	}{
		{name: "gone from the journal", with: func(p *pair) { p.remote.LoseCheckpoint(string(p.before.Record().Checkpoints[0].CheckpointID)) }, gone: true},
		{name: "its id is another checkpoint's there", opts: []zvmtest.Option{zvmtest.WithSwitch(zvmtest.PeerIDsDiffer)}, want: -1},
		{
			name: "the tag stands there, of another time",
			with: func(p *pair) {
				p.remote.LoseCheckpoint(string(p.before.Record().Checkpoints[0].CheckpointID))
				p.sim.Advance(10 * time.Second)
				p.remote.RunForeignInsert(tag(p))
				p.sim.Advance(10 * time.Second)
			},
			gone: true,
		},
		{
			name: "another VPG bears the tag at another time",
			with: func(p *pair) {
				p.sim.Advance(10 * time.Second)
				second(p, "other").RunForeignInsert(tag(p))
				p.sim.Advance(10 * time.Second)
			},
			want: -1,
		},
		{
			name: "a VM of the name in a VPG without the tag",
			with: func(p *pair) { second(p, "other") },
			want: -1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, tt.opts...)
			if tt.with != nil {
				tt.with(p)
			}
			var got bytes.Buffer
			_, err := p.Recover(t.Context(), p.before, nginxConf, rewind.ToWriter(&got))
			if tt.want < 0 {
				if err != nil || got.String() != goodConfig {
					t.Errorf("got %q, %v", got.String(), err)
				}
				return
			}
			var none *rewind.CounterpartError
			if !errors.As(err, &none) || len(none.Found) != tt.want || errors.Is(err, rewind.ErrCheckpointGone) != tt.gone {
				t.Errorf("got %v, want *CounterpartError of %d", err, tt.want)
			}
			p.mountedThereAlone(t, 0)
		})
	}
}

// Two that bear the same tag and time are told apart by the guard's identifiers, and by nothing else.
func TestLaw3_OfTwoCounterpartsTheIdentifiersDecide(t *testing.T) {
	t.Parallel()
	for name, opts := range sharedOrOwnIDs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pairOf(t, newWorld(t, stopped()...), append(opts, zvmtest.WithMountTime(0), zvmtest.WithUnmountTime(0),
				zvmtest.WithInsertTime(0), zvmtest.WithListLag(0))...)
			other := p.peer.AddVPG("other", zvmtest.VPGConfig{})
			p.peer.AddVM("dr01", other)
			other.RunForeignInsert(p.before.Record().Checkpoints[0].Tag)
			want := 2
			if p.peer.VPGs()[0].ID() == p.remote.ID() {
				want = 1
			}
			_, err := p.Stat(t.Context(), p.before, nginxConf)
			var several *rewind.CounterpartError
			switch {
			case want == 1 && err != nil:
				t.Errorf("got %v", err)
			case want == 2 && (!errors.As(err, &several) || len(several.Found) != 2 || errors.Is(err, rewind.ErrCheckpointGone)):
				t.Errorf("got %v, want *CounterpartError of 2", err)
			}
			p.mountedThereAlone(t, 2-want)
		})
	}
}

func TestTwoRecoverySitesAreNotAGuess(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	more := p.sim.AddPeerSite("Third")
	third := p.sim.AddVPG("third", zvmtest.VPGConfig{RecoverySite: more})
	p.sim.AddVM("both", p.remote, third)
	there, _ := connect(t, p.startPeer(t, more))
	s := p.with(t, rewind.WithRecoverySite(zvm.SiteID(more.ID), there))
	g, err := s.Protect(t.Context(), "both", rewind.Change{})
	must(t, err)
	_, err = s.Browse(t.Context(), g, "/")
	var several *rewind.AmbiguousVPGError
	if !errors.As(err, &several) {
		t.Fatalf("got %v, want *AmbiguousVPGError", err)
	}
	for vpg, site := range map[string]string{"third": more.ID, "web-dr": string(p.site)} {
		l, err := s.Browse(t.Context(), g, "/", rewind.InVPG(vpg))
		must(t, err)
		if string(l.RecoverySiteID) != site {
			t.Errorf("%s was mounted at %q, want %q", vpg, l.RecoverySiteID, site)
		}
	}
}

func TestTheZVMOfAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, s := connect(t, p.sim, rewind.WithRecoverySite(p.site, p.client))
	_, err := s.Stat(t.Context(), p.before, nginxConf)
	if err == nil || !strings.Contains(err.Error(), "another site, Production") {
		t.Errorf("got %v, want the site that was reached", err)
	}
}

func TestWhatTheRecoverySiteWouldNotMountIsNotMounted(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.remote.SetStatus(1, 6)
	_, err := p.Stat(t.Context(), p.before, nginxConf)
	var refused *rewind.NotMountableError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), string(p.site)) {
		t.Errorf("got %v, want *NotMountableError and the site", err)
	}
	p.mountedThereAlone(t, 0)
}

// The command that closes a session names the ZVM that it is open at.
func TestLaw5_WhatIsLeftOpenAtARecoverySiteIsClosedThere(t *testing.T) {
	t.Parallel()
	p := newPair(t, zvmtest.WithSwitch(zvmtest.UnmountFails))
	s := p.with(t, rewind.WithLimits(rewind.Limits{Unmount: 100 * time.Millisecond}))
	_, err := s.Stat(t.Context(), p.before, nginxConf)
	var open *rewind.LeftOpenError
	want := "zerto-rewind sweep --apply --recovery-site '" + string(p.site) + "=" + p.peer.URL() + "'"
	if !errors.As(err, &open) || open.Command != want {
		t.Errorf("got %v, want the command %s", err, want)
	}
}

func TestLaw5_NothingStaysMountedAtARecoverySite(t *testing.T) {
	t.Parallel()
	for _, step := range []struct{ method, pattern string }{
		{"POST", "/v1/flrs"},
		{"GET", "/v1/flrs/*"},
		{"POST", "/v1/flrs/*/browse"},
		{"POST", "/v1/flrs/*/download"},
		{"GET", "/v1/downloads/*"},
		{"DELETE", "/v1/flrs/*"},
	} {
		t.Run(step.method+" "+step.pattern, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute))
			p.peer.On(step.method, step.pattern).CutAfter()
			_, err := p.Recover(t.Context(), p.before, nginxConf, rewind.ToWriter(&bytes.Buffer{}))
			var open *rewind.LeftOpenError
			if left := p.peer.LiveFLRSessions(); len(left) > 0 {
				t.Errorf("left mounted, said so %t: %v", errors.As(err, &open), err)
			}
			p.nothingMounted(t)
		})
	}
}

func TestARecoverySiteIsGivenWholeAndOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for name, opt := range map[string]rewind.Option{
		"no site": rewind.WithRecoverySite(" ", p.there), "no client": rewind.WithRecoverySite("other", nil),
		"a site again": rewind.WithRecoverySite(zvm.SiteID(strings.ToUpper(string(p.site))), p.there),
	} {
		if _, err := p.With(opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLaw5_SweepClosesWhatACrashLeftAtARecoverySite(t *testing.T) {
	t.Parallel()
	for name, opts := range sharedOrOwnIDs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, opts...)
			vpg := p.peer.VPGs()[0]
			points := vpg.Checkpoints(time.Time{}, time.Time{})
			for _, checkpoint := range []string{vpg.TaggedCheckpoints()[0].ID, points[0].ID} {
				_, err := p.there.MountFLR(t.Context(), zvm.FLRTarget{
					VPG: vpgid(vpg), VM: vmid(p.peer.VMs()[0]), Checkpoint: zvm.CheckpointID(checkpoint),
				})
				must(t, err)
			}
			left, err := p.Sweep(t.Context())
			must(t, err)
			if len(left) != 1 || left[0].RecoverySiteID != p.site || left[0].ChangeID != p.before.ChangeID() || left[0].Closed {
				t.Errorf("dry: %+v", left)
			}
			left, err = p.Sweep(t.Context(), rewind.Apply())
			must(t, err)
			if live := p.peer.LiveFLRSessions(); len(left) != 1 || !left[0].Closed || len(live) != 1 || live[0].CheckpointID != points[0].ID {
				t.Errorf("applied: %+v; %+v are mounted", left, live)
			}
		})
	}
}

// A recovery site that does not answer keeps no other ZVM from being swept.
func TestLaw5_SweepNamesTheSiteThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	id := p.orphan(t, localPin(p.guard(t, "web01")).CheckpointID)
	p.peer.On("GET", "/v1/flrs").Status(503, "").Always()
	left, err := p.Sweep(t.Context(), rewind.Apply())
	if len(left) != 1 || left[0].FLRSessionID != id || !left[0].Closed {
		t.Errorf("swept %+v", left)
	}
	if err == nil || !strings.Contains(err.Error(), string(p.site)) {
		t.Errorf("got %v, want the site", err)
	}
}
