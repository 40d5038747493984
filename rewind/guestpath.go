package rewind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

// guestPath is a path as a person writes it, taken apart: "/etc/hosts", `C:\inetpub\web.config`, or a path that starts
// with a partition as the server spells it.
type guestPath struct {
	text  string
	drive string // "C", empty without a drive letter
	parts []string
}

func parseGuestPath(text string) (guestPath, error) {
	p := guestPath{text: text}
	rest := text
	windows := len(rest) >= 2 && rest[1] == ':' && isLetter(rest[0]) && (len(rest) == 2 || rest[2] == '\\' || rest[2] == '/')
	if windows {
		p.drive, rest = strings.ToUpper(rest[:1]), strings.ReplaceAll(rest[2:], `\`, "/")
	}
	for part := range strings.SplitSeq(rest, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return guestPath{}, fmt.Errorf("rewind: %q: a guest path may not hold %q", text, part)
		case strings.ContainsAny(part, "\\\x00"):
			return guestPath{}, fmt.Errorf("rewind: %q: backslashes separate only behind a drive letter", text)
		default:
			p.parts = append(p.parts, part)
		}
	}
	return p, nil
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// locate finds the one item that a guest path means, by browsing: paths in a session start with a partition, which is
// no mount point, and often no drive letter (zvm-wire 6.4, 13).
func (s *Session) locate(ctx context.Context, m mounted, p guestPath) (zvm.Item, error) {
	listing, err := s.zvm.BrowseFLR(ctx, m.session, "")
	if err != nil {
		return zvm.Item{}, fmt.Errorf("listing partitions: %w", err)
	}
	roots := listing.Items
	b := &browser{s: s, session: m.session, folders: map[string]zvm.Listing{}}
	var hits []zvm.Item
	for _, c := range candidates(roots, p) {
		item, found, err := b.walk(ctx, c.root, c.parts)
		if err != nil {
			return zvm.Item{}, err
		}
		if found && !slices.ContainsFunc(hits, func(h zvm.Item) bool { return h.Path == item.Path }) {
			hits = append(hits, item)
		}
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		missing := &PathNotFoundError{Path: p.text}
		for _, r := range roots {
			missing.Roots = append(missing.Roots, r.Path)
		}
		return zvm.Item{}, missing
	}
	ambiguous := &AmbiguousPathError{Path: p.text}
	for _, h := range hits {
		ambiguous.Hits = append(ambiguous.Hits, h.Path)
	}
	return zvm.Item{}, ambiguous
}

// candidate is one place to look at: a partition and the parts below it.
type candidate struct {
	root  zvm.Item
	parts []string
}

// candidates returns where a path may be. A partition that is named, or bears the drive letter, is the only one. Else
// the path may be on any partition, below any of its own folders that the partition may be mounted at.
func candidates(roots []zvm.Item, p guestPath) []candidate {
	if p.drive != "" {
		for _, r := range roots {
			if strings.EqualFold(strings.TrimSuffix(r.Path, ":"), p.drive) {
				return []candidate{{r, p.parts}}
			}
		}
	} else if len(p.parts) > 0 {
		for _, r := range roots {
			if r.Path == p.parts[0] || ignoresCase(r) && strings.EqualFold(r.Path, p.parts[0]) {
				return []candidate{{r, p.parts[1:]}}
			}
		}
	}
	var all []candidate
	for _, r := range roots {
		all = append(all, candidate{r, p.parts})
		if p.drive != "" || ignoresCase(r) {
			continue
		}
		for mountPoint := 1; mountPoint < len(p.parts); mountPoint++ {
			all = append(all, candidate{r, p.parts[mountPoint:]})
		}
	}
	return all
}

// ignoresCase tells a Windows file system by the partition's name: a drive letter or a label that says so.
func ignoresCase(root zvm.Item) bool {
	name := strings.ToUpper(root.Path)
	letter := strings.TrimSuffix(name, ":")
	return len(letter) == 1 && isLetter(letter[0]) ||
		strings.Contains(name, "NTFS") || strings.Contains(name, "FAT") || strings.Contains(name, "REFS")
}

// browser walks one session, listing each folder once.
type browser struct {
	s       *Session
	session zvm.SessionID
	folders map[string]zvm.Listing
}

// walk follows parts down from a partition, taking the server's own spelling. Exact names win over names in another
// case, which count only on Windows file systems, and only when there is one.
func (b *browser) walk(ctx context.Context, root zvm.Item, parts []string) (zvm.Item, bool, error) {
	at := root
	for _, part := range parts {
		if !at.Browsable {
			return zvm.Item{}, false, nil
		}
		folder, err := b.list(ctx, at.Path)
		if err != nil {
			return zvm.Item{}, false, err
		}
		items := folder.Items
		next := slices.IndexFunc(items, func(i zvm.Item) bool { return i.Name() == part })
		if next < 0 && ignoresCase(root) {
			next = slices.IndexFunc(items, func(i zvm.Item) bool { return strings.EqualFold(i.Name(), part) })
		}
		switch {
		case next < 0 && !folder.Complete:
			return zvm.Item{}, false, fmt.Errorf("%s: the server lists only %d of its items, and %q is not among them", at.Path, len(items), part)
		case next < 0:
			return zvm.Item{}, false, nil
		}
		at = items[next]
	}
	return at, true, nil
}

func (b *browser) list(ctx context.Context, path string) (zvm.Listing, error) {
	if listing, known := b.folders[path]; known {
		return listing, nil
	}
	listing, err := b.s.zvm.BrowseFLR(ctx, b.session, path)
	if err != nil {
		return zvm.Listing{}, fmt.Errorf("browsing %s: %w", path, err)
	}
	b.folders[path] = listing
	return listing, nil
}
