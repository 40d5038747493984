package zvm

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
)

// Listing is what one folder holds.
type Listing struct {
	Items []Item
	// Complete is false when the server seems to hold back items: it answers every page with the same full one.
	Complete bool
}

// ErrIncomplete ends the items of a folder of which the server seems to hold back some.
var ErrIncomplete = errors.New("the server seems to hold back items of the folder")

const (
	browsePageSize = 1000 // what one request asks for
	// smallestPage is the fewest items that a server is thought to cut a list at.
	smallestPage = 50
	// mostPages bounds a server that never comes to an end.
	mostPages = 10_000
)

// BrowseFLR returns what one folder of a ready session holds; the empty path holds the partitions. A path uses "/" and
// the server's own spelling, and travels unescaped within the JSON body. One that no server is asked for is an error that
// matches [ErrSessionPath].
func (c *Client) BrowseFLR(ctx context.Context, id SessionID, path string) (Listing, error) {
	l := Listing{Complete: true}
	for item, err := range c.ItemsFLR(ctx, id, path) {
		switch {
		case errors.Is(err, ErrIncomplete):
			l.Complete = false
		case err != nil:
			return Listing{}, err
		default:
			l.Items = append(l.Items, item)
		}
	}
	return l, nil
}

// ItemsFLR is [Client.BrowseFLR] for folders of any size: it yields the items as their pages arrive and keeps no more than
// three pages. The first error ends it; [ErrIncomplete] comes after all that the server lists.
//
// Servers page in ways that are not documented (zvm-wire 6.4): pages may count from 0 or from 1, or be ignored. The
// first request names no page, the following ones go on for as long as they bring new items. An item is new when it is
// neither on the first page nor on the one before: what a session lists does not change.
func (c *Client) ItemsFLR(ctx context.Context, id SessionID, path string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		b := browsing{c: c, id: id, path: path}
		if err := b.all(ctx, func(i Item) bool { return yield(i, nil) }); err != nil && !errors.Is(err, errEnough) {
			yield(Item{}, err)
		}
	}
}

// errEnough says that whoever was given the items wants no more.
var errEnough = errors.New("enough")

// browsing reads the pages of one folder.
type browsing struct {
	c    *Client
	id   SessionID
	path string

	first, before map[string]bool
	complete      bool
}

func (b *browsing) all(ctx context.Context, yield func(Item) bool) error {
	page, err := b.c.browsePage(ctx, b.id, b.path, nil)
	if err != nil {
		return err
	}
	size := len(page)
	for _, i := range page {
		if !yield(i) {
			return errEnough
		}
	}
	if size < smallestPage {
		return nil
	}
	b.first, b.complete = pathsOf(page), true
	for number := 1; number <= mostPages; number++ {
		page, err := b.c.browsePage(ctx, b.id, b.path, &number)
		if refusesPage(err) {
			page, err = nil, nil
			b.complete = size < browsePageSize
		}
		if err != nil {
			return err
		}
		fresh, err := b.give(page, yield)
		if err != nil {
			return err
		}
		if fresh == 0 && number > 1 {
			if b.complete && (len(page) == 0 || size != browsePageSize) {
				return nil
			}
			return ErrIncomplete
		}
	}
	return ErrIncomplete
}

// give yields what is new on a page.
func (b *browsing) give(page []Item, yield func(Item) bool) (fresh int, err error) {
	now := make(map[string]bool, len(page))
	for _, i := range page {
		if b.first[i.Path] || b.before[i.Path] || now[i.Path] {
			continue
		}
		now[i.Path] = true
		fresh++
		if !yield(i) {
			return fresh, errEnough
		}
	}
	if fresh > 0 {
		b.before = now
	}
	return fresh, nil
}

func pathsOf(items []Item) map[string]bool {
	paths := make(map[string]bool, len(items))
	for _, i := range items {
		paths[i.Path] = true
	}
	return paths
}

// refusesPage reports whether a server answered that there is no such page, which some do behind the last one. Every other refusal
// is an error: it says nothing about where the folder ends.
func refusesPage(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound)
}

func (c *Client) browsePage(ctx context.Context, id SessionID, path string, number *int) ([]Item, error) {
	address, err := apiPath("v1", "flrs", string(id), "browse")
	if err != nil {
		return nil, err
	}
	if err := checkSessionPath(path); err != nil {
		return nil, err
	}
	cl := call{
		op: "BrowseFLR", method: http.MethodPost, path: address, safe: true,
		body: struct {
			Path   string `json:"path"`
			Number *int   `json:"pageNumber,omitempty"`
			Size   int    `json:"pageSize"`
		}{path, number, browsePageSize},
	}
	a, err := c.writeRaw(ctx, cl)
	if err != nil {
		return nil, err
	}
	var w struct{ PathItems []*wireItem }
	if err := json.Unmarshal(a.body, &w); err != nil {
		return nil, a.unusable(err)
	}
	items := make([]Item, 0, len(w.PathItems))
	for _, wi := range w.PathItems {
		if wi != nil && wi.Path != "" {
			items = append(items, wi.item(path))
		}
	}
	return items, nil
}
