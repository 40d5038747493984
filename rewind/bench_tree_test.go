package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zerto-rewind/zerto-rewind/rewind"
	"github.com/zerto-rewind/zerto-rewind/zvm"
	"github.com/zerto-rewind/zerto-rewind/zvm/zvmtest"
)

// What BenchmarkTree brings back, in folders of a hundred files, from a ZVM that takes requestTime for each request: less
// than the way to an appliance in the next rack and its ingress take.
const (
	treeFiles   = 10_000
	filesEach   = 100
	requestTime = 2 * time.Millisecond
)

func treeWorld(b *testing.B, opts ...zvmtest.Option) (*zvm.Client, *rewind.Session, *rewind.Guard) {
	b.Helper()
	sim := benchSim(b, append(opts, zvmtest.WithProfile(zvmtest.Quick))...)
	vm := sim.AddVM("web01", sim.AddVPG("web", zvmtest.VPGConfig{}))
	for i := range treeFiles / filesEach {
		if err := vm.Guest().WriteManyFiles(fmt.Sprintf("/srv/many/%03d", i), filesEach); err != nil {
			b.Fatal(err)
		}
	}
	client, s := benchSession(b, sim)
	g, err := s.Protect(context.Background(), "web01", rewind.Change{})
	if err != nil {
		b.Fatal(err)
	}
	sim.On("", "/**").Always().Delay(requestTime)
	return client, s, g
}

// BenchmarkTree brings back a folder whole, and beside it, in the same run, one file after another as a client does that
// knows what is there: a link, its bytes, a file that is not synced.
func BenchmarkTree(b *testing.B) {
	for name, opts := range map[string][]zvmtest.Option{
		"several": nil,
		"single":  {zvmtest.WithSwitch(zvmtest.DownloadSeveralRefused)},
	} {
		b.Run(name, func(b *testing.B) {
			client, s, g := treeWorld(b, opts...)
			var tree, loop time.Duration
			for b.Loop() {
				root, err := os.OpenRoot(b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				r, err := s.RecoverTree(context.Background(), g, "/srv/many", root)
				tree += time.Since(began)
				if err != nil || len(r.Files) != treeFiles {
					b.Fatalf("%d files, %v", len(r.Files), err)
				}
				_ = root.Close()
				from := zvm.FLRTarget{VPG: r.VPGID, VM: r.VMID, Checkpoint: r.CheckpointID}
				loop += oneByOne(b, client, from, r.Files)
			}
			b.ReportMetric(loop.Seconds()/tree.Seconds(), "x_of_loop")
			b.ReportMetric(tree.Seconds()/float64(b.N), "s/tree")
			b.ReportMetric(loop.Seconds()/float64(b.N), "s/loop")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// oneByOne returns how long the files take one after another, the mount not counted.
func oneByOne(b *testing.B, client *zvm.Client, from zvm.FLRTarget, files []rewind.TreeFile) time.Duration {
	b.Helper()
	ctx, dir := context.Background(), b.TempDir()
	session, err := client.MountFLR(ctx, from)
	for ready := false; err == nil && !ready; {
		var now zvm.FLRSession
		now, err = client.GetFLRSession(ctx, session)
		ready = now.Ready()
	}
	began := time.Now()
	for i, f := range files {
		if err == nil {
			err = fetch(ctx, client, session, f.GuestPath, filepath.Join(dir, strconv.Itoa(i)))
		}
	}
	took := time.Since(began)
	if err == nil {
		_, err = client.UnmountFLR(ctx, session)
	}
	if err != nil {
		b.Fatal(err)
	}
	return took
}

func fetch(ctx context.Context, client *zvm.Client, session zvm.SessionID, path, dest string) error {
	data, err := client.DownloadFLR(ctx, session, path)
	if err != nil {
		return err
	}
	file, err := os.Create(dest)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data.Body)
	return errors.Join(err, file.Close(), data.Body.Close())
}
