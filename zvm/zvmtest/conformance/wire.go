package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// changeOf says how a tag differs from what it was.
func changeOf(before, after string) string {
	switch {
	case after == before:
		return "unchanged"
	case strings.HasPrefix(after, before):
		return fmt.Sprintf("extended by %q", strings.TrimPrefix(after, before))
	}
	return "replaced"
}

// askWire answers what only the wire itself can tell. Nothing here can fail a
// run: a probe without an answer is left out.
func (s *suite) askWire(ctx context.Context) {
	if s.Tap == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(s.Limit, time.Minute))
	defer cancel()
	s.askLogins()
	s.askRefusals(ctx)
	s.askNames(ctx)
	s.askVMs(ctx)
	s.askEnums(ctx)
	s.askCheckpointTypes(ctx)
	s.askForms()
}

func (s *suite) askLogins() {
	for _, one := range s.Tap.loginsSoFar() {
		if one.status == 200 {
			s.answer(1, "the answer to the grant "+one.grant, "access token %.0f s, refresh token %.0f s, refresh token sent: %t",
				one.expires, one.refreshes, one.hasRefreshToken)
			return
		}
	}
}

func (s *suite) askRefusals(ctx context.Context) {
	for _, one := range []struct{ probe, bearer string }{{"GET without a token", ""}, {"GET with a made-up token", "made-up"}} {
		a, err := s.Tap.getAs(ctx, "/v1/localsite", one.bearer)
		if err == nil {
			s.answer(3, one.probe, "%d, body %s, WWW-Authenticate %q", a.status, a.form(), a.header.Get("WWW-Authenticate"))
		}
	}
}

func (s *suite) askNames(ctx context.Context) {
	count := func(name string) int {
		a, err := s.Tap.get(ctx, "/v1/vms?includeBackupedVms=false&vmName="+url.QueryEscape(name))
		if err != nil || a.status != 200 {
			return -1
		}
		return len(a.list())
	}
	whole := count(s.VM)
	if whole < 1 {
		return
	}
	s.answer(6, "vmName in upper case and cut short, of rows for the whole name", "%d and %d of %d",
		count(strings.ToUpper(s.VM)), count(s.VM[:len(s.VM)-1]), whole)
}

func (s *suite) askVMs(ctx context.Context) {
	if len(s.rows) == 0 {
		return
	}
	if a, err := s.Tap.get(ctx, "/v1/vms?includeBackupedVms=false&vmIdentifier="+url.QueryEscape(string(s.rows[0].ID))); err == nil {
		for _, row := range a.list()[:min(1, len(a.list()))] {
			link, _ := row["link"].(map[string]any)
			id, _ := link["identifier"].(string)
			_, vpg := link["vpg_identifier"]
			_, instance := link["instance_identifier"]
			s.answer(7, "link of a VM", "VPG within the identifier: %t, vpg_identifier there: %t, instance_identifier there: %t",
				strings.Contains(id, "?"), vpg, instance)
		}
	}
	if a, err := s.Tap.get(ctx, "/v1/vms/"+url.PathEscape(string(s.rows[0].ID))); err == nil {
		s.answer(8, fmt.Sprintf("GET of one VM that is in %d VPGs", len(s.rows)), "%d, %s", a.status, a.form())
	}
}

func (s *suite) askEnums(ctx context.Context) {
	for _, list := range []string{"statuses", "substatuses"} {
		a, err := s.Tap.get(ctx, "/v1/vpgs/"+list)
		var names []string
		if err == nil && json.Unmarshal(a.body, &names) == nil {
			// Words of the product, in which a site's name may occur: "Recovery" is one.
			s.note(Answer{Question: 10, Probe: "GET /v1/vpgs/" + list, Observed: strings.Join(names, ", ")})
		}
	}
}

func (s *suite) askCheckpointTypes(ctx context.Context) {
	if len(s.tagged) == 0 {
		return
	}
	t := s.tagged[0]
	query := url.Values{"startDate": {t.began.Add(-margin).UTC().Format("2006-01-02T15:04:05.000Z")}}
	a, err := s.Tap.get(ctx, "/v1/vpgs/"+url.PathEscape(string(t.vpg.ID))+"/checkpoints?"+query.Encode())
	if err != nil {
		return
	}
	automatic := "none seen"
	for _, row := range a.list() {
		switch {
		case row["tag"] == nil:
			automatic = fmt.Sprint(row["type"])
		case row["checkpointidentifier"] == string(t.point.ID):
			s.answer(11, "Type of the tagged checkpoint", "%v", row["type"])
		}
	}
	s.answer(11, "Type of an automatic checkpoint", "%s", automatic)
}

// askForms looks back at answers that the client got.
func (s *suite) askForms() {
	for _, one := range []struct {
		question         int
		probe, operation string
	}{
		{20, "the answer to an insert", "POST /v1/vpgs/{id}/checkpoints"},
		{23, "GET of one FLR session", "GET /v1/flrs/{id}"},
		{29, "the answer to a download request", "POST /v1/flrs/{id}/download"},
		{30, "the answer to an unmount", "DELETE /v1/flrs/{id}"},
	} {
		if a, seen := s.Tap.seen(one.operation); seen && len(a.body) > 0 {
			s.answer(one.question, one.probe, "%d, %s", a.status, a.form())
		}
	}
	if a, seen := s.Tap.seen("GET /v1/downloads/{id}"); seen {
		s.answer(29, "GET of the download link", "%d, Content-Type %q, Content-Length sent: %t, Accept-Ranges %q",
			a.status, a.header.Get("Content-Type"), a.header.Get("Content-Length") != "", a.header.Get("Accept-Ranges"))
	}
	if a, seen := s.Tap.seen("POST /v1/flrs/{id}/browse"); seen {
		s.answer(27, "Path of a browsed item", "%s", pathForm(a.body))
	}
}

// pathForm says whether the items of a folder come with their folder.
func pathForm(body []byte) string {
	var answer struct {
		MainPathItem struct{ Path string }
		PathItems    []struct{ Path string }
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.PathItems) == 0 || answer.MainPathItem.Path == "" {
		return "not told"
	}
	if strings.HasPrefix(answer.PathItems[0].Path, answer.MainPathItem.Path+"/") {
		return "the whole path"
	}
	return "the name alone"
}
