package zvmtest_test

import (
	"archive/zip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

func (m mounted) download(paths string) answer {
	m.t.Helper()
	return m.post("/v1/flrs/"+m.session+"/download", `{"pathList":[`+paths+`]}`)
}

const oneFile = `"Volume1-Ext4/d/a.txt"`

func twoFiles() map[string]string { return map[string]string{"/d/a.txt": "alpha", "/d/b.txt": "beta"} }

func unzip(t *testing.T, body string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

func TestDownloadLinkForms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want func(m mounted) string // the beginning of the raw answer
	}{
		{"relative", nil, func(mounted) string { return `"/v1/downloads/MARKER-` }},
		{"relative behind a prefix", []zvmtest.Option{zvmtest.WithPathPrefix("/zvm")}, func(mounted) string { return `"/zvm/v1/downloads/` }},
		{"absolute", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadLinkAbsolute)}, func(m mounted) string { return `"` + m.s.URL() + "/v1/downloads/" }},
		{"unquoted", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadLinkUnquoted)}, func(mounted) string { return `/v1/downloads/` }},
		{"no link", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadNotALink)}, func(mounted) string { return `"the files` }},
		{"the bytes", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadBytes)}, func(mounted) string { return `alpha` }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := mountNow(t, twoFiles(), tc.opts...)
			if a := m.download(oneFile); a.status != http.StatusOK || !strings.HasPrefix(a.body, tc.want(m)) {
				t.Errorf("answer = %d %s, want %s…", a.status, a.body, tc.want(m))
			}
		})
	}
}

func TestDownloadPayload(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, paths string
		opts        []zvmtest.Option
		want        map[string]string // nil: the raw file
	}{
		{"one file is raw", oneFile, nil, nil},
		{"one file is zipped by switch", oneFile, []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadZipped)}, map[string]string{"a.txt": "alpha"}},
		{"two files are a zip", oneFile + `,"Volume1-Ext4/d/b.txt"`, nil, map[string]string{"a.txt": "alpha", "b.txt": "beta"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := mountNow(t, twoFiles(), tc.opts...)
			a := m.get(strings.TrimPrefix(m.download(tc.paths).text(t), m.s.URL()))
			if tc.want == nil {
				if a.body != "alpha" || a.header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(a.header.Get("Content-Disposition"), "a.txt") {
					t.Errorf("download = %q with %v", a.body, a.header)
				}
				return
			}
			if diff := cmp.Diff(tc.want, unzip(t, a.body)); diff != "" {
				t.Errorf("zip (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDownloadOfAFolderIsAZip(t *testing.T) {
	t.Parallel()
	m := mountNow(t, twoFiles())
	files := unzip(t, m.get(m.download(`"Volume1-Ext4/d"`).text(t)).body)
	found := 0
	for name := range files {
		if strings.HasSuffix(name, "a.txt") || strings.HasSuffix(name, "b.txt") {
			found++
		}
	}
	if found != 2 {
		t.Errorf("zip = %v", files)
	}
}

func TestDownloadRefusals(t *testing.T) {
	t.Parallel()
	m := mountNow(t, twoFiles(), zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused))
	for paths, want := range map[string]int{
		"":                                  400,
		`"Volume1-Ext4/none"`:               404,
		`"Volume1-Ext4/../x"`:               400,
		oneFile + `,"Volume1-Ext4/d/b.txt"`: 500,
		oneFile:                             200,
	} {
		if a := m.download(paths); a.status != want {
			t.Errorf("download of %s = %d %s, want %d", paths, a.status, a.body, want)
		}
	}
}

func TestDownloadLinkNeedsTheBearer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		want int
	}{
		{"by default", nil, http.StatusUnauthorized},
		{"not by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadWithoutBearer)}, http.StatusOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := mountNow(t, twoFiles(), tc.opts...)
			link := m.download(oneFile).text(t)
			if a := newClient(t, m.s).get(link); a.status != tc.want {
				t.Errorf("without the bearer: %d, want %d", a.status, tc.want)
			}
		})
	}
}

func TestDownloadLinkLife(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []zvmtest.Option
		act  func(m mounted, link string)
		want int
	}{
		{"works again", nil, func(m mounted, link string) { m.get(link) }, 200},
		{"works once by switch", []zvmtest.Option{zvmtest.WithSwitch(zvmtest.DownloadLinkSingleUse)}, func(m mounted, link string) { m.get(link) }, 404},
		{"ends by age", []zvmtest.Option{zvmtest.WithLinkTTL(10 * time.Second)}, func(m mounted, _ string) { m.s.Advance(10 * time.Second) }, 404},
		{"ends with the session", nil, func(m mounted, _ string) {
			m.do(http.MethodDelete, "/v1/flrs/"+m.session, "", nil)
			m.s.Advance(time.Second)
		}, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := mountNow(t, twoFiles(), tc.opts...)
			link := m.download(oneFile).text(t)
			tc.act(m, link)
			if a := m.get(link); a.status != tc.want {
				t.Errorf("answer = %d, want %d", a.status, tc.want)
			}
		})
	}
}

func TestDownloadLoginPage(t *testing.T) {
	t.Parallel()
	m := mountNow(t, twoFiles(), zvmtest.WithSwitch(zvmtest.DownloadLoginPage))
	a := m.get(m.download(oneFile).text(t))
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("answer = %d %v", a.status, a.header)
	}
}

func TestForeignOriginRecordsTheBearer(t *testing.T) {
	t.Parallel()
	m := mountNow(t, twoFiles(), zvmtest.WithSwitch(zvmtest.DownloadLinkForeign))
	link := m.download(oneFile).text(t)
	if strings.HasPrefix(link, m.s.URL()) {
		t.Fatalf("link %s is of the same origin", link)
	}
	if got := m.s.ForeignRequests(); len(got) != 0 {
		t.Errorf("requests before any = %+v", got)
	}
	careless, careful := m.get(link), newClient(t, m.s).get(link)
	if careless.body != "alpha" || careful.body != "alpha" {
		t.Errorf("bodies = %q, %q", careless.body, careful.body)
	}
	want := []zvmtest.ForeignRequest{{Method: "GET", Authorization: true}, {Method: "GET"}}
	if diff := cmp.Diff(want, m.s.ForeignRequests()); diff != "" {
		t.Errorf("foreign requests (-want +got):\n%s", diff)
	}
}

func TestHugeFileIsStreamed(t *testing.T) {
	t.Parallel()
	s := start(t)
	vpg := s.AddVPG("web", zvmtest.VPGConfig{})
	vm := s.AddVM("web01", vpg)
	const size = 24 << 20
	if err := vm.Guest().WriteZeros("/big", size); err != nil {
		t.Fatal(err)
	}
	c := login(t, s)
	s.Advance(6 * time.Second)
	all := vpg.Checkpoints(s.Now().Add(-6*time.Second), s.Now())
	m := mounted{c, vpg, vm, c.mount(vpg, vm, all[len(all)-1].ID).text(t)}
	s.Advance(3 * time.Second)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+m.download(`"Volume1-Ext4/big"`).text(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var session struct{ NumberOfRelatedRunningTasks int }
	c.get("/v1/flrs/"+m.session).into(t, &session)
	if session.NumberOfRelatedRunningTasks != 1 {
		t.Errorf("running tasks while downloading = %d, want 1", session.NumberOfRelatedRunningTasks)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != size || resp.ContentLength != size {
		t.Errorf("read %d of %d: %v", n, resp.ContentLength, err)
	}
}
