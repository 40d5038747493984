package rewind_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/task"
	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// sent is what a server sends in place of guest data.
type sent struct {
	next      http.RoundTripper
	data      func() io.Reader
	announced int64 // -1: not announced
	read      atomic.Int64
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil || resp.Header.Get("Content-Disposition") == "" && !strings.Contains(resp.Header.Get("Content-Type"), "octet") {
		return resp, err
	}
	_ = resp.Body.Close()
	resp.Header.Del("Content-Length")
	resp.ContentLength = s.announced
	resp.Body = io.NopCloser(io.TeeReader(s.data(), counter{&s.read}))
	return resp, nil
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sending returns a session of a server that sends other data.
func (w *world) sending(t *testing.T, s *sent, sizes bool) *rewind.Session {
	t.Helper()
	s.next = &tamper{w.sim.Client().Transport, rows(t, func(rows []map[string]any) []map[string]any {
		for _, row := range rows {
			for field := range row {
				if !sizes && strings.EqualFold(field, "SizeInBytes") {
					delete(row, field)
				}
			}
		}
		return rows
	})}
	client, err := zvm.New(w.sim.URL(), zvm.Password(w.sim.Username(), w.sim.Password()), zvm.WithTransport(s))
	must(t, err)
	session, err := rewind.NewSession(client, rewind.WithSchedule(task.Schedule{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}))
	must(t, err)
	return session
}

// zipOf returns a zip of files given as name, content, name, content; a name that ends in a slash is a folder's.
func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := z.Create(files[i])
		must(t, err)
		_, err = io.WriteString(f, files[i+1])
		must(t, err)
	}
	must(t, z.Close())
	return b.Bytes()
}

// asLongAsItsZip mixes noise, which does not shrink, with zeros, which do.
func asLongAsItsZip(t *testing.T, name string) string {
	t.Helper()
	state, noise := uint32(1), make([]byte, 200)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = byte(state >> 24)
	}
	for n := range 600 {
		if content := string(noise) + string(make([]byte, n)); len(zipOf(t, name, content)) == len(content) {
			return content
		}
	}
	t.Fatal("no content is as long as its zip")
	return ""
}

