package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// recoverySite is the ZVM of a site that VPGs recover to, with what is learnt at it. Sessions that are derived from each
// other share it.
type recoverySite struct {
	id        zvm.SiteID
	client    *zvm.Client
	inventory *coalescer[inventory]
	mounts    *mounts
	mountPace *pace
}

// WithRecoverySite gives the session the ZVM of a site that VPGs recover to, by the identifier that VPGs name the site by:
// [NotLocalError] tells it. File-level recovery runs at the recovery site (zvm-wire 13), so that with its ZVM files of a VPG
// that is not local come back too. The option is for one site; give it again for another.
//
// How that ZVM shows a VPG is documented nowhere, so nothing is taken over by its identifier alone: the checkpoint is the
// one with the guard's tag and time, in a VPG that recovers to the site and holds the VM. Where several are, those with the
// guard's own identifiers are meant. None or several are a [*CounterpartError]. A session is opened and closed there, and
// [Session.Sweep] looks there too.
func WithRecoverySite(site zvm.SiteID, client *zvm.Client) Option {
	return func(s *Session) error {
		switch {
		case strings.TrimSpace(string(site)) == "":
			return errors.New("rewind: WithRecoverySite needs the identifier of a site")
		case client == nil:
			return errors.New("rewind: WithRecoverySite needs a client")
		case s.siteOf(site) != nil:
			return fmt.Errorf("rewind: WithRecoverySite(%q): the site was given already", site)
		}
		s.sites = append(slices.Clip(s.sites), &recoverySite{
			id: site, client: client, mounts: &mounts{}, mountPace: &pace{},
			inventory: &coalescer[inventory]{fetch: (&Session{zvm: client}).readInventory},
		})
		return nil
	}
}

// siteOf returns what the session was given for a site, nil without it.
func (s *Session) siteOf(id zvm.SiteID) *recoverySite {
	for _, r := range s.sites {
		if sameID(r.id, id) {
			return r
		}
	}
	return nil
}

// at returns a session on the ZVM of a recovery site, which waits and tells as s does.
func (s *Session) at(r *recoverySite) *Session {
	there := *s
	there.zvm, there.inventory, there.mounts, there.mountPace = r.client, r.inventory, r.mounts, r.mountPace
	there.site, there.sites = r.id, nil
	return &there
}

// RecoverySiteError says at the ZVM of which [WithRecoverySite] something failed.
type RecoverySiteError struct {
	Site zvm.SiteID
	Err  error
}

func (e *RecoverySiteError) Error() string {
	return fmt.Sprintf("at recovery site %s: %v", shown(string(e.Site)), e.Err)
}

// Unwrap returns what failed.
func (e *RecoverySiteError) Unwrap() error { return e.Err }

// failedThere says of an error at which ZVM it happened, unless that is the session's own.
func (s *Session) failedThere(err error) error {
	if err == nil || s.site == "" {
		return err
	}
	return &RecoverySiteError{Site: s.site, Err: err}
}

// sweepCommand closes what is left open at the ZVM of the session.
func (s *Session) sweepCommand() string {
	if s.site == "" {
		return "zerto-rewind sweep --apply"
	}
	return fmt.Sprintf("zerto-rewind sweep --apply --recovery-site %s", quoted(string(s.site)+"="+s.zvm.BaseURL()))
}

// chooseRemote finds, of checkpoints that are not local, the one whose VPG recovers to a site that the session has the ZVM
// of. That may be its own, of a session that was made at a recovery site.
func (s *Session) chooseRemote(ctx context.Context, changeID string, remote []covered) (covered, error) {
	inv, err := s.inventory.get(ctx)
	if err != nil {
		return covered{}, fmt.Errorf("asking where change %s recovers to: %w", shown(changeID), err)
	}
	here, err := s.zvm.GetLocalSite(ctx)
	if err != nil {
		return covered{}, fmt.Errorf("asking where change %s recovers to: %w", shown(changeID), err)
	}
	notLocal := &NotLocalError{ChangeID: changeID}
	var known []covered
	var names []string
	for _, c := range remote {
		site := inv.vpgs[c.VPGID].RecoverySite
		switch r := s.siteOf(site.ID); {
		case r != nil:
			c.at = s.at(r)
		case site.ID != "" && sameID(site.ID, here.ID):
			c.at, c.mountAs = s, c.vms[0]
		default:
			notLocal.RecoverySites = append(notLocal.RecoverySites, zvm.SiteRef{ID: site.ID, Name: firstNonEmpty(site.Name, c.RecoverySite)})
			continue
		}
		known, names = append(known, c), append(names, c.VPGName)
	}
	switch len(known) {
	case 0:
		return covered{}, notLocal
	case 1:
	default:
		return covered{}, &AmbiguousVPGError{ChangeID: changeID, VPGs: names}
	}
	if known[0].at == s {
		_, err = s.readPin(ctx, known[0].TaggedCheckpoint)
		return known[0], err
	}
	from, err := known[0].at.counterpart(ctx, changeID, known[0])
	return from, known[0].at.failedThere(err)
}

// Counterpart is a checkpoint at the ZVM of a recovery site that may be that of a guard.
type Counterpart struct {
	VPGID        zvm.VPGID        `json:"vpgId"`
	VPGName      string           `json:"vpgName"`
	VM           VM               `json:"vm"`
	CheckpointID zvm.CheckpointID `json:"checkpointId"`
	Timestamp    time.Time        `json:"timestamp"` // server clock
}

