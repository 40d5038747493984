package zvmtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	statusInitializing = 0
	statusMeetingSLA   = 1
	statusLastSLA      = 4 // 2, 3 and 4 are the kinds of NotMeetingSLA

	subStatusNone         = 0
	subStatusBitmapSync   = 23
	subStatusPausedUser   = 25
	subStatusPausedSystem = 26
	subStatusBackup       = 28
)

// VPGConfig configures a VPG. The zero value is a local VPG that meets its
// SLA.
type VPGConfig struct {
	// ProtectedSite and RecoverySite are LocalSite or a peer; zero means
	// LocalSite. A VPG is local if they are the same.
	ProtectedSite, RecoverySite Site
	// Status and SubStatus are numbers of zvm-wire 3. A zero Status means
	// MeetingSLA here: for Initializing call SetStatus(0, …).
	Status, SubStatus int
	// History is how long a checkpoint stays in the journal, 24 h if zero.
	History time.Duration
	// JournalAge is how far automatic checkpoints reach back from the VPG's
	// creation: an hour if zero, an empty journal if negative.
	JournalAge time.Duration
	// CheckpointInterval overrides WithCheckpointInterval if it is not zero;
	// negative means no automatic checkpoints.
	CheckpointInterval time.Duration
}

// VPG is a simulated Virtual Protection Group.
type VPG struct {
	s         *Server
	id        string
	name      string
	protected *site
	recovery  *site
	mirrored  bool // shown here, and protected at the server that this one is a peer of

	// Guarded by the server's mutex.
	vms               []*VM
	status, subStatus int
	journal           journal
	inserting         *task
	inserts           int // running, the refused ones too
	maxInserts        int
	test              *failoverTest
	cloning           *task
	lastTest          time.Time
	suspicion         int
}

