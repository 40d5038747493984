package zvmtest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// outsideTheDocument lists the routes that the vendor's document leaves out,
// each with the section of the wire fact sheet that knows it.
var outsideTheDocument = map[string]string{
	"GET /auth/realms/{realm}/.well-known/openid-configuration": "zvm-wire 1.1, used to tell an appliance from Windows",
	"POST /v1/session/add":     "zvm-wire 1.1, 404 on an appliance",
	"GET /v1/downloads/{link}": "zvm-wire 6.5, where a download link leads",
}

// otherForms lists the answers whose form is another one than the document's.
var otherForms = map[string]string{
	"GET /v1/flrs/{id}":                          "zvm-wire 6.1, the help page has the object where the document has an array",
	"GET /v1/serverDateTime/serverDateTimeLocal": "zvm-wire 10.2, .NET writes a local time without a zone",
}

// documented brings such an answer into the document's form. One that has it
// already, by a switch, stays as it is.
func documented(name, body string) string {
	switch {
	case name == "GET /v1/flrs/{id}" && strings.HasPrefix(body, "{"):
		return "[" + body + "]"
	case name == "GET /v1/serverDateTime/serverDateTimeLocal":
		return strings.TrimSuffix(body, `"`) + `Z"`
	}
	return body
}

// extraFields lists what the wire carries beside the document, as "schema.field"
// in lower case.
var extraFields = map[string]string{
	"localsiteapi.siteidentifier":     "zvm-wire 2.1 and 8.1",
	"peersiteapi.siteidentifier":      "zvm-wire 2.1 and 8.2",
	"successtokenresult.id_token":     "zvm-wire 1.3, what Keycloak answers to scope=openid (OpenID Connect Core 3.1.3.3)",
	"taskapi.taskidentifier":          "zvm-wire 2.1 and 5.1",
	"vmapi.link_{0}":                  "zvm-wire 2.1 and 2.2",
	"vmapi.sourcesite":                "zvm-wire 2.1 and 2.2",
	"vmapi.targetsite":                "zvm-wire 2.1 and 2.2",
	"vmapi.vmidentifier":              "zvm-wire 2.1 and 2.2",
	"vmapi.vpgidentifier":             "zvm-wire 2.1 and 2.2",
	"vpgapi.link_{0}":                 "zvm-wire 2.1 and 2.6",
	"vpgapi.organizationname":         "zvm-wire 2.1 and 2.6",
	"vpgapi.serviceprofileidentifier": "zvm-wire 2.6",
	"vpgapi.serviceprofilename":       "zvm-wire 2.6",
	"vpgapi.sourcesite":               "zvm-wire 2.1 and 2.6",
	"vpgapi.targetsite":               "zvm-wire 2.1 and 2.6",
	"vpgapi.vpgidentifier":            "zvm-wire 2.1 and 2.6",
	"vpgentitiesapi.source":           "zvm-wire 2.2",
	"vpgentitiesapi.target":           "zvm-wire 2.2",
}

// formFields lists what the token form carries beside the document.
var formFields = map[string]string{
	"scope":         "zvm-wire 1.3, newer builds want openid",
	"refresh_token": "zvm-wire 1.2, the refresh grant",
	"client_secret": "zvm-wire 1.2, the client-credentials grant",
}

// usage is a list whose every row has to be needed.
type usage struct {
	rows map[string]string
	used map[string]bool
}

func newUsage(rows map[string]string) *usage { return &usage{rows, map[string]bool{}} }

func (u *usage) knows(row string) bool { return u.rows[row] != "" }

func (u *usage) use(row string) bool {
	u.used[row] = u.used[row] || u.knows(row)
	return u.knows(row)
}

func (u *usage) report(t *testing.T, what string) {
	t.Helper()
	for _, row := range slices.Sorted(maps.Keys(u.rows)) {
		switch {
		case !u.used[row]:
			t.Errorf("%s: nothing needs the row %s", what, row)
		case !strings.HasPrefix(u.rows[row], "zvm-wire "):
			t.Errorf("%s: the row %s names no source", what, row)
		}
	}
}
