package zvmtest

import (
	"os"
	"strings"
	"testing"
)

func TestEverySwitchIsNamedAndInTheTable(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("switches.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(source), "type Switch int")
	for sw := Switch(1); int(sw) < len(switchTable); sw++ {
		name := sw.String()
		if name == "" || !strings.Contains(string(source), "\t"+name+" ") && !strings.Contains(string(source), "\t"+name+"\n") {
			t.Errorf("switch %d has the name %q", int(sw), name)
		}
		// The table writes "UnauthorizedMessage, -HTML" for two of them.
		if !strings.Contains(doc, name) && !hasShortForm(doc, name) {
			t.Errorf("%s is not in the documented table", name)
		}
	}
	if got := Switch(99).String(); got != "Switch(99)" {
		t.Errorf("unknown switch = %s", got)
	}
	if n := len(Switches()); n != len(switchTable)-1 {
		t.Errorf("Switches lists %d of %d", n, len(switchTable)-1)
	}
}

func hasShortForm(doc, name string) bool {
	for i := range name {
		if strings.Contains(doc, "-"+name[i:]+" ") || strings.Contains(doc, "-"+name[i:]+",") {
			return true
		}
	}
	return false
}

func TestHostileSwitchesAreSurvivableAndDecidedByTheSeed(t *testing.T) {
	t.Parallel()
	seen := map[Switch]bool{}
	for seed := range uint64(200) {
		first, again := hostile(t, seed), hostile(t, seed)
		for _, sw := range Switches() {
			if first.has(sw) != again.has(sw) {
				t.Errorf("seed %d turns %v now and then", seed, sw)
			}
			seen[sw] = seen[sw] || first.has(sw)
		}
		if !first.has(CheckpointsShuffled) || first.has(CheckpointsDescending) {
			t.Errorf("seed %d turned what the caller had chosen", seed)
		}
	}
	for _, sw := range Switches() {
		info, _ := sw.info()
		if seen[sw] == info.apart && sw != CheckpointsDescending {
			t.Errorf("%v: apart %v, turned by some seed %v", sw, info.apart, seen[sw])
		}
	}
}

func hostile(t *testing.T, seed uint64) config {
	t.Helper()
	s, err := New(WithSeed(seed), WithProfile(Hostile), WithSwitch(CheckpointsShuffled))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.cfg.checkSwitches(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	return s.cfg
}

func TestRealisticInsertTimesFollowTheSeed(t *testing.T) {
	t.Parallel()
	times := func(seed uint64) (all []float64) {
		s, err := New(WithProfile(Realistic), WithSeed(seed))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := range 100 {
			d := s.cfg.insertTime(n).Seconds()
			if d < 1 || d > 30 {
				t.Errorf("insert %d takes %g s", n, d)
			}
			all = append(all, d)
		}
		return all
	}
	one, same, other := times(1), times(1), times(2)
	if one[0] != same[0] || one[0] == other[0] || one[0] == one[1] {
		t.Errorf("times = %g, %g, %g", one[:2], same[0], other[0])
	}
}