// AddVPG adds a VPG. Names may repeat.
func (s *Server) AddVPG(name string, cfg VPGConfig) *VPG {
	now := s.lock()
	defer s.mu.Unlock()
	vpg := &VPG{
		s:         s,
		id:        guid(s.cfg.seed, "vpg", fmt.Sprintf("%d %s", len(s.vpgs), name)),
		name:      name,
		protected: s.siteOf(cfg.ProtectedSite),
		recovery:  s.siteOf(cfg.RecoverySite),
		status:    orDefault(cfg.Status, statusMeetingSLA),
		subStatus: cfg.SubStatus,
	}
	interval := orDefault(cfg.CheckpointInterval, orDefault(s.cfg.checkpointInterval, 5*time.Second))
	age := max(0, orDefault(cfg.JournalAge, time.Hour))
	vpg.journal = journal{
		epoch:    now.Add(-age).Truncate(time.Second).Add(time.Second),
		interval: interval,
		firstID:  780_000 + int64(len(s.vpgs)),
		history:  orDefault(cfg.History, 24*time.Hour),
	}
	if !vpg.protects() {
		vpg.journal.gaps = []span{{from: now}}
	}
	s.vpgs = append(s.vpgs, vpg)
	return vpg
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// ID is the vpgIdentifier, a GUID.
func (v *VPG) ID() string { return v.id }

// Name is the VPG's name.
func (v *VPG) Name() string { return v.name }

// protects says whether the VPG takes checkpoints (zvm-wire 3.2).
func (v *VPG) protects() bool {
	return v.isProtected() && (v.subStatus == subStatusNone || v.subStatus == subStatusBackup)
}

func (v *VPG) isProtected() bool { return v.status >= statusMeetingSLA && v.status <= statusLastSLA }

func (v *VPG) paused() bool {
	return v.isProtected() && (v.subStatus == subStatusPausedUser || v.subStatus == subStatusPausedSystem)
}

// SetStatus sets status and substatus, numbers of zvm-wire 3. While they are
// such that no checkpoint is certain, the journal gets none.
func (v *VPG) SetStatus(status, subStatus int) {
	now := v.s.lock()
	defer v.s.mu.Unlock()
	v.setStatus(now, status, subStatus)
}

func (v *VPG) setStatus(now time.Time, status, subStatus int) {
	before := v.protects()
	v.status, v.subStatus = status, subStatus
	switch gaps := v.journal.gaps; {
	case before && !v.protects():
		v.journal.gaps = append(gaps, span{from: now})
	case !before && v.protects():
		gaps[len(gaps)-1].to = now
	}
}

// BitmapSync begins or ends a bitmap sync: the journal ages on and gets no
// new checkpoints, while the old ones stay usable (zvm-wire 3.3).
func (v *VPG) BitmapSync(on bool) {
	now := v.s.lock()
	defer v.s.mu.Unlock()
	sub := subStatusNone
	if on {
		sub = subStatusBitmapSync
	}
	v.setStatus(now, v.status, sub)
}

// Resync removes every checkpoint, as the sync after an edit of the VPG does
// (zvm-wire 3.3). The status stays as it is.
func (v *VPG) Resync() {
	now := v.s.lock()
	defer v.s.mu.Unlock()
	v.journal.rebuild(now, v.s.cfg.has(CheckpointIDsRestart))
}

// Checkpoints lists what the journal shows between two instants, both
// included, oldest first. A zero instant is an open end.
func (v *VPG) Checkpoints(from, to time.Time) []Checkpoint {
	r := span{from: from, to: to}
	now := v.s.lock()
	frozen := v.journal.at(now, r)
	v.s.mu.Unlock()
	var all []Checkpoint
	for c := range frozen.within(r) {
		all = append(all, c.public())
	}
	return all
}

// TaggedCheckpoints lists the tagged checkpoints that the journal shows,
// oldest first.
func (v *VPG) TaggedCheckpoints() []Checkpoint {
	now := v.s.lock()
	defer v.s.mu.Unlock()
	frozen := v.journal.at(now, span{})
	var all []Checkpoint
	for _, c := range frozen.tagged {
		all = append(all, c.public())
	}
	return all
}

// LoseCheckpoint removes one checkpoint from the journal.
func (v *VPG) LoseCheckpoint(id string) {
	now := v.s.lock()
	defer v.s.mu.Unlock()
	frozen := v.journal.at(now, span{})
	if c, found := frozen.find(id); found {
		v.journal.lose(c.id)
		return
	}
	v.s.problem("VPG " + v.name + " has no checkpoint " + id + " to lose")
}

// MaxInFlight is the greatest number of inserts that ran at this VPG at one
// time, the ones that failed for it included.
func (v *VPG) MaxInFlight() int {
	v.s.lock()
	defer v.s.mu.Unlock()
	return v.maxInserts
}

// RunForeignInsert begins somebody else's insert, which occupies the VPG for
// the insert time, and returns its task id.
func (v *VPG) RunForeignInsert(name string) string {
	v.s.mu.Lock()
	vms := slices.Clone(v.vms)
	v.s.mu.Unlock()
	for _, vm := range vms {
		vm.guest.snapshot()
	}
	now := v.s.lock()
	defer v.s.mu.Unlock()
	return v.s.startInsert(v, name, "somebody else", now).id
}

func (s *Server) findVPG(id string) *VPG {
	for _, vpg := range s.vpgs {
		if strings.EqualFold(vpg.id, id) {
			return vpg
		}
	}
	return nil
}

type runningTest struct {
	Stage string
}

type activeProcesses struct {
	RunningFailOverTestAPI *runningTest `json:"RunningFailOverTestApi"`
}

type historyStatus struct {
	ActualHistoryInMinutes     int
	ConfiguredHistoryInMinutes int
	EarliestCheckpoint         any
}

type failSafeHistory struct {
	ActualFailSafeHistory     int
	ConfiguredFailSafeHistory int
	FailSafeDescription       string
}

// vpgBody is one element of GET /v1/vpgs (zvm-wire 2.6).
type vpgBody struct {
	ActiveProcessesAPI       *activeProcesses `json:"ActiveProcessesApi"`
	ActualRPO                int
	AlertStatus              int
	BackupEnabled            bool
	ConfiguredRpoSeconds     int
	Entities                 entities
	FailSafeHistory          *failSafeHistory
	HistoryStatusAPI         *historyStatus `json:"HistoryStatusApi"`
	IOPs                     int
	LastTest                 *string
	Link                     resourceLink
	SelfLink                 resourceLink `json:"Link_{0}"`
	OrganizationName         string
	Priority                 int
	ProgressPercentage       float64
	ProtectedSite            resourceLink
	ProtectedSiteName        string
	ProvisionedStorageInMB   int
	RecoverySite             resourceLink
	RecoverySiteName         string
	ServiceProfile           *resourceLink
	ServiceProfileIdentifier *string
	ServiceProfileName       string
	SourceSite               string
	Status                   int
	StatusDescription        string
	SubStatus                int
	SubStatusDescription     string
	TargetSite               string
	ThroughputInMB           float64
	UsedStorageInMB          int
	VmsCount                 int
	VpgDescription           string
	VpgIdentifier            string `json:",omitempty"`
	VpgName                  string
	VpgType                  string
	Zorg                     resourceLink
}

func (s *Server) vpgBody(v *VPG, now time.Time) vpgBody {
	frozen := v.journal.at(now, span{})
	earliest, present := frozen.earliest()
	self := s.link("vpgs/"+v.id, "", "VpgApi")
	rel := "self"
	self.Rel = &rel
	body := vpgBody{
		ActiveProcessesAPI:     &activeProcesses{},
		ActualRPO:              7,
		ConfiguredRpoSeconds:   300,
		FailSafeHistory:        &failSafeHistory{},
		HistoryStatusAPI:       &historyStatus{ConfiguredHistoryInMinutes: int(v.journal.history / time.Minute), EarliestCheckpoint: s.checkpointJSON(earliest, present)},
		IOPs:                   2,
		LastTest:               isoDate(v.lastTest),
		Link:                   s.link("vpgs/"+v.id, v.id, "VpgApi"),
		SelfLink:               self,
		Priority:               1,
		ProtectedSite:          s.siteLink(v.protected),
		ProtectedSiteName:      v.protected.Name,
		ProvisionedStorageInMB: 40960 * len(v.vms),
		RecoverySite:           s.siteLink(v.recovery),
		RecoverySiteName:       v.recovery.Name,
		SourceSite:             v.protected.Name,
		Status:                 v.status,
		StatusDescription:      nameOf(s.statusNames(), v.status),
		SubStatus:              v.subStatus,
		SubStatusDescription:   nameOf(s.subStatusNames(), v.subStatus),
		TargetSite:             v.recovery.Name,
		UsedStorageInMB:        8192 * len(v.vms),
		VmsCount:               len(v.vms),
		VpgIdentifier:          s.topID(v.id),
		VpgName:                v.name,
		VpgType:                "VCVpg",
		Zorg:                   s.link("zorgs/"+zeroGUID, zeroGUID, "ZorgApi"),
	}
	if present {
		body.HistoryStatusAPI.ActualHistoryInMinutes = int(now.Sub(earliest.at) / time.Minute)
	}
	if v.test != nil {
		body.ActiveProcessesAPI.RunningFailOverTestAPI = &runningTest{v.test.stage}
	}
	if v.status == statusInitializing {
		body.ActualRPO = -1
	}
	if s.cfg.has(NullFields) {
		body.FailSafeHistory, body.HistoryStatusAPI = nil, nil
		if v.test == nil {
			body.ActiveProcessesAPI = nil
		}
	}
	return body
}

// matchesVPG holds the filters that vms and vpgs share (zvm-wire 2.4).
func (s *Server) matchesVPG(c *call, v *VPG) bool {
	return s.matchesNumber(c.param("status"), v.status, s.statusNames()) &&
		s.matchesNumber(c.param("subStatus"), v.subStatus, s.subStatusNames()) &&
		s.matchesNumber(c.param("priority"), 1, []string{"Low", "Medium", "High"}) &&
		s.matchesText(c.param("organizationName"), "") &&
		s.matchesID(c.param("protectedSiteIdentifier"), v.protected.ID) &&
		s.matchesID(c.param("recoverySiteIdentifier"), v.recovery.ID)
}

func handleVPGs(s *Server, c *call) reply {
	list := []vpgBody{}
	for _, vpg := range s.vpgs {
		if s.matchesText(c.param("name"), vpg.name) && s.matchesVPG(c, vpg) {
			list = append(list, s.vpgBody(vpg, c.now))
		}
	}
	return ok(list)
}

func handleVPG(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	return ok(s.vpgBody(vpg, c.now))
}

func handleStatuses(s *Server, _ *call) reply { return ok(s.statusNames()) }

func handleSubStatuses(s *Server, _ *call) reply { return ok(s.subStatusNames()) }

func nameOf(names []string, n int) string {
	if n < 0 || n >= len(names) {
		return ""
	}
	return names[n]
}

func (s *Server) statusNames() []string {
	names := []string{
		"Initializing", "MeetingSLA", "NotMeetingSLA", "RpoNotMeetingSLA", "HistoryNotMeetingSLA",
		"FailingOver", "Moving", "Deleting", "Recovered",
	}
	if s.cfg.has(SwappedStatusNames) {
		names[3], names[4] = names[4], names[3]
	}
	return names
}

// subStatusNames ends where the public names end (zvm-wire 3.2).
func (s *Server) subStatusNames() []string {
	names := []string{
		"None", "InitialSync", "Creating", "VolumeInitialSync", "Sync", "RecoveryPossible", "DeltaSync",
		"NeedsConfiguration", "Error", "EmptyProtectionGroup", "DisconnectedFromPeerNoRecoveryPoints", "FullSync",
		"VolumeDeltaSync", "VolumeFullSync", "FailingOverCommitting", "FailingOverBeforeCommit",
		"FailingOverRollingBack", "Promoting", "MovingCommitting", "MovingBeforeCommit", "MovingRollingBack",
		"Deleting", "PendingRemove", "BitmapSync", "DisconnectedFromPeer", "ReplicationPausedUserInitiated",
		"ReplicationPausedSystemInitiated", "RecoveryStorageProfileError", "Backup", "RollingBack",
		"RecoveryStorageError", "JournalStorageError", "VmNotProtectedError", "JournalOrRecoveryMissingError",
		"AddedVmsInInitialSync", "ReplicationPausedForMissingVolume", "StoppingForFailover",
		"RollingBackFailoverLiveFailure", "RollingBackMoveFailure", "SplittingCommitting", "PreparePreseed",
	}
	if s.cfg.has(FewerSubStatusNames) {
		return names[:33]
	}
	return names
}
