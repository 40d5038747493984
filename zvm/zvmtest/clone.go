package zvmtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Clone is a finished clone. Nothing ever removes it: clones are their
// caller's (zvm-wire 7.3).
type Clone struct {
	VPGID        string
	SiteID       string // the recovery site, where the new VMs are
	CheckpointID string // what was cloned, whatever the caller meant
	SourceVMIDs  []string
	VMs          []ClonedVM
	Completed    time.Time
}

// ClonedVM is one new VM, powered off and without protection.
type ClonedVM struct {
	ID   string
	Name string // the VM's name and the checkpoint's time stamp
}

// Clones lists the clones that were completed.
func (s *Server) Clones() []Clone {
	s.lock()
	defer s.mu.Unlock()
	var all []Clone
	for _, clone := range s.clones {
		clone.SourceVMIDs = slices.Clone(clone.SourceVMIDs)
		clone.VMs = slices.Clone(clone.VMs)
		all = append(all, clone)
	}
	return all
}

// handleCloneStart knows checkpointId alone. A checkpointIdentifier, which
// FailoverTest wants, is an unknown key here and clones the latest point
// without a word (zvm-wire 7.1).
func handleCloneStart(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	var body struct {
		CheckpointID        *string `json:"CheckpointId"`
		DatastoreIdentifier *string
		VMIdentifiers       []string `json:"VmIdentifiers"`
	}
	var keys map[string]json.RawMessage
	if c.decode(&body) != nil || c.decode(&keys) != nil {
		return fail(http.StatusBadRequest, "the body is no start of a clone")
	}
	for key, value := range keys {
		if strings.EqualFold(key, "checkpointIdentifier") && s.cfg.has(CloneTakesCheckpointIdentifier) && body.CheckpointID == nil {
			if json.Unmarshal(value, &body.CheckpointID) != nil {
				return fail(http.StatusBadRequest, "the body is no start of a clone")
			}
			continue
		}
		known := slices.ContainsFunc([]string{"checkpointId", "datastoreIdentifier", "vmIdentifiers"},
			func(name string) bool { return strings.EqualFold(name, key) })
		if !known && s.cfg.has(CloneUnknownKeyRefused) {
			return fail(http.StatusBadRequest, "unknown member "+key)
		}
	}
	point, refusal := s.chooseCheckpoint(vpg, body.CheckpointID, c.now)
	if refusal.status != 0 {
		return refusal
	}
	vms, refusal := s.chooseVMs(vpg, body.VMIdentifiers)
	if refusal.status != 0 {
		return refusal
	}
	if vpg.test != nil && s.cfg.has(TestAndCloneExclude) {
		return fail(http.StatusInternalServerError, "VPG "+vpg.name+" is in a failover test")
	}
	if vpg.cloning != nil {
		return fail(http.StatusInternalServerError, "VPG "+vpg.name+" is being cloned")
	}
	t := &task{kind: "Clone", user: c.account.name, vpg: vpg}
	vpg.cloning = t
	t.finish = func(time.Time) (int, string) { return TaskCompleted, "" }
	t.cleanup = func() {
		vpg.cloning = nil
		if t.state == TaskCompleted {
			s.addClone(vpg, point, vms, t.completed)
		}
	}
	return s.answerTask(s.startTask(t, c.now, s.cfg.cloneTime))
}

func (s *Server) addClone(vpg *VPG, point checkpoint, vms []*VM, at time.Time) {
	clone := Clone{VPGID: vpg.id, SiteID: vpg.recovery.ID, CheckpointID: point.public().ID, Completed: at}
	for _, vm := range vms {
		s.ordinals["cloned vm"]++
		clone.SourceVMIDs = append(clone.SourceVMIDs, vm.id)
		clone.VMs = append(clone.VMs, ClonedVM{
			ID:   vpg.recovery.vcenter + ".vm-" + strconv.Itoa(9000+s.ordinals["cloned vm"]),
			Name: vm.name + " " + s.wireTime(point.at).Format("2006-01-02 15-04-05"),
		})
	}
	s.clones = append(s.clones, clone)
}

// handleCloneAbort stops a running clone; 200 without content is all that is
// documented (zvm-wire 7.1).
func handleCloneAbort(s *Server, c *call) reply {
	vpg := s.findVPG(c.params["id"])
	if vpg == nil {
		return s.unknownID("VPG", c.params["id"])
	}
	running := vpg.cloning
	if running == nil {
		return fail(http.StatusInternalServerError, "VPG "+vpg.name+" is not being cloned")
	}
	state := TaskStopped
	if s.cfg.has(CloneAbortFails) {
		state = TaskFailed
	}
	s.stop(running, c.now, state, "the clone was aborted")
	if s.cfg.has(CloneAbortAnswersTask) {
		return s.answerTask(running)
	}
	return reply{status: http.StatusOK}
}
