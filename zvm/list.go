package zvm

import (
	"context"
	"encoding/json"
	"net/url"
)

// list reads a whole list of one kind of record, one at a time: convert turns the wire's form into ours, and keep
// drops what was not asked for. A null element is passed over; one that cannot be trusted fails the list.
func list[W, R any](ctx context.Context, c *Client, cl call, convert func(W) (R, error), keep func(R) bool) ([]R, error) {
	var records []R
	err := c.stream(ctx, cl, func(dec *json.Decoder) error {
		var w *W
		if err := dec.Decode(&w); err != nil || w == nil {
			return err
		}
		r, err := convert(*w)
		if err != nil {
			return &rowError{err}
		}
		if keep(r) {
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

func setNonEmpty(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
