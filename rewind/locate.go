package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// mostMounts bounds how many mount points one path leads through, and with them the orders of partitions to try.
const mostMounts = 4

// locate finds the one item that a guest path means, by browsing: paths in a session start with a partition, which is
// no mount point, and often no drive letter (zvm-wire 6.4, 13).
//
// Where a partition is mounted is not told, so the path is followed as the guest would follow it, from every partition
// that may be its "/". What another partition holds counts only behind a folder that may be a mount point, which is an
// empty one: a folder that holds anything answers for itself. An empty folder in which nothing is mounted cannot be told
// from a mount point; the path of the item found says where it was.
//
// Anything that leaves a choice is an [*AmbiguousPathError]: a second hit, what may lie on a mount point that hides files,
// and another partition that has the path's first folder but not the rest, or that cannot be read. A [*PathNotFoundError]
// says whether it is evidence that there is no such item; see [finder.missing].
func (m mounted) locate(ctx context.Context, p guestPath) (zvm.Item, error) {
	f := &finder{path: p, browser: browser{m: m, folders: map[string]zvm.Listing{}}}
	top, err := f.list(ctx, "")
	if err != nil {
		return zvm.Item{}, err
	}
	if !top.Complete {
		return zvm.Item{}, errors.New("what the server lists of the partitions is not all there are")
	}
	for _, i := range top.Items {
		if i.Type != "Disk" || !i.Browsable {
			f.partitions = append(f.partitions, i)
			continue
		}
		disk, err := f.list(ctx, i.Path)
		if err != nil {
			return zvm.Item{}, err
		}
		if !disk.Complete {
			return zvm.Item{}, fmt.Errorf("what the server lists of the partitions of %s is not all there are", i.Path)
		}
		f.partitions = append(f.partitions, disk.Items...)
	}
	starts, err := f.starts(ctx, top.Items)
	if err != nil {
		return zvm.Item{}, err
	}
	for _, start := range starts {
		w := way{
			partition: start.at, stays: start.named || p.drive != "", named: f.vouched(start), known: start.known,
			spelt: start.named && m.partition == "",
		}
		if err := f.follow(ctx, w, start.at, start.rest); err != nil {
			return zvm.Item{}, err
		}
	}
	if len(f.hits)+len(f.hidden) == 0 {
		return zvm.Item{}, f.missing(ctx, starts)
	}
	return f.answer()
}

// finder looks for one path in one session.
type finder struct {
	browser

	path       guestPath
	partitions []zvm.Item
	// hits are where the path leads to. Hidden ones lie behind a folder that is no mount point unless it hides files, or on
	// a partition that may rather be the path's first: they make a hit doubtful, and are never taken by themselves.
	hits, hidden []zvm.Item
	// contested is true once a partition had the path's first folder but not the rest, or could not be read: it may be the
	// one that is meant.
	contested bool
	// ends are the folders in which the path ended. It is settled that it leads nowhere once one of them has to hold the next
	// part. Blocked is an item on the way of which that cannot be told.
	ends    []string
	settled bool
	blocked *zvm.Item
}

// way is how one place was come to.
type way struct {
	partition zvm.Item
	above     []string // the partitions that were left at a mount point
	stays     bool     // whoever asked named the partition, or its drive
	named     bool     // whoever asked named the partition, and can have meant nothing else
	spelt     bool     // the path itself did: it is in the server's spelling
	known     bool     // the path starts on the partition beyond doubt, and it was not left since
	hidden    bool
}

// starts returns where to begin looking: on the partition that was named, or wherever the path may begin.
func (f *finder) starts(ctx context.Context, top []zvm.Item) ([]start, error) {
	if f.m.partition != "" {
		partition, err := f.named(f.m.partition)
		f.partitions = []zvm.Item{partition}
		return []start{{at: partition, rest: f.path.parts, named: true}}, err
	}
	roots, known, err := f.roots(ctx)
	return f.path.starts(top, roots, known, f.m.at.normal), err
}

