package zvmtest

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status texts of an FLR session (zvm-wire 6.3).
const (
	MountInProgress   = "MountInProgress"
	MountCompleted    = "MountCompletedSuccessfully"
	MountFailed       = "MountFailed"
	UnmountInProgress = "UnmountInProgress"
)

// flrSession is an FLR session.
type flrSession struct {
	id         string
	vpg        *VPG
	vm         *VM
	checkpoint checkpoint
	tree       *tree
	mounted    time.Time
	status     string
	unmount    *task
	downloads  int
}

// FLRSession is a copy of one FLR session.
type FLRSession struct {
	ID           string
	VPGID        string
	VMID         string
	CheckpointID string
	Status       string
	Mounted      time.Time // when the mount was asked for
}

// LiveFLRSessions lists the sessions that are not unmounted, failed mounts
// included.
func (s *Server) LiveFLRSessions() []FLRSession {
	s.lock()
	defer s.mu.Unlock()
	var all []FLRSession
	for _, m := range s.mounts {
		all = append(all, FLRSession{
			ID: m.id, VPGID: m.vpg.id, VMID: m.vm.id, CheckpointID: m.checkpoint.public().ID,
			Status: m.status, Mounted: m.mounted,
		})
	}
	return all
}

// mountRefusal says why a VM cannot be mounted from a VPG, or "".
func (s *Server) mountRefusal(vm *VM, vpg *VPG) string {
	switch {
	case vpg.recovery != s.local && !s.cfg.has(RemoteFLRServed):
		return "file level recovery of VPG " + vpg.name + " runs at its recovery site " + vpg.recovery.Name
	case !vm.flrEnabled && !s.cfg.has(FLREnabledIgnored):
		return "file level recovery is not enabled for VM " + vm.name
	case !vpg.protects() && vpg.subStatus != subStatusBitmapSync:
		return "VPG " + vpg.name + " cannot be recovered in its state"
	}
	return ""
}

// handleMount starts a session: the id comes at once, the mount takes its
// time (zvm-wire 6.2).
func handleMount(s *Server, c *call) reply {
	var body struct {
		Jflr *struct {
			VpgIdentifier        string
			VMIdentifier         string `json:"VmIdentifier"`
			CheckpointIdentifier string
		}
		Bflr *struct{}
	}
	if err := c.decode(&body); err != nil || body.Jflr == nil || body.Bflr != nil {
		return fail(http.StatusBadRequest, "the body needs jflr alone; the simulator has no repositories")
	}
	vpg, vm := s.findVPG(body.Jflr.VpgIdentifier), s.findVM(body.Jflr.VMIdentifier)
	if vpg == nil {
		return s.unknownID("VPG", body.Jflr.VpgIdentifier)
	}
	if vm == nil || !slices.Contains(vm.vpgs, vpg) {
		return s.unknownID("VM", body.Jflr.VMIdentifier)
	}
	if refusal := s.mountRefusal(vm, vpg); refusal != "" {
		return fail(http.StatusInternalServerError, refusal)
	}
	if s.cfg.mountLimit > 0 && s.countMounts(vm) >= s.cfg.mountLimit {
		return fail(http.StatusInternalServerError, "VM "+vm.name+" has as many sessions as it may")
	}
	frozen := vpg.journal.at(c.now, span{})
	point, found := frozen.find(body.Jflr.CheckpointIdentifier)
	if !found {
		return fail(http.StatusBadRequest, "checkpoint "+body.Jflr.CheckpointIdentifier+" is not in the journal of VPG "+vpg.name)
	}
	m := &flrSession{
		id:         s.nextGUID("flr session") + "." + s.local.ID,
		vpg:        vpg,
		vm:         vm,
		checkpoint: point,
		tree:       point.guest(vm),
		mounted:    c.now,
		status:     MountInProgress,
	}
	s.mounts = append(s.mounts, m)
	t := &task{kind: "FlrJournalMount", user: c.account.name, vpg: vpg, flrSession: m.id}
	t.finish = func(time.Time) (int, string) {
		if s.cfg.has(MountFails) {
			return TaskFailed, "no volume of VM " + vm.name + " could be mounted"
		}
		return TaskCompleted, ""
	}
	t.cleanup = func() {
		m.status = MountCompleted
		if t.state != TaskCompleted {
			m.status = MountFailed
			if s.cfg.has(FailedMountVanishes) {
				s.forgetMount(m)
			}
		}
	}
	s.startTask(t, c.now, s.cfg.mountTime)
	return ok(m.id)
}

