package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// FLRTarget names what to mount: one VM as it was at one checkpoint of one VPG.
type FLRTarget struct {
	VPG        VPGID
	VM         VMID
	Checkpoint CheckpointID
}

// FLRSession is a mounted VM, or one being mounted (zvm-wire 6.3).
type FLRSession struct {
	ID SessionID
	FLRTarget

	Status string // the server's name
	// RunningTasks counts downloads and the like that are under way in the session.
	RunningTasks int
	MountTime    Time
}

// Ready reports whether the session can be browsed.
func (s FLRSession) Ready() bool {
	return strings.EqualFold(s.Status, "MountCompletedSuccessfully") || strings.EqualFold(s.Status, "MountReady")
}

// Failed reports whether the mount has failed. Statuses that are neither this nor ready are to be waited for.
func (s FLRSession) Failed() bool { return strings.Contains(strings.ToLower(s.Status), "fail") }

type wireFLRSession struct {
	FlrSessionIdentifier        string
	FlrSessionStatus            string
	VMIdentifier                string `json:"VmIdentifier"`
	VpgIdentifier               string
	CheckpointIdentifier        json.RawMessage
	MountTime                   Time
	NumberOfRelatedRunningTasks int
	Link                        *link
}

func (w wireFLRSession) session() (FLRSession, error) {
	id, err := oneID("FLR session", w.FlrSessionIdentifier, w.Link.id())
	if err != nil {
		return FLRSession{}, err
	}
	s := FLRSession{
		ID:           SessionID(id),
		FLRTarget:    FLRTarget{VPG: VPGID(w.VpgIdentifier), VM: VMID(w.VMIdentifier)},
		Status:       w.FlrSessionStatus,
		RunningTasks: w.NumberOfRelatedRunningTasks,
		MountTime:    w.MountTime,
	}
	if cp, err := checkpointID(w.CheckpointIdentifier); err == nil {
		s.Checkpoint = cp
	}
	return s, nil
}

// MountFLR asks for a VM to be mounted and returns the session, which is not ready yet. The request is sent once; when
// its answer is lost the error matches [ErrOutcomeUnknown].
func (c *Client) MountFLR(ctx context.Context, target FLRTarget) (SessionID, error) {
	if target.VPG == "" || target.VM == "" || target.Checkpoint == "" {
		return "", errors.New("zvm: an FLR mount needs a VPG, a VM and a checkpoint")
	}
	type jflr struct {
		VPG        VPGID        `json:"vpgIdentifier"`
		VM         VMID         `json:"vmIdentifier"`
		Checkpoint CheckpointID `json:"checkpointIdentifier"`
	}
	cl := call{
		op: "MountFLR", method: http.MethodPost, path: "/v1/flrs",
		body: struct {
			JFLR jflr `json:"jflr"`
		}{jflr(target)},
	}
	a, err := c.writeRaw(ctx, cl)
	if err != nil {
		return "", err
	}
	id, err := createdID(a.body, "FlrSessionIdentifier", "Identifier")
	if err != nil {
		return "", a.unusable(err)
	}
	return SessionID(id), nil
}

// GetFLRSession looks at a session once. Servers answer with an object or a list of one; an empty answer matches
// [ErrNotFound]. Errors are marked as [Client.GetTask] marks them.
func (c *Client) GetFLRSession(ctx context.Context, id SessionID) (FLRSession, error) {
	path, err := apiPath("v1", "flrs", string(id))
	if err != nil {
		return FLRSession{}, err
	}
	cl := call{op: "GetFLRSession", method: http.MethodGet, path: path}
	var raw json.RawMessage
	x, err := c.look(ctx, cl, &raw)
	if err != nil {
		return FLRSession{}, lookupError(err)
	}
	many, err := oneOrMany[*wireFLRSession](raw)
	if err != nil {
		return FLRSession{}, x.senseless(err)
	}
	for _, w := range many {
		if w == nil {
			continue
		}
		s, err := w.session()
		if err != nil {
			return FLRSession{}, x.senseless(err)
		}
		if strings.EqualFold(string(s.ID), string(id)) {
			return s, nil
		}
	}
	return FLRSession{}, x.senseless(ErrNotFound)
}

// ListFLRSessions returns the sessions of one VM, or of all when vm is empty.
func (c *Client) ListFLRSessions(ctx context.Context, vm VMID) ([]FLRSession, error) {
	q := url.Values{}
	setNonEmpty(q, "vmIdentifier", string(vm))
	cl := call{op: "ListFLRSessions", method: http.MethodGet, path: "/v1/flrs", query: q}
	return list(ctx, c, cl, wireFLRSession.session, func(s FLRSession) bool {
		return vm == "" || strings.EqualFold(string(vm), string(s.VM))
	})
}

// Item is a file, a folder or a partition in a mounted VM (zvm-wire 6.4).
type Item struct {
	// Path is the whole path within the session, "/" between its parts, in the server's own spelling.
	Path string
	Type string // the server's name: File, Folder, Partition, Disk
	// Size is in bytes, -1 when the server does not say, as for everything that is not a file.
	Size         int64
	Browsable    bool
	Downloadable bool
	Reason       string // why it is not downloadable, in the server's words
	Created      Time
	Accessed     Time
	Written      Time
}

// Name is the last part of the item's path.
func (i Item) Name() string { return i.Path[strings.LastIndexByte(i.Path, '/')+1:] }

type wireItem struct {
	Path                string
	Type                json.RawMessage
	IsBrowsable         bool
	DownloadInformation *struct {
		IsDownloadable        bool
		AdditionalInformation string
	}
	SizeInBytes    *int64
	CreationTime   Time
	LastAccessTime Time
	LastWriteTime  Time
}