// named finds one partition by its path, its name, or the drive letter that it bears.
func (f *finder) named(wanted string) (zvm.Item, error) {
	found := slices.DeleteFunc(slices.Clone(f.partitions), func(p zvm.Item) bool { return p.Path != wanted })
	if len(found) == 0 {
		found = f.m.at.normal.matching(f.partitions, wanted, ignoresCase, true)
	}
	if letter := letterOf(wanted); len(found) == 0 && letter != "" {
		found = slices.DeleteFunc(slices.Clone(f.partitions), func(p zvm.Item) bool { return driveLetter(p) != letter })
	}
	switch {
	case len(found) > 1:
		return zvm.Item{}, &AmbiguousPathError{Path: wanted, Hits: pathsOf(found)}
	case len(found) == 0, f.path.drive != "" && driveLetter(found[0]) != "" && driveLetter(found[0]) != f.path.drive:
		return zvm.Item{}, &PartitionNotFoundError{Path: f.path.text, Partition: wanted, Partitions: pathsOf(f.partitions)}
	}
	return found[0], nil
}

func pathsOf(items []zvm.Item) []string {
	paths := make([]string, len(items))
	for i, item := range items {
		paths[i] = item.Path
	}
	return paths
}

func distinct(items []zvm.Item) []string {
	paths := pathsOf(items)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// linuxRoot are folders that every Linux system keeps at its "/", the last three as empty ones.
var linuxRoot = []string{"etc", "dev", "proc", "sys"}

// roots returns the partitions that the path may start on: the one that looks like a Linux "/", if there is just one, and
// all of them otherwise. It is known where the path starts in the first case.
func (f *finder) roots(ctx context.Context) (roots []zvm.Item, known bool, err error) {
	if f.path.drive != "" {
		return f.partitions, false, nil
	}
	for _, p := range f.partitions {
		if !p.Browsable || ignoresCase(p) {
			continue
		}
		top, err := f.list(ctx, p.Path)
		if err != nil {
			return nil, false, err
		}
		lacks := func(name string) bool {
			return !slices.ContainsFunc(top.Items, func(i zvm.Item) bool { return i.Browsable && i.Name() == name })
		}
		if !slices.ContainsFunc(linuxRoot, lacks) {
			roots = append(roots, p)
		}
	}
	if len(roots) != 1 {
		return f.partitions, false, nil
	}
	return roots, true, nil
}

func (f *finder) follow(ctx context.Context, w way, at zvm.Item, rest []string) error {
	if at.Type == "Partition" {
		w.partition = at
	}
	switch inside := at.Path != w.partition.Path; {
	case len(rest) == 0 && w.hidden:
		f.hidden = append(f.hidden, at)
		return nil
	case len(rest) == 0:
		f.hits = append(f.hits, at)
		return nil
	case !at.Browsable:
		f.contested = f.contested || !w.hidden && (inside || len(w.above) == 0)
		f.stop(w, at, inside)
		return nil
	default:
		return f.enter(ctx, w, at, rest, inside)
	}
}

func (f *finder) enter(ctx context.Context, w way, at zvm.Item, rest []string, inside bool) error {
	folder, err := f.list(ctx, at.Path)
	if err != nil {
		return err
	}
	// A path that starts with a partition is spelt as the server lists it, and told apart as it is.
	next := f.m.at.normal.matching(folder.Items, rest[0], func(zvm.Item) bool { return ignoresCase(w.partition) }, w.spelt)
	if len(next) == 0 && !folder.Complete {
		return fmt.Errorf("%s: what the server lists is not all it holds, and %q is not among it", at.Path, rest[0])
	}
	empty := len(folder.Items) == 0
	if len(next) == 0 && !w.hidden {
		f.ends = append(f.ends, at.Path)
		f.settled = f.settled || w.named || !empty && (w.known || inside && len(rest) == 1)
	}
	for _, item := range next {
		if err := f.follow(ctx, w, item, rest[1:]); err != nil {
			return err
		}
	}
	if !inside {
		return nil
	}
	known := len(f.hits)
	if empty || len(next) > 0 {
		if err := f.cross(ctx, w, rest, empty); err != nil {
			return err
		}
	}
	if len(next) == 0 && len(f.hits) == known && !w.hidden {
		f.contested = true
	}
	return nil
}

// cross goes on in the partitions that may be mounted where w has come to.
func (f *finder) cross(ctx context.Context, w way, rest []string, empty bool) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if w.stays || len(w.above) == mostMounts || ignoresCase(w.partition) {
		return nil
	}
	above := append(slices.Clip(w.above), w.partition.Path)
	for _, p := range f.partitions {
		if slices.Contains(above, p.Path) {
			continue
		}
		elsewhere, err := f.holdsStart(ctx, p)
		if err != nil {
			return err
		}
		if elsewhere && !empty {
			continue
		}
		beyond := way{partition: p, above: above, hidden: w.hidden || !empty || elsewhere}
		if err := f.follow(ctx, beyond, p, rest); err != nil {
			return err
		}
	}
	return nil
}

