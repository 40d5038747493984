package rewind

import (
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
	// rooted paths start with a slash or a drive letter. The others may start with a partition only.
	rooted bool
	parts  []string
}

func parseGuestPath(text string) (guestPath, error) {
	p := guestPath{text: text, rooted: strings.HasPrefix(text, "/")}
	rest := text
	windows := len(rest) >= 2 && rest[1] == ':' && isLetter(rest[0]) && (len(rest) == 2 || rest[2] == '\\' || rest[2] == '/')
	if windows {
		p.rooted, p.drive, rest = true, strings.ToUpper(rest[:1]), strings.ReplaceAll(rest[2:], `\`, "/")
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

// isTop reports whether the path means the list of partitions.
func (p guestPath) isTop() bool { return len(p.parts) == 0 && p.drive == "" }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// start is one place to begin looking at: an item at the top of a session, and the parts to follow from there.
type start struct {
	at    zvm.Item
	rest  []string
	named bool // the path names the item itself
	known bool // the path starts nowhere else
}

// starts returns where the path may begin. A partition that bears the drive letter is the only place; so is an item that
// the path names first, unless the path is rooted and may mean a folder of that name. Else it is any partition; known says
// that there is just one that it can be.
func (p guestPath) starts(top, partitions []zvm.Item, known bool, normal normalForm) []start {
	var places []start
	if p.drive == "" && len(p.parts) > 0 {
		for _, r := range normal.matching(top, p.parts[0], ignoresCase, true) {
			places = append(places, start{at: r, rest: p.parts[1:], named: true})
		}
		if len(places) > 0 && !p.rooted {
			return places
		}
	}
	for _, r := range partitions {
		switch letter := driveLetter(r); {
		case p.drive == "":
			places = append(places, start{at: r, rest: p.parts, known: known})
		case letter == p.drive:
			return []start{{at: r, rest: p.parts, known: true}}
		case letter == "" && !holdsLinux(r):
			places = append(places, start{at: r, rest: p.parts})
		}
	}
	return places
}

// normalForm is what makes names equal that look the same; nil leaves them as they are. See [WithNormalForm].
type normalForm func(string) string

func (n normalForm) of(name string) string {
	if n == nil {
		return name
	}
	return n(name)
}

// matching returns the items of a name. Names that are the same in normal form are all meant, unless the name is known to
// be in the server's spelling and one item has just that. They win over names in another case, which count only where case
// is ignored.
func (n normalForm) matching(items []zvm.Item, name string, ignoresCase func(zvm.Item) bool, spelt bool) []zvm.Item {
	var exact, alike, folded []zvm.Item
	normal := n.of(name)
	for _, i := range items {
		own := n.of(i.Name())
		if i.Name() == name {
			exact = append(exact, i)
		}
		switch {
		case own == normal:
			alike = append(alike, i)
		case strings.EqualFold(own, normal) && ignoresCase(i):
			folded = append(folded, i)
		}
	}
	switch {
	case spelt && len(exact) > 0:
		return exact
	case len(alike) > 0:
		return alike
	}
	return folded
}

// driveLetter returns the letter that a partition bears as its name, empty when it bears none (zvm-wire 13).
func driveLetter(partition zvm.Item) string { return letterOf(partition.Name()) }

func letterOf(name string) string {
	name = strings.ToUpper(strings.TrimSuffix(name, ":"))
	if len(name) == 1 && isLetter(name[0]) {
		return name
	}
	return ""
}

// ignoresCase tells a Windows file system by the partition's name: a drive letter or a label that says so.
func ignoresCase(partition zvm.Item) bool {
	return driveLetter(partition) != "" || labelled(partition, "NTFS", "FAT", "REFS")
}

// holdsLinux tells a file system that has no drive letter by the partition's label.
func holdsLinux(partition zvm.Item) bool { return labelled(partition, "EXT", "XFS", "BTRFS") }

func labelled(partition zvm.Item, labels ...string) bool {
	name := strings.ToUpper(partition.Name())
	return slices.ContainsFunc(labels, func(l string) bool { return strings.Contains(name, l) })
}
