package zvm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// echoing answers every call with 200 and a body that repeats the bearer it came with.
func echoing(t *testing.T, body string) *Client {
	t.Helper()
	return newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "BEARER", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
	}).client(t)
}

func TestLaw7_AnEchoedTokenIsTakenOutOfEveryError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"weird":"BEARER"}`, `"<BEARER>"`, `BEARER!`, `[{"VpgIdentifier":"BEARER","Link":{"identifier":"other"}}]`} {
		c := echoing(t, body)
		ctx := t.Context()
		_, insert := c.InsertCheckpoint(ctx, "v", "n")
		_, mount := c.MountFLR(ctx, FLRTarget{"v", "m", "1"})
		_, browse := c.BrowseFLR(ctx, "s", "r")
		_, download := c.DownloadFLR(ctx, "s", "r")
		_, test := c.StartFailoverTest(ctx, "v", "1", []VMID{"m"})
		_, clone := c.StartClone(ctx, "v", "1", []VMID{"m"})
		for name, err := range map[string]error{
			"insert": insert, "mount": mount, "browse": browse, "download": download, "test": test, "clone": clone,
		} {
			if err == nil {
				continue // some answers are ids
			}
			var e *Error
			if !errors.As(err, &e) || e.Attempts == 0 {
				t.Errorf("%s: %#v does not tell its attempts", name, err)
			}
			if text := fmt.Sprintf("%v %+v %s", err, err, e.Body); strings.Contains(text, "MARKER-token") {
				t.Errorf("%s: the token is shown: %s", name, text)
			}
		}
	}
}

func TestATaskIsTheOneThatWasAskedFor(t *testing.T) {
	t.Parallel()
	c := echoing(t, `{"TaskIdentifier":"other.site","Status":{"State":6}}`)
	if got, err := c.GetTask(t.Context(), "mine.site"); err == nil {
		t.Errorf("another task was taken for it: %+v", got)
	}
	if got, err := c.GetTask(t.Context(), "OTHER:site"); err != nil || got.State != 6 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestARefusedPageEndsAFolderOnlyWhenItIsMissing(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{400: "incomplete", 404: "incomplete", 401: "error", 403: "error", 500: "error"} {
		c := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(string(body), "pageNumber") {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"Message":"no"}`)
				return
			}
			var items []string
			for i := range browsePageSize {
				items = append(items, fmt.Sprintf(`{"Path":"r/f%d","Type":"File"}`, i))
			}
			_, _ = io.WriteString(w, `{"PathItems":[`+strings.Join(items, ",")+`]}`)
		}).client(t)
		l, err := c.BrowseFLR(t.Context(), "s", "r")
		got := "incomplete"
		switch {
		case err != nil:
			got = "error"
		case l.Complete:
			got = "complete"
		}
		if got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}