// holdsStart reports whether a partition has the path's first folder with anything in it. It is rather not mounted below
// that folder then, unless it has one of the same name as its mount point.
func (f *finder) holdsStart(ctx context.Context, partition zvm.Item) (bool, error) {
	if !partition.Browsable {
		return false, nil
	}
	top, err := f.list(ctx, partition.Path)
	if err != nil {
		return false, err
	}
	for _, i := range f.m.at.normal.matching(top.Items, f.path.parts[0], func(zvm.Item) bool { return false }, false) {
		if !i.Browsable {
			continue
		}
		folder, err := f.list(ctx, i.Path)
		if err != nil || len(folder.Items) > 0 {
			return true, err
		}
	}
	return false, nil
}

func (f *finder) answer() (zvm.Item, error) {
	places := distinct(slices.Concat(f.hits, f.hidden))
	if len(places) > 1 || f.contested || len(f.hits) == 0 {
		return zvm.Item{}, &AmbiguousPathError{Path: f.path.text, Hits: places}
	}
	return f.hits[0], nil
}

// browser walks one session, listing each folder once.
type browser struct {
	m       mounted
	folders map[string]zvm.Listing
}

func (b *browser) list(ctx context.Context, path string) (zvm.Listing, error) {
	if listing, known := b.folders[path]; known {
		return listing, nil
	}
	listing, err := b.m.listFolder(ctx, path)
	if err != nil {
		return zvm.Listing{}, err
	}
	b.folders[path] = listing
	return listing, nil
}

// listFolder lists one folder, or the top of a session for the empty path. A row of another folder is not an item of this
// one: it is left out, and the listing is not complete then. One path in two different rows is an error.
func (m mounted) listFolder(ctx context.Context, path string) (zvm.Listing, error) {
	listing, err := m.at.zvm.BrowseFLR(ctx, m.session, path)
	if err != nil {
		return zvm.Listing{}, browsing(path, err)
	}
	own := zvm.Listing{Complete: listing.Complete}
	rows := make(map[string]zvm.Item, len(listing.Items))
	for _, i := range listing.Items {
		first, again := rows[i.Path]
		switch {
		case !isIn(path, i):
			own.Complete = false
		case again && (first.Size != i.Size || first.Browsable != i.Browsable || first.Downloadable != i.Downloadable):
			return zvm.Listing{}, fmt.Errorf("the server lists %s twice, as different items", i.Path)
		case !again:
			rows[i.Path] = i
			own.Items = append(own.Items, i)
		}
	}
	return own, nil
}

// eachItem is listFolder for a folder of any size. A path that comes twice is not noticed.
func (m mounted) eachItem(ctx context.Context, path string, each func(zvm.Item) error) (complete bool, err error) {
	complete = true
	for i, err := range m.at.zvm.ItemsFLR(ctx, m.session, path) {
		switch {
		case errors.Is(err, zvm.ErrIncomplete):
			return false, nil
		case err != nil:
			return false, browsing(path, err)
		case !isIn(path, i):
			complete = false
			continue
		}
		if err := each(i); err != nil {
			return false, err
		}
	}
	return complete, nil
}

func browsing(path string, err error) error {
	if path == "" {
		return fmt.Errorf("listing partitions: %w", err)
	}
	return fmt.Errorf("browsing %s: %w", path, err)
}

// isIn reports whether a row is an item of the folder that was asked for.
func isIn(folder string, i zvm.Item) bool {
	return (folder == "" || i.Path == folder+"/"+i.Name()) && !slices.Contains([]string{"", ".", ".."}, i.Name())
}
