package zvm

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Site is a Zerto site (zvm-wire 8).
type Site struct {
	ID      SiteID
	Name    string
	Version string // shown, never decided on
	Type    string
}

// SiteRef is how a VM or VPG names one of its two sites.
type SiteRef struct {
	ID   SiteID
	Name string
}

func siteRef(l *link, names ...string) SiteRef {
	ref := SiteRef{ID: l.site()}
	for _, n := range names {
		if n != "" {
			ref.Name = n
			break
		}
	}
	return ref
}

// GetLocalSite returns the site of the ZVM this client talks to.
func (c *Client) GetLocalSite(ctx context.Context) (Site, error) {
	cl := call{op: "GetLocalSite", method: http.MethodGet, path: "/v1/localsite"}
	var w struct {
		SiteIdentifier, SiteName, Version, SiteType string
		Link                                        *link
	}
	x, err := c.look(ctx, cl, &w)
	if err != nil {
		return Site{}, err
	}
	id, err := oneID("site", w.SiteIdentifier, string(w.Link.site()))
	if err != nil {
		return Site{}, x.senseless(err)
	}
	return Site{ID: SiteID(id), Name: w.SiteName, Version: w.Version, Type: w.SiteType}, nil
}

// GetServerTime returns the server's clock (zvm-wire 4.2). Windows of journal time are built from it, never from the
// local clock.
func (c *Client) GetServerTime(ctx context.Context) (time.Time, error) {
	cl := call{op: "GetServerTime", method: http.MethodGet, path: "/v1/serverDateTime/serverDateTimeUtc"}
	var t Time
	x, err := c.look(ctx, cl, &t)
	if err != nil {
		return time.Time{}, err
	}
	if t.IsZero() {
		return time.Time{}, x.senseless(errors.New("the answer is not a date"))
	}
	return t.Time, nil
}
