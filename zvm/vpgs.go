package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// VPG is a Virtual Protection Group: one to many VMs that share a journal (zvm-wire 2.6).
type VPG struct {
	ID        VPGID
	Name      string
	Status    VPGStatus
	SubStatus VPGSubStatus
	// StatusText and SubStatusText are the server's own words, or a name that has no number here. Empty when neither
	// was sent.
	StatusText    string
	SubStatusText string
	ProtectedSite SiteRef
	RecoverySite  SiteRef
	VMsCount      int
	// History is what the journal is configured to hold and does hold.
	History History
	// FailoverTestStage is the stage of a running failover test, empty when none runs (zvm-wire 7.2).
	FailoverTestStage string
}

// Local reports whether the VPG replicates within one site, so that the ZVM that protects it also serves FLR for it.
func (v VPG) Local() bool {
	return v.ProtectedSite.ID != "" && v.ProtectedSite.ID == v.RecoverySite.ID
}

// History describes a journal's reach. Zero durations mean that the server did not say.
type History struct {
	Configured, Actual time.Duration
	Earliest           *Checkpoint // nil when the journal is empty or the server did not say
}

// VPGFilter narrows [Client.ListVPGs]. An empty name does not narrow; names are compared without regard to case.
type VPGFilter struct {
	Name string
}

func (f VPGFilter) query() url.Values {
	q := url.Values{}
	setNonEmpty(q, "name", f.Name)
	return q
}

func (f VPGFilter) match(v VPG) bool { return f.Name == "" || strings.EqualFold(f.Name, v.Name) }

type wireVPG struct {
	VpgIdentifier        string
	VpgName              string
	Link                 *link
	Status               json.RawMessage
	SubStatus            json.RawMessage
	StatusDescription    string
	SubStatusDescription string
	ProtectedSite        *link
	RecoverySite         *link
	ProtectedSiteName    string
	RecoverySiteName     string
	SourceSite           string
	TargetSite           string
	VmsCount             int
	HistoryStatusAPI     *struct {
		ActualHistoryInMinutes     float64
		ConfiguredHistoryInMinutes float64
		EarliestCheckpoint         *wireCheckpoint
	} `json:"HistoryStatusApi"`
	ActiveProcessesAPI *struct {
		RunningFailOverTestAPI *struct {
			Stage json.RawMessage
		} `json:"RunningFailOverTestApi"`
	} `json:"ActiveProcessesApi"`
}

// minutes is a time on the wire. Beyond what a duration holds, it is the longest.
func minutes(n float64) time.Duration {
	const longest = float64(math.MaxInt64 / int64(time.Minute))
	return time.Duration(max(-longest, min(n, longest)) * float64(time.Minute))
}

func (w wireVPG) vpg() (VPG, error) {
	id, err := oneID("VPG", w.VpgIdentifier, w.Link.id())
	if err != nil {
		return VPG{}, err
	}
	status, sub := decodeEnum(w.Status, statusNames), decodeEnum(w.SubStatus, subStatusNames)
	v := VPG{
		ID:            VPGID(id),
		Name:          w.VpgName,
		Status:        VPGStatus(status.Number),
		SubStatus:     VPGSubStatus(sub.Number),
		StatusText:    firstNonEmpty(w.StatusDescription, status.Text),
		SubStatusText: firstNonEmpty(w.SubStatusDescription, sub.Text),
		ProtectedSite: siteRef(w.ProtectedSite, w.ProtectedSiteName, w.SourceSite),
		RecoverySite:  siteRef(w.RecoverySite, w.RecoverySiteName, w.TargetSite),
		VMsCount:      w.VmsCount,
	}
	if h := w.HistoryStatusAPI; h != nil {
		v.History.Configured = minutes(h.ConfiguredHistoryInMinutes)
		v.History.Actual = minutes(h.ActualHistoryInMinutes)
		if h.EarliestCheckpoint != nil {
			if earliest, err := h.EarliestCheckpoint.checkpoint(); err == nil {
				v.History.Earliest = &earliest
			}
		}
	}
	if a := w.ActiveProcessesAPI; a != nil && a.RunningFailOverTestAPI != nil {
		stage := decodeEnum(a.RunningFailOverTestAPI.Stage, nil)
		v.FailoverTestStage = firstNonEmpty(stage.Text, "running")
	}
	return v, nil
}

// ListVPGs returns the VPGs this ZVM lists. Rows that do not match the filter are dropped here.
func (c *Client) ListVPGs(ctx context.Context, filter VPGFilter) ([]VPG, error) {
	cl := call{op: "ListVPGs", method: http.MethodGet, path: "/v1/vpgs", query: filter.query()}
	return list(ctx, c, cl, wireVPG.vpg, filter.match)
}

// GetVPG returns one VPG as it is now. A missing one matches [ErrNotFound] where the server says so plainly.
func (c *Client) GetVPG(ctx context.Context, id VPGID) (VPG, error) {
	path, err := apiPath("v1", "vpgs", string(id))
	if err != nil {
		return VPG{}, err
	}
	cl := call{op: "GetVPG", method: http.MethodGet, path: path}
	var w wireVPG
	x, err := c.look(ctx, cl, &w)
	if err != nil {
		return VPG{}, err
	}
	v, err := w.vpg()
	if err == nil && !strings.EqualFold(string(v.ID), string(id)) {
		err = errors.New("the server answered with another VPG")
	}
	if err != nil {
		return VPG{}, x.senseless(err)
	}
	return v, nil
}
