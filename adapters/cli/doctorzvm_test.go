package cli

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestRolesAreThoseOfTheToken(t *testing.T) {
	t.Parallel()
	token := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	for name, tt := range map[string]struct {
		token  string
		roles  []string
		told   bool
		result finding
	}{
		"an administrator": {token(`{"realm_access":{"roles":["offline_access","admin","default-roles-zerto"]}}`), []string{"admin"}, true, checkOK},
		"a viewer":         {token(`{"realm_access":{"roles":["viewer","uma_authorization"]}}`), []string{"viewer"}, true, checkWarn},
		"no roles":         {token(`{"realm_access":{"roles":[]}}`), []string{}, true, checkWarn},
		"no claim":         {token(`{}`), nil, false, checkSkipped},
		"no JSON":          {token(`x`), nil, false, checkSkipped},
		"no base64":        {"a.*.c", nil, false, checkSkipped},
		"opaque":           {"MARKER-token", nil, false, checkSkipped},
		"none":             {"", nil, false, checkSkipped},
	} {
		keeper := newTokenKeeper()
		keeper.kept.Access = zvm.Secret(tt.token)
		roles, told := keeper.roles()
		if diff := cmp.Diff(tt.roles, roles); diff != "" || told != tt.told {
			t.Errorf("%s: told %t, roles (-want +got):\n%s", name, told, diff)
		}
		d := &diagnosis{}
		d.checkRoles(t.Context(), keeper)
		if d.Checks[0].Result != tt.result {
			t.Errorf("%s: %+v", name, d.Checks[0])
		}
	}
}
