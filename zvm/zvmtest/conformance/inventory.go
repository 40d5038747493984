package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func inventoryBehaviours() []behaviour {
	return []behaviour{
		{"the site tells its id and name", false, siteTellsItself},
		{"the clock moves forward", false, clockMovesForward},
		{"a VM is found by its name", false, vmByName},
		{"a VM is found by its id", false, vmByID},
		{"a VM is listed once for each of its VPGs, three at most", false, oneRowForEachVPG},
		{"each VPG of a VM can be read", false, vpgsCanBeRead},
		{"the VPGs of a VM are found by name", false, vpgsByName},
		{"an unknown VPG is an error", false, unknownVPG},
		{"an unknown task is an error", false, unknownTask},
		{"tasks can be listed, and each of them read", false, tasksListed},
		{"FLR sessions can be listed", false, sessionsListed},
		{"reads at the same time share one login", false, readsShareLogin},
	}
}

// nobody is an id of the right form that names nothing.
const nobody = "5f0c7a52-93d1-4a0e-b7a6-2f1e8c3d9b40"

func siteTellsItself(ctx context.Context, s *suite) error {
	site, err := s.Client.GetLocalSite(ctx)
	if err != nil {
		return err
	}
	if site.ID == "" || site.Name == "" {
		return errors.New("the site has no id or no name")
	}
	s.scrub.name("site", site.Name)
	s.answer(40, "version of the local site", "%s, type %s", site.Version, site.Type)
	return nil
}

func clockMovesForward(ctx context.Context, s *suite) error {
	first, err := s.Client.GetServerTime(ctx)
	if err != nil {
		return err
	}
	second, err := s.Client.GetServerTime(ctx)
	if err == nil && second.Before(first) {
		err = fmt.Errorf("the clock went back by %v", first.Sub(second))
	}
	return err
}

func vmByName(ctx context.Context, s *suite) error {
	rows, err := s.Client.ListVMs(ctx, zvm.VMFilter{Name: s.VM})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("no VM has the name; it must be protected and the name complete")
	}
	for _, row := range rows {
		s.scrub.name("vpg", row.VPGName)
		s.scrub.name("site", row.ProtectedSite.Name)
		s.scrub.name("site", row.RecoverySite.Name)
		if !sameID(row.ID, rows[0].ID) {
			return errors.New("several VMs have the name; choose one whose name is unique")
		}
	}
	s.rows = rows
	s.answer(9, "addresses that the VM's network adapters report", "%d", len(rows[0].IPs))
	if enabled := rows[0].FLREnabled; enabled != nil {
		s.answer(32, "EnabledActions.IsFlrEnabled of the VM", "%t", *enabled)
	}
	return nil
}

func vmByID(ctx context.Context, s *suite) error {
	want, err := s.need()
	if err != nil {
		return err
	}
	got, err := s.Client.ListVMs(ctx, zvm.VMFilter{ID: want[0].ID})
	if err == nil && len(got) != len(want) {
		err = fmt.Errorf("%d rows by id, %d by name", len(got), len(want))
	}
	return err
}

func oneRowForEachVPG(_ context.Context, s *suite) error {
	rows, err := s.need()
	if err != nil {
		return err
	}
	seen := map[zvm.VPGID]bool{}
	for _, row := range rows {
		if seen[row.VPG] {
			return fmt.Errorf("two rows for VPG %s", row.VPGName)
		}
		seen[row.VPG] = true
	}
	if len(seen) > 3 {
		return fmt.Errorf("the VM is in %d VPGs", len(seen))
	}
	return nil
}

func vpgsCanBeRead(ctx context.Context, s *suite) error {
	rows, err := s.need()
	if err != nil {
		return err
	}
	s.vpgs = nil
	for _, row := range rows {
		v, err := s.Client.GetVPG(ctx, row.VPG)
		switch {
		case err != nil:
			return err
		case v.Name != row.VPGName:
			return fmt.Errorf("VPG %s calls itself %s", row.VPGName, v.Name)
		case v.Status == zvm.StatusUnknown || v.SubStatus == zvm.SubStatusUnknown:
			return fmt.Errorf("the status of VPG %s was not understood", v.Name)
		case v.ProtectedSite.ID == "" || v.RecoverySite.ID == "":
			return fmt.Errorf("VPG %s does not tell its sites", v.Name)
		}
		s.vpgs = append(s.vpgs, v)
	}
	return nil
}

func vpgsByName(ctx context.Context, s *suite) error {
	rows, err := s.need()
	if err != nil {
		return err
	}
	for _, row := range rows {
		found, err := s.Client.ListVPGs(ctx, zvm.VPGFilter{Name: row.VPGName})
		if err != nil {
			return err
		}
		listed := false
		for _, v := range found {
			listed = listed || sameID(v.ID, row.VPG)
		}
		if !listed {
			return fmt.Errorf("VPG %s is not among the VPGs of its name", row.VPGName)
		}
	}
	return nil
}

// refusal tells what an error of the server looked like, without its id.
func refusal(err error) string {
	var e *zvm.Error
	if !errors.As(err, &e) {
		return "no answer"
	}
	return fmt.Sprintf("%d, %q", e.Status, e.Message)
}

func unknownVPG(ctx context.Context, s *suite) error {
	_, err := s.Client.GetVPG(ctx, nobody)
	if err == nil {
		return errors.New("a VPG that does not exist was answered")
	}
	s.answer(8, "GET of an unknown VPG", "%s", refusal(err))
	s.answer(39, "status of a business error: an unknown VPG", "%s", refusal(err))
	return nil
}

func unknownTask(ctx context.Context, s *suite) error {
	_, err := s.Client.GetTask(ctx, nobody+"."+nobody)
	if err == nil {
		return errors.New("a task that does not exist was answered")
	}
	s.answer(19, "GET of an unknown task", "%s", refusal(err))
	return nil
}

func tasksListed(ctx context.Context, s *suite) error {
	now, err := s.Client.GetServerTime(ctx)
	if err != nil {
		return err
	}
	tasks, err := s.Client.ListTasks(ctx, zvm.TaskFilter{StartedAfter: now.Add(-24 * time.Hour)})
	if err != nil {
		return err
	}
	for _, listed := range tasks[:min(3, len(tasks))] {
		one, err := s.Client.GetTask(ctx, listed.ID)
		if err == nil && (one.ID != listed.ID || one.Type != listed.Type) {
			err = errors.New("a listed task was read as another one")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sessionsListed(ctx context.Context, s *suite) error {
	_, err := s.Client.ListFLRSessions(ctx, "")
	return err
}

func readsShareLogin(ctx context.Context, s *suite) error {
	before := len(s.Tap.loginsSoFar())
	const readers = 8
	errs := make([]error, readers)
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() { _, errs[i] = s.Client.ListVPGs(ctx, zvm.VPGFilter{}) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	logins := len(s.Tap.loginsSoFar()) - before
	if logins > 1 {
		return fmt.Errorf("%d reads at the same time needed %d logins", readers, logins)
	}
	s.answer(4, "reads at the same time with one token", "%d of %d succeeded", readers, readers)
	return nil
}