func TestLaw8_WhatIsSentIsTheFileOrAnError(t *testing.T) {
	t.Parallel()
	const content = "what the file holds\n"
	archive := string(zipOf(t, "payload.txt", "what is inside"))
	selfNamed := string(zipOf(t, "data.bin", "what is inside"))
	coinciding := asLongAsItsZip(t, "data.bin")
	broken := bytes.Replace(zipOf(t, "data.bin", content), []byte("PK\x01\x02"), []byte("PK\x01\x03"), 1)
	for _, tt := range []struct {
		name   string
		file   string // the guest's
		sent   string
		failed bool
	}{
		{name: "the file", file: content, sent: content},
		{name: "an empty file", file: "", sent: ""},
		{name: "less", file: content, sent: content[1:], failed: true},
		{name: "more", file: content, sent: content + strings.Repeat("x", 10_000), failed: true},
		{name: "the file in a zip", file: content, sent: string(zipOf(t, "data.bin", content))},
		{name: "in a zip, with its folders", file: content, sent: string(zipOf(t, "srv/", "", "srv/data.bin", content))},
		{name: "in a zip, with all its folders", file: content, sent: string(zipOf(t, "Volume1-Ext4/srv/data.bin", content))},
		{name: "in a zip, under another name", file: content, sent: string(zipOf(t, "x", content)), failed: true},
		{name: "in a zip, of another folder", file: content, sent: string(zipOf(t, "../../b/data.bin", content)), failed: true},
		{name: "an empty file in a zip", file: "", sent: string(zipOf(t, "data.bin", ""))},
		{name: "less in a zip", file: content, sent: string(zipOf(t, "data.bin", content[1:])), failed: true},
		{name: "a zip that unpacks to more", file: content, sent: string(zipOf(t, "data.bin", string(make([]byte, 1<<20)))), failed: true},
		{name: "a zip of two files", file: content, sent: string(zipOf(t, "data.bin", content, "b", "b")), failed: true},
		{name: "a zip of none", file: content, sent: string(zipOf(t, "srv/", "")), failed: true},
		{name: "a zip that is cut", file: content, sent: string(zipOf(t, "data.bin", content)[:60]), failed: true},
		{name: "a zip that is broken", file: content, sent: string(broken), failed: true},
		{name: "a file that is a zip", file: archive, sent: archive},
		{name: "a file that is a zip of its own name", file: selfNamed, sent: selfNamed},
		{name: "a file that is a zip, in a zip", file: archive, sent: string(zipOf(t, "data.bin", archive))},
		{name: "in a zip as long as the file", file: coinciding, sent: string(zipOf(t, "data.bin", coinciding))},
	} {
		for how, announced := range map[string]int64{"announced": int64(len(tt.sent)), "not announced": -1} {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				must(t, w.web.Guest().WriteFile("/srv/data.bin", []byte(tt.file)))
				s := w.sending(t, &sent{data: func() io.Reader { return strings.NewReader(tt.sent) }, announced: announced}, true)
				g, err := s.Protect(t.Context(), "web01", rewind.Change{})
				must(t, err)
				var got bytes.Buffer
				r, err := s.Recover(t.Context(), g, "/srv/data.bin", rewind.ToWriter(&got))
				switch {
				case tt.failed && err == nil:
					t.Errorf("got %d bytes of %s without an error", r.Bytes, r.GuestPath)
				case tt.failed && got.Len() > len(tt.file)+1:
					t.Errorf("%d bytes were written for a file of %d", got.Len(), len(tt.file))
				case tt.failed:
				case err != nil:
					t.Errorf("got %v", err)
				default:
					if diff := cmp.Diff(tt.file, got.String()); diff != "" {
						t.Errorf("content (-want +got):\n%s", diff)
					}
				}
				w.nothingMounted(t)
			})
		}
	}
}

func TestLaw8_AServerThatDoesNotEndIsLeft(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{"file": "", "zip": "PK\x03\x04", "zip of the file's name": string(zipOf(t, "nginx.conf", goodConfig))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			endless := &sent{announced: -1, data: func() io.Reader {
				return io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, 1<<30))
			}}
			s := w.sending(t, endless, true)
			g, err := s.Protect(t.Context(), "web01", rewind.Change{})
			must(t, err)
			var got bytes.Buffer
			if _, err := s.Recover(t.Context(), g, nginxConf, rewind.ToWriter(&got)); err == nil {
				t.Error("got no error")
			}
			if got.Len() > len(goodConfig)+1 || endless.read.Load() > 1<<20 {
				t.Errorf("%d bytes were written and %d read for a file of %d", got.Len(), endless.read.Load(), len(goodConfig))
			}
			w.nothingMounted(t)
		})
	}
}

func TestLaw8_AZipOfAFileWithoutASizeIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent    string
		refused bool
	}{
		"a file":                           {"what it holds", false},
		"a zip":                            {string(zipOf(t, "payload.txt", "what is inside")), true},
		"a zip that holds the file's name": {string(zipOf(t, "data.bin", "what is inside")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			must(t, w.web.Guest().WriteFile("/srv/data.bin", []byte("x")))
			s := w.sending(t, &sent{data: func() io.Reader { return strings.NewReader(tt.sent) }, announced: -1}, false)
			g, err := s.Protect(t.Context(), "web01", rewind.Change{})
			must(t, err)
			var got bytes.Buffer
			_, err = s.Recover(t.Context(), g, "/srv/data.bin", rewind.ToWriter(&got))
			var refused *rewind.NotDownloadableError
			switch {
			case tt.refused && (!errors.As(err, &refused) || got.Len() > 0):
				t.Errorf("got %q, %v, want *NotDownloadableError", got.String(), err)
			case !tt.refused && (err != nil || got.String() != tt.sent):
				t.Errorf("got %q, %v", got.String(), err)
			}
			w.nothingMounted(t)
		})
	}
}
