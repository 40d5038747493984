package mcpadapter_test

import (
	"testing"

	"github.com/zerto-rewind/zerto-rewind/rewind"
)

const findTool = "zerto_find_protection"

type protection struct {
	rewind.Protection

	Protected bool
	NextStep  string
}

func TestFindProtectionSaysWhetherAChangeCanBeGuarded(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		w := newWorld(t)
		client := w.connect(t, era)
		p := call[protection](t, client, findTool, args{"vm": "WEB01"})
		if string(p.VM.ID) != w.vm.ID() || !p.Protected || len(p.VPGs) != 1 || p.NextStep == "" {
			t.Errorf("result = %+v", p)
		}
		w.vpg.BitmapSync(true)
		p = call[protection](t, client, findTool, args{"vm": "web01"})
		if p.Protected || p.VPGs[0].Reason == "" {
			t.Errorf("result in bitmap sync = %+v", p)
		}
		f := refusedCall(t, client, guardTool, args{"vm": "web01", "action": "x"})
		if f.Code != "not_protected" || len(f.VPGs) != 1 || f.VPGs[0].Reason == "" {
			t.Errorf("guard in bitmap sync: %+v", f)
		}
	})
}

func TestFindProtectionOfAnUnknownVMIsRefused(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, era string) {
		if f := refusedCall(t, newWorld(t).connect(t, era), findTool, args{"vm": "web99"}); f.Code != "not_found" {
			t.Errorf("refusal = %+v", f)
		}
	})
}