// CounterpartError says that the ZVM of a recovery site does not show just one checkpoint that is the guard's, for its VM,
// under its tag and of its time. Nothing was mounted. It matches [ErrCheckpointGone] when there is none.
type CounterpartError struct {
	ChangeID string
	VPGName  string // at the ZVM that the guard was made at
	Tag      string
	Time     time.Time     // the guard's, server clock
	Found    []Counterpart // empty, or several
}

func (e *CounterpartError) Error() string {
	what := fmt.Sprintf("of the checkpoint of change %s in %s, %q of %s,",
		shown(e.ChangeID), shown(e.VPGName), e.Tag, e.Time.UTC().Format(time.RFC3339))
	if len(e.Found) == 0 {
		return what + " there is no trace in a VPG that recovers to this site and holds the VM"
	}
	places := make([]string, len(e.Found))
	for i, f := range e.Found {
		places[i] = fmt.Sprintf("%s of %s in VPG %s (%s)", f.CheckpointID, shown(f.VM.Name), shown(f.VPGName), f.VPGID)
	}
	return what + " there are several: " + strings.Join(places, ", ")
}

// Is matches [ErrCheckpointGone] when no checkpoint was found.
func (e *CounterpartError) Is(target error) bool {
	return target == ErrCheckpointGone && len(e.Found) == 0
}

// counterpart finds at this ZVM, that of a recovery site, what a guard names by the identifiers of another.
func (s *Session) counterpart(ctx context.Context, changeID string, c covered) (covered, error) {
	if err := s.checkSite(ctx); err != nil {
		return covered{}, err
	}
	inv, err := s.inventory.get(ctx)
	if err != nil {
		return covered{}, err
	}
	var mu sync.Mutex
	var found []Counterpart
	work, ctx := groupWithin(ctx)
	work.SetLimit(s.parallel)
	for _, vpg := range inv.vpgs {
		vms := inv.counterpartsOf(c.vms[0], vpg.ID)
		if len(vms) == 0 || vpg.RecoverySite.ID != "" && !sameID(vpg.RecoverySite.ID, s.site) {
			continue
		}
		work.Go(func() error {
			points, err := s.pointsLike(ctx, vpg, c.TaggedCheckpoint)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range points {
				for _, vm := range vms {
					found = append(found, Counterpart{VPGID: vpg.ID, VPGName: vpg.Name, VM: vm, CheckpointID: p.ID, Timestamp: p.Time.Time})
				}
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return covered{}, err
	}
	found = preferring(found, func(f Counterpart) bool { return sameID(f.VPGID, c.VPGID) })
	// Checkpoints are counted in each journal: their identifier says nothing in a VPG of another one.
	found = preferring(found, func(f Counterpart) bool { return sameID(f.VPGID, c.VPGID) && f.CheckpointID == c.CheckpointID })
	if len(found) != 1 {
		slices.SortFunc(found, func(a, b Counterpart) int {
			return strings.Compare(string(a.VPGID+" ")+string(a.CheckpointID), string(b.VPGID+" ")+string(b.CheckpointID))
		})
		return covered{}, &CounterpartError{ChangeID: changeID, VPGName: c.VPGName, Tag: c.Tag, Time: c.Timestamp, Found: found}
	}
	c.VPGID, c.VPGName, c.CheckpointID, c.mountAs = found[0].VPGID, found[0].VPGName, found[0].CheckpointID, found[0].VM
	return c, nil
}

// checkSite refuses a ZVM that is not the one of the site it was given for.
func (s *Session) checkSite(ctx context.Context) error {
	here, err := s.zvm.GetLocalSite(ctx)
	if err == nil && !sameID(here.ID, s.site) {
		err = fmt.Errorf("rewind: the ZVM at %s is that of another site, %s (%s)", s.zvm.BaseURL(), shown(here.Name), here.ID)
	}
	return err
}

// counterpartsOf returns the members of a VPG that may be a VM of another ZVM: the one of its identifier, or else those of
// its name.
func (inv inventory) counterpartsOf(vm VM, vpg zvm.VPGID) []VM {
	members := inv.membersOf(vpg)
	if i := slices.IndexFunc(members, func(m VM) bool { return sameID(m.ID, vm.ID) }); i >= 0 {
		return members[i : i+1]
	}
	return slices.DeleteFunc(members, func(m VM) bool { return m.Name != vm.Name })
}

// pointsLike returns the checkpoints of a journal that bear a tag, at the time of a checkpoint in another ZVM's list of the
// journal. One under the same tag at another time may hold what came after the change.
func (s *Session) pointsLike(ctx context.Context, vpg zvm.VPG, like TaggedCheckpoint) ([]zvm.Checkpoint, error) {
	var points []zvm.Checkpoint
	around := zvm.Window{From: like.Timestamp.Add(-windowMargin), To: like.Timestamp.Add(windowMargin)}
	for cp, err := range s.zvm.ListCheckpoints(ctx, vpg.ID, around) {
		if err != nil {
			return nil, fmt.Errorf("journal of %s: %w", shown(vpg.Name), err)
		}
		if like.Tag != "" && strings.Contains(cp.Tag, like.Tag) && cp.Time.Sub(like.Timestamp).Abs() < time.Second {
			points = append(points, cp)
		}
	}
	return points, nil
}

// preferring returns those that are preferred, or all when none is.
func preferring[T any](all []T, preferred func(T) bool) []T {
	var some []T
	for _, one := range all {
		if preferred(one) {
			some = append(some, one)
		}
	}
	if len(some) > 0 {
		return some
	}
	return all
}
