package zvm

import "github.com/zerto-rewind/zerto-rewind/task"

// VMID is Zerto's identifier of a virtual machine, "<server guid>.<moref>" (zvm-wire 2.2). It is the same in every VPG
// the machine is in.
type VMID string

// VPGID is Zerto's identifier of a VPG, a GUID.
type VPGID string

// CheckpointID is the identifier of a checkpoint within one VPG's journal: a decimal number, kept as text (zvm-wire
// 4.1). Compare two of them with [CheckpointID.Compare], never as strings.
type CheckpointID string

// SiteID is Zerto's identifier of a site, a GUID.
type SiteID string

// SessionID is the identifier of an FLR session, "<guid>.<site guid>": the look of a task id, but not one (zvm-wire
// 6.2).
type SessionID string

// TaskID is the identifier of a Zerto task.
type TaskID = task.ID

// Compare orders ids by number: -1 when a was given before b. Ids that are not numbers come first, ordered as text.
func (a CheckpointID) Compare(b CheckpointID) int {
	x, xok := digits(string(a))
	y, yok := digits(string(b))
	switch {
	case xok && yok && len(x) != len(y):
		return sign(len(x) - len(y))
	case xok != yok && xok:
		return 1
	case xok != yok:
		return -1
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// digits strips leading zeros, so that two numbers of equal length compare as text.
func digits(s string) (string, bool) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return s, false
		}
	}
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s, s != ""
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
