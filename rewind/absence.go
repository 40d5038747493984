package rewind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// stop takes in an item on the path's way that is not a folder to read. A file ends the way for certain. What a link leads
// to is not shown, nor what a partition holds that cannot be read.
func (f *finder) stop(w way, at zvm.Item, inside bool) {
	switch {
	case inside && at.Downloadable:
		f.settled = f.settled || !w.hidden
	case f.blocked == nil && (inside || !w.hidden):
		f.blocked = &at
	}
}

// missing is the answer for a path that leads nowhere. Putting a file back "as it was" removes it where it was not there,
// so that this is evidence only when
//
//   - no partition holds the end of the path, which it would wherever below the path it is mounted: over a folder that
//     holds files, or in a partition that is not listed; and
//   - a folder was read that has to hold the next part and does not: one that holds anything, as mount points do not, and
//     that either lies on the partition where the path starts beyond doubt or is the very folder of the item; and
//   - nothing on the way was closed to reading.
//
// Who names the partition vouches for the second; a rooted path names none for certain.
func (f *finder) missing(ctx context.Context, starts []start) error {
	missing := &PathNotFoundError{Path: f.path.text, Roots: pathsOf(f.partitions)}
	if len(missing.Roots) == 0 {
		return missing
	}
	if err := f.followEnds(ctx, starts); err != nil {
		return err
	}
	doubt := ""
	switch {
	case len(f.hidden) > 0:
		doubt = "it may be " + strings.Join(distinct(f.hidden), ", ")
	case f.blocked != nil:
		doubt = fmt.Sprintf("%s cannot be looked into, or is a link to what is not shown", f.blocked.Path)
	case !f.settled:
		doubt = "no folder was found that would have to hold it, and where partitions are mounted is not told"
		missing.ends = f.ends
	}
	if doubt != "" {
		missing.Doubt = &AmbiguousPathError{Path: f.path.text, Hits: distinct(f.hidden), Doubt: doubt}
	}
	return missing
}

// vouched reports whether whoever asked said that this is where to look.
func (f *finder) vouched(s start) bool { return s.named && (f.m.partition != "" || !f.path.rooted) }

// unless returns why a path may be there although it was not found, given where the same path leads at another checkpoint
// of the VM, which may be nowhere: a folder of that place that was read here has to hold it.
func (e *PathNotFoundError) unless(found string) error {
	if e == nil || e.Doubt == nil || slices.ContainsFunc(e.ends, func(end string) bool { return strings.HasPrefix(found, end+"/") }) {
		return nil
	}
	return e.Doubt
}

// followEnds looks on every partition for what is left of the path behind each folder that it may be mounted at. A drive
// of its own is mounted at none, nor is the partition on which the path starts beyond doubt. A named one is, if it lacks the
// path's first folder: it may be named as the one that is mounted there.
func (f *finder) followEnds(ctx context.Context, starts []start) error {
	known := map[string]bool{}
	for _, s := range starts {
		known[s.at.Path] = s.known
		switch {
		case f.vouched(s) && f.m.partition == "":
			return nil
		case f.vouched(s) && s.at.Browsable && len(s.rest) > 0:
			top, err := f.list(ctx, s.at.Path)
			if err != nil {
				return err
			}
			known[s.at.Path] = len(f.m.at.normal.matching(top.Items, s.rest[0], func(zvm.Item) bool { return ignoresCase(s.at) }, false)) > 0
		}
	}
	for _, p := range f.partitions {
		if known[p.Path] || driveLetter(p) != "" {
			continue
		}
		for n := 1; n < len(f.path.parts); n++ {
			if err := f.follow(ctx, way{partition: p, stays: true, hidden: true}, p, f.path.parts[n:]); err != nil {
				return err
			}
		}
	}
	return nil
}
