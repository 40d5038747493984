package zvm

import "strconv"

// VPGStatus is the state of a VPG. Numbers are the wire's (zvm-wire 3.1). Public sources disagree on which of 3 and 4
// is which, so no decision may depend on the difference, and [VPG.StatusText] is the better text to show.
type VPGStatus int

// The VPG states whose meaning matters to a decision.
const (
	StatusUnknown           VPGStatus = unknownEnum
	StatusInitializing      VPGStatus = 0
	StatusMeetingSLA        VPGStatus = 1
	StatusNotMeetingSLA     VPGStatus = 2
	StatusRPONotMeetingSLA  VPGStatus = 3
	StatusHistoryNotMeeting VPGStatus = 4
	StatusFailingOver       VPGStatus = 5
	StatusMoving            VPGStatus = 6
	StatusDeleting          VPGStatus = 7
	StatusRecovered         VPGStatus = 8
)

var statusNames = []string{
	"Initializing", "MeetingSLA", "NotMeetingSLA", "RpoNotMeetingSLA", "HistoryNotMeetingSLA",
	"FailingOver", "Moving", "Deleting", "Recovered",
}

// String returns the state's name, or "unknown (n)" for a number without one.
func (s VPGStatus) String() string { return enumName(int(s), statusNames) }

// VPGSubStatus says what a VPG is doing beside its status. Numbers are the wire's (zvm-wire 3.2).
type VPGSubStatus int

// The sub-states in which a checkpoint is certain.
const (
	SubStatusUnknown VPGSubStatus = unknownEnum
	SubStatusNone    VPGSubStatus = 0
	SubStatusBackup  VPGSubStatus = 28
)

var subStatusNames = []string{
	"None", "InitialSync", "Creating", "VolumeInitialSync", "Sync", "RecoveryPossible", "DeltaSync",
	"NeedsConfiguration", "Error", "EmptyProtectionGroup", "DisconnectedFromPeerNoRecoveryPoints", "FullSync",
	"VolumeDeltaSync", "VolumeFullSync", "FailingOverCommitting", "FailingOverBeforeCommit",
	"FailingOverRollingBack", "Promoting", "MovingCommitting", "MovingBeforeCommit", "MovingRollingBack", "Deleting",
	"PendingRemove", "BitmapSync", "DisconnectedFromPeer", "ReplicationPausedUserInitiated",
	"ReplicationPausedSystemInitiated", "RecoveryStorageProfileError", "Backup", "RollingBack",
	"RecoveryStorageError", "JournalStorageError", "VmNotProtectedError", "JournalOrRecoveryMissingError",
	"AddedVmsInInitialSync", "ReplicationPausedForMissingVolume", "StoppingForFailover",
	"RollingBackFailoverLiveFailure", "RollingBackMoveFailure", "SplittingCommitting", "PreparePreseed",
}

// String returns the sub-state's name, or "unknown (n)" for a number without one.
func (s VPGSubStatus) String() string { return enumName(int(s), subStatusNames) }

func enumName(n int, names []string) string {
	switch {
	case n >= 0 && n < len(names):
		return names[n]
	case n == unknownEnum:
		return "unknown"
	}
	return "unknown (" + strconv.Itoa(n) + ")"
}
