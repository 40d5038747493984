package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

// difference is what diff prints: that of the library, and on request what came to differ within text files.
type difference struct {
	*rewind.Difference

	Texts []textDiff `json:"texts,omitzero"`
}

// textDiff is what came to differ within one file, or why that is not shown.
type textDiff struct {
	Path    string `json:"path"`
	Unified string `json:"unified"`          // empty when it is not shown
	Reason  string `json:"reason,omitempty"` // why it is not
}

// takeTexts makes unified diffs of the contents in d, which it takes out of it.
func (d *difference) takeTexts(ctx context.Context) error {
	var all []versions
	for i := range d.Added {
		all = append(all, versions{d.Added[i].Path, nil, &d.Added[i].ItemState})
	}
	for i := range d.Removed {
		all = append(all, versions{d.Removed[i].Path, &d.Removed[i].ItemState, nil})
	}
	for i := range d.Changed {
		all = append(all, versions{d.Changed[i].Path, &d.Changed[i].Before, &d.Changed[i].After})
	}
	slices.SortFunc(all, func(a, b versions) int { return strings.Compare(a.path, b.path) })
	d.Texts = []textDiff{}
	for _, v := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if v.differ() {
			d.Texts = append(d.Texts, v.unified(cmp.Or(d.After.GuestPath, d.Before.GuestPath)))
		}
		for _, s := range []*rewind.ItemState{v.before, v.after} {
			if s != nil {
				s.Content = nil
			}
		}
	}
	return nil
}

// versions are what was seen of one item on both sides, nil on the one that does not have it.
type versions struct {
	path          string
	before, after *rewind.ItemState
}

// differ reports whether there is a file on one side whose content is not known to be the same on the other.
func (v versions) differ() bool {
	isFile := func(s *rewind.ItemState) bool { return s != nil && (s.SHA256 != "" || s.Type == "File") }
	same := v.before != nil && v.after != nil && v.before.SHA256 != "" && v.before.SHA256 == v.after.SHA256
	return !same && (isFile(v.before) || isFile(v.after))
}

// nameBelow is the name of what is at a path below top, which is "." for top itself: a single file that was compared.
func nameBelow(top, at string) string {
	if at == "." {
		return path.Base(top)
	}
	return at
}

func (v versions) unified(top string) textDiff {
	old, why := textOf(v.before)
	now, whyNot := textOf(v.after)
	if why = cmp.Or(why, whyNot); why != "" {
		return textDiff{Path: v.path, Reason: why}
	}
	name := nameBelow(top, v.path)
	from, to := "a/"+plain(name), "b/"+plain(name) // a guest's name must not forge a line
	if v.before == nil {
		from = "/dev/null"
	}
	if v.after == nil {
		to = "/dev/null"
	}
	unified, err := udiff.ToUnified(from, to, old, udiff.Lines(old, now), udiff.DefaultContextLines)
	if err != nil {
		return textDiff{Path: v.path, Reason: err.Error()}
	}
	return textDiff{Path: v.path, Unified: unified}
}

// textOf returns the text of a file, which is empty where there is none, or why it cannot be shown.
func textOf(s *rewind.ItemState) (text, why string) {
	switch {
	case s == nil:
		return "", ""
	case s.SHA256 == "":
		return "", cmp.Or(s.Unread, "it is not a file on both sides")
	case s.Content == nil && s.Bytes != nil && *s.Bytes > 0:
		return "", fmt.Sprintf("more than %d bytes came to differ", rewind.MaxDiffContents)
	case bytes.IndexByte(s.Content, 0) >= 0:
		return "", "it is binary"
	case !utf8.Valid(s.Content):
		return "", "it is not UTF-8 text"
	}
	return string(s.Content), ""
}

// show writes a diff's lines for reading: what a terminal would not print as it is, is escaped.
func (d textDiff) show(to *strings.Builder) {
	for line := range strings.Lines(d.Unified) {
		for i, cell := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				to.WriteByte('\t')
			}
			to.WriteString(plain(cell))
		}
		to.WriteByte('\n')
	}
}
