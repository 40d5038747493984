package zvmtest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// manual is a clock that stands still until it is told.
type manual struct{ t time.Time }

func (m *manual) now() time.Time          { return m.t }
func (m *manual) advance(d time.Duration) { m.t = m.t.Add(d) }

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestGuestKeepsEarlierStates(t *testing.T) {
	t.Parallel()
	clock := &manual{noon}
	g := newGuest(clock.now)
	clock.advance(time.Second)
	must(t, g.WriteFile("/etc/nginx/nginx.conf", []byte("one")))
	clock.advance(time.Second)
	must(t, g.WriteFile("/etc/nginx/nginx.conf", []byte("two")))
	clock.advance(time.Second)
	must(t, g.Remove("/etc"))

	got := map[string]string{}
	for name, at := range map[string]time.Duration{"before all": -time.Hour, "start": 0, "between": 1500 * time.Millisecond, "exact": 2 * time.Second, "removed": time.Hour} {
		r, n, err := g.at(noon.Add(at)).open("Volume1-Ext4/etc/nginx/nginx.conf")
		if err != nil {
			got[name] = err.Error()
			continue
		}
		data := make([]byte, n)
		_, err = r.Read(data)
		must(t, err)
		got[name] = string(data)
	}
	gone := errGuestNotFound.Error()
	want := map[string]string{"before all": gone, "start": gone, "between": "one", "exact": "two", "removed": gone}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content by moment (-want +got):\n%s", diff)
	}
}

func TestArchiveIsReadable(t *testing.T) {
	t.Parallel()
	g := newGuest((&manual{noon}).now)
	must(t, g.WriteFile("/etc/a", []byte("a")))
	must(t, g.WriteManyFiles("/many", 3))
	var b bytes.Buffer
	must(t, g.snapshot().archive(&b, []string{"Volume1-Ext4/etc", "Volume1-Ext4/many"}))
}