type sessionBody struct {
	CheckpointIdentifier        string
	FlrSessionIdentifier        string
	FlrSessionStatus            string
	FlrSessionType              string
	MountTime                   *string
	NumberOfRelatedRunningTasks int
	RepositoryIdentifier        *string
	RetentionSetIdentifier      *string
	SelectedPath                *string
	SiteIdentifier              string
	VMIdentifier                string  `json:"VmIdentifier"`
	VMVolumeIdentifier          *string `json:"VmVolumeIdentifier"`
	VpgIdentifier               string
}

func (s *Server) sessionBody(m *flrSession) sessionBody {
	return sessionBody{
		CheckpointIdentifier:        strconv.FormatInt(m.checkpoint.id, 10),
		FlrSessionIdentifier:        m.id,
		FlrSessionStatus:            s.shownStatus(m),
		FlrSessionType:              "jflr",
		MountTime:                   isoDate(m.mounted),
		NumberOfRelatedRunningTasks: m.downloads,
		SiteIdentifier:              s.local.ID,
		VMIdentifier:                m.vm.id,
		VpgIdentifier:               m.vpg.id,
	}
}

// shownStatus is the status that the API shows (zvm-wire 6.3).
func (s *Server) shownStatus(m *flrSession) string {
	switch {
	case m.status == MountInProgress && s.cfg.has(LegacyMountNames):
		return "NotMounted"
	case m.status == MountCompleted && s.cfg.has(LegacyMountNames):
		return "MountReady"
	}
	return m.status
}

func (s *Server) countMounts(vm *VM) int {
	n := 0
	for _, m := range s.mounts {
		if m.vm == vm {
			n++
		}
	}
	return n
}

func (s *Server) forgetMount(m *flrSession) {
	s.mounts = slices.DeleteFunc(s.mounts, func(other *flrSession) bool { return other == m })
}

// endMounts removes the sessions that end by themselves. The caller holds
// the mutex.
func (s *Server) endMounts(now time.Time) {
	s.mounts = slices.DeleteFunc(s.mounts, func(m *flrSession) bool {
		if s.cfg.mountTTL > 0 && !now.Before(m.mounted.Add(s.cfg.mountTTL)) {
			return true
		}
		if !s.cfg.has(MountEndsWithCheckpoint) {
			return false
		}
		frozen := m.vpg.journal.at(now, span{})
		c, present := frozen.find(m.checkpoint.public().ID)
		return !present || !c.at.Equal(m.checkpoint.at)
	})
}

func handleMounts(s *Server, c *call) reply {
	list := []sessionBody{}
	for _, m := range s.mounts {
		if s.matchesID(c.param("vmIdentifier"), m.vm.id) {
			list = append(list, s.sessionBody(m))
		}
	}
	return ok(list)
}

func handleMountStatus(s *Server, c *call) reply {
	m := s.findMount(c.params["id"])
	switch {
	case m == nil:
		return s.unknownID("FLR session", c.params["id"])
	case s.cfg.has(SessionAsArray):
		return ok([]sessionBody{s.sessionBody(m)})
	}
	return ok(s.sessionBody(m))
}

// handleUnmount answers with the unmount's task; the session is listed until
// that completes. A second unmount of a session joins the first.
func handleUnmount(s *Server, c *call) reply {
	m := s.findMount(c.params["id"])
	if m == nil {
		return s.unknownID("FLR session", c.params["id"])
	}
	switch {
	case m.downloads > 0 && s.cfg.has(DownloadBlocksUnmount):
		return fail(http.StatusInternalServerError, "a download of the session is running")
	case m.unmount != nil && s.cfg.has(SecondUnmountRefused):
		return fail(http.StatusInternalServerError, "the session is being unmounted")
	case m.unmount == nil:
		m.unmount = s.startUnmount(m, c)
	}
	switch {
	case s.cfg.has(UnmountAnswersNothing):
		return ok("")
	case s.cfg.has(UnmountAnswersSession):
		return ok(m.id)
	}
	return s.answerTask(m.unmount)
}

func (s *Server) startUnmount(m *flrSession, c *call) *task {
	before := m.status
	m.status = UnmountInProgress
	t := &task{kind: "FlrJournalUnmount", user: c.account.name, vpg: m.vpg, flrSession: m.id}
	t.finish = func(time.Time) (int, string) {
		if s.cfg.has(UnmountFails) {
			return TaskFailed, "the session is still in use"
		}
		return TaskCompleted, ""
	}
	t.cleanup = func() {
		if t.state != TaskCompleted {
			m.unmount, m.status = nil, before
			return
		}
		s.forgetMount(m)
	}
	return s.startTask(t, c.now, s.cfg.unmountTime)
}

