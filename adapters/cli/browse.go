package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

func (a *app) browse() *cobra.Command {
	var from target
	c := a.command(cobra.Command{
		Use:   "browse --change ID [--vm VM] [--partition NAME] PATH",
		Short: "List a folder of a VM as it was at the tagged checkpoint of a change",
		Long: `Browse mounts the VM from the change's tagged checkpoint by file-level recovery, lists one folder, and closes the
session. The path "/" lists the partitions, and with --partition what is at the top of that one.` + recoverySiteHelp,
		Args: exactly("PATH"),
	}, 30*time.Minute, func(ctx context.Context, args []string) error {
		session, guard, err := a.findGuard(ctx, from)
		if err != nil {
			return err
		}
		if !a.json {
			return a.browsePages(ctx, session, guard, args[0], from.options())
		}
		listing, err := session.Browse(ctx, guard, args[0], from.options()...)
		if listing == nil {
			return err
		}
		a.warnIncomplete(listing)
		return errors.Join(a.document(listing), err)
	})
	from.guardFlags(c)
	from.fileFlags(c)
	a.recoverySiteFlag(c)
	return c
}

// browsePages prints a folder as it arrives: it may hold more than fits in memory.
func (a *app) browsePages(ctx context.Context, session *rewind.Session, guard *rewind.Guard, path string, opts []rewind.PlaceOption) error {
	p := pages{to: a.io.Out}
	listing, err := session.BrowseEach(ctx, guard, path, p.add, opts...)
	if listing == nil {
		return errors.Join(p.print(), err)
	}
	a.warnIncomplete(listing)
	if len(listing.Items) == 1 {
		t := &table{}
		t.row(listing.GuestPath + " is a file, " + size(listing.Items[0]) + " bytes; use recover")
		_, printed := io.WriteString(a.io.Out, t.String())
		return errors.Join(printed, err)
	}
	return errors.Join(p.end(), err)
}

func (a *app) warnIncomplete(l *rewind.Listing) {
	if !l.Complete {
		a.log.Warn("the server seems to hold back items of this folder")
	}
}

// pageRows is how many rows share the widths of their columns.
const pageRows = 1000

// pages prints rows a page at a time.
type pages struct {
	to     io.Writer
	rows   []rewind.ListedItem
	titled bool
}

func (p *pages) add(i rewind.ListedItem) error {
	p.rows = append(p.rows, i)
	if len(p.rows) < pageRows {
		return nil
	}
	return p.print()
}

func (p *pages) end() error {
	if len(p.rows) == 0 && !p.titled {
		_, err := io.WriteString(p.to, "empty folder\n")
		return err
	}
	return p.print()
}

func (p *pages) print() error {
	if len(p.rows) == 0 {
		return nil
	}
	t := &table{}
	if !p.titled {
		p.titled = true
		titles := []string{"TYPE", "BYTES", "WRITTEN", "NAME"}
		if slices.ContainsFunc(p.rows, func(i rewind.ListedItem) bool { return note(i) != "" }) {
			titles = append(titles, "NOTE")
		}
		t.row(titles...)
	}
	for _, i := range p.rows {
		written := "-"
		if i.Written != nil {
			written = moment(*i.Written)
		}
		t.row(i.Type, size(i), written, i.Name, note(i))
	}
	p.rows = p.rows[:0]
	_, err := io.WriteString(p.to, t.String())
	return err
}

func size(i rewind.ListedItem) string {
	if i.Bytes == nil {
		return "-"
	}
	return strconv.FormatInt(*i.Bytes, 10)
}

func note(i rewind.ListedItem) string {
	if i.Downloadable || i.Reason == "" {
		return ""
	}
	return "not downloadable: " + i.Reason
}