var itemTypes = []string{"File", "Folder", "Partition", "Disk"}

func (w wireItem) item(parent string) Item {
	kind := decodeEnum(w.Type, itemTypes)
	item := Item{
		Path: w.Path, Type: kind.Text, Size: -1, Browsable: w.IsBrowsable,
		Created: w.CreationTime, Accessed: w.LastAccessTime, Written: w.LastWriteTime,
	}
	if kind.Number >= 0 && kind.Number < len(itemTypes) {
		item.Type = itemTypes[kind.Number]
	}
	if w.SizeInBytes != nil && *w.SizeInBytes >= 0 {
		item.Size = *w.SizeInBytes
	}
	if d := w.DownloadInformation; d != nil {
		item.Downloadable, item.Reason = d.IsDownloadable, d.AdditionalInformation
	}
	if parent != "" && !strings.HasPrefix(item.Path, parent+"/") {
		item.Path = parent + "/" + item.Path
	}
	return item
}

// checkSessionPath refuses what must never reach a server: a backslash is a separator to some and a letter to others,
// and "..", "." and empty parts are for whoever built the path to settle.
func checkSessionPath(path string) error {
	if path == "" {
		return nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\\x00") {
			return fmt.Errorf("%w: %q", ErrSessionPath, path)
		}
	}
	return nil
}

// Download is guest data on its way. The caller closes the body.
type Download struct {
	Body io.ReadCloser
	Size int64 // what the server announced, -1 when it announced nothing
}

// DownloadFLR asks for the given paths of a ready session and opens the data. Servers answer with a link, which is
// followed within the client's own origin and those of [WithDownloadOrigin], or with the data itself; one file may come as
// it is or in a zip, several come in a zip (zvm-wire 6.5).
//
// There is no limit on the whole transfer: the context ends it, and so does a stretch without a byte (see
// [WithIdleTimeout]). An HTML page is an error, not a file, and so is a part of a file (status 206): no range is ever asked for.
// A path that no server is asked for is an error that matches [ErrSessionPath].
func (c *Client) DownloadFLR(ctx context.Context, id SessionID, paths ...string) (*Download, error) {
	address, err := apiPath("v1", "flrs", string(id), "download")
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("zvm: a download needs a path")
	}
	for _, p := range paths {
		if err := checkSessionPath(p); err != nil || p == "" {
			return nil, errors.Join(err, errors.New("zvm: a download needs whole paths"))
		}
	}
	cl := call{
		op: "DownloadFLR", method: http.MethodPost, path: address, safe: true,
		body: struct {
			PathList []string `json:"pathList"`
		}{paths},
	}
	x, err := c.sender.exchange(cl)
	if err != nil {
		return nil, err
	}
	x.header.Set("Accept", "application/json, */*;q=0.1")
	resp, err := c.send(ctx, x)
	if err != nil {
		return nil, err
	}
	if err := x.refusePart(resp); err != nil {
		return nil, err
	}
	if !saysText(resp.Header) {
		return &Download{Body: resp.Body, Size: resp.ContentLength}, nil
	}
	defer closeBody(resp.Body)
	body, err := readAll(resp.Body, maxErrorBody)
	if err != nil {
		return nil, x.failed(ctx, err)
	}
	// What is not a link may still be one that was misread, or stand in XML: none of it is shown.
	if markup(resp.Header, body) {
		return nil, x.badAnswer(resp, nil, errMarkup)
	}
	link, err := downloadLink(withoutBOM(body))
	if err != nil {
		return nil, x.badAnswer(resp, nil, err)
	}
	data, err := c.open(ctx, call{op: "DownloadFLR"}, link) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	return &Download{Body: data.Body, Size: data.ContentLength}, nil
}

// saysText reports whether an answer may be a link: guest data is sent as what it is, not as JSON or text.
func saysText(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err != nil || strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml")
}

// downloadLink reads a link out of a JSON string, or out of bare text that is one.
func downloadLink(body []byte) (string, error) {
	text := strings.TrimSpace(string(body))
	var s string
	if json.Unmarshal(body, &s) == nil {
		text = strings.TrimSpace(s)
	}
	link, err := url.Parse(text)
	switch {
	case err != nil || text == "" || strings.ContainsAny(text, " \t\r\n\"<>{}"):
		return "", errors.New("the answer is not a link")
	case link.Scheme == "" && link.Host == "" && !strings.Contains(link.Path, "/"):
		return "", errors.New("the answer is not a link")
	case link.Scheme != "" && link.Scheme != "https" && link.Scheme != "http":
		return "", errors.New("the answer is not a link")
	}
	return text, nil
}

// UnmountFLR asks for a session to be closed. It returns the task that does so, empty when the server names none. A
// session that is gone already matches [ErrNotFound].
func (c *Client) UnmountFLR(ctx context.Context, id SessionID) (TaskID, error) {
	path, err := apiPath("v1", "flrs", string(id))
	if err != nil {
		return "", err
	}
	cl := call{op: "UnmountFLR", method: http.MethodDelete, path: path}
	a, err := c.writeRaw(ctx, cl)
	if err != nil {
		return "", err
	}
	taskID, err := createdID(a.body, "TaskIdentifier")
	if errors.Is(err, errSeveralIDs) {
		return "", a.unusable(err)
	}
	if err != nil || SessionID(taskID) == id {
		return "", nil //nolint:nilerr // an accepted unmount without a task id is an answer some servers give (zvm-wire 12)
	}
	return TaskID(dotted(taskID)), nil
}