func (s *Server) findMount(id string) *flrSession {
	for _, m := range s.mounts {
		if strings.EqualFold(m.id, id) {
			return m
		}
	}
	return nil
}

// readyMount finds a session whose files can be had.
func (s *Server) readyMount(c *call) (*flrSession, reply) {
	m := s.findMount(c.params["id"])
	switch {
	case m == nil:
		return nil, s.unknownID("FLR session", c.params["id"])
	case m.status != MountCompleted:
		return nil, fail(http.StatusBadRequest, "the session is not mounted: "+m.status)
	}
	return m, reply{}
}

type downloadInformation struct {
	AdditionalInformation *string
	IsDownloadable        bool
}

// pathItem is a file, folder, partition or disk (zvm-wire 6.4).
type pathItem struct {
	CreationTime        *string
	DownloadInformation *downloadInformation
	IsBrowsable         bool
	LastAccessTime      *string
	LastWriteTime       *string
	Path                string
	SizeInBytes         *int64
	Type                string
}

func (s *Server) pathItem(n node) pathItem {
	item := pathItem{
		CreationTime:        isoDate(n.created),
		DownloadInformation: &downloadInformation{IsDownloadable: n.downloadable},
		IsBrowsable:         n.browsable,
		LastAccessTime:      isoDate(n.accessed),
		LastWriteTime:       isoDate(n.written),
		Path:                n.path,
		Type:                nodeType(n.kind),
	}
	if n.size >= 0 {
		item.SizeInBytes = &n.size
	}
	if n.reason != "" {
		item.DownloadInformation.AdditionalInformation = &n.reason
	}
	if s.cfg.has(NullFields) && !n.downloadable {
		item.DownloadInformation = nil
	}
	if s.cfg.has(BrowseBaseNames) {
		item.Path = n.path[strings.LastIndexByte(n.path, '/')+1:]
	}
	return item
}

func nodeType(kind nodeKind) string {
	switch kind {
	case kindPartition:
		return "Partition"
	case kindDisk:
		return "Disk"
	case kindFolder:
		return "Folder"
	}
	return "File"
}

func handleBrowse(s *Server, c *call) reply {
	m, refusal := s.readyMount(c)
	if m == nil {
		return refusal
	}
	var body struct {
		Path                 string
		PageNumber, PageSize *int
	}
	if err := c.decode(&body); err != nil {
		return fail(http.StatusBadRequest, "the body is no browse request")
	}
	tree := m.tree
	offset, limit := s.page(body.PageNumber, body.PageSize)
	return reply{later: func() reply {
		self, children, _, err := tree.browsePage(body.Path, offset, limit)
		if err != nil {
			return guestFailure(err, body.Path)
		}
		items := []pathItem{}
		if s.cfg.has(NullFields) {
			items = nil
		}
		for _, child := range children {
			items = append(items, s.pathItem(child))
		}
		parent := s.pathItem(self)
		parent.Path = self.path
		return ok(struct {
			MainPathItem pathItem
			PathItems    []pathItem
		}{parent, items})
	}}
}

// page is the part of a folder that a browse request asks for; a negative
// limit means all.
func (s *Server) page(number, size *int) (offset, limit int) {
	limit = -1
	switch {
	case s.cfg.has(BrowseIgnoresPaging):
		return 0, -1
	case size != nil && *size > 0:
		limit = *size
	case s.cfg.has(BrowsePageSize100):
		limit = 100
	}
	first := 1
	if s.cfg.has(BrowsePageBaseZero) {
		first = 0
	}
	page := 0
	if number != nil && !s.cfg.has(BrowseAlwaysFirstPage) {
		page = min(max(0, *number-first), math.MaxInt32)
	}
	if limit < 0 && page > 0 {
		return 0, 0
	}
	return page * min(max(0, limit), math.MaxInt32), limit
}

func guestFailure(err error, path string) reply {
	switch {
	case errors.Is(err, errGuestNotFound):
		return fail(http.StatusNotFound, "path "+path+" was not found")
	case errors.Is(err, errGuestBadPath):
		return fail(http.StatusBadRequest, "path "+path+" is not valid")
	}
	return fail(http.StatusInternalServerError, err.Error())
}
