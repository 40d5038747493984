package zvmtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// modelItem is an item of the plain model: its stored name and what it is.
type modelItem struct{ name, is string }

// model is a guest in the plainest form: items by their path, upper-cased where case does not count. Its states are
// whole copies.
type model struct {
	root     string
	fold     func(string) string
	items    map[string]modelItem
	stamps   []time.Time
	versions []map[string]string
}

// put makes what at path, with folders above it, unless something else is in the way.
func (m *model) put(path []string, is string) bool {
	for i := range path {
		key := m.fold(strings.Join(path[:i+1], "/"))
		wanted := "folder"
		if i == len(path)-1 {
			wanted = is
		}
		there, found := m.items[key]
		kind := func(is string) string { kind, _, _ := strings.Cut(is, " "); return kind }
		if found && (kind(there.is) != kind(wanted) || wanted == "link") {
			return false
		}
	}
	for i, name := range path {
		key := m.fold(strings.Join(path[:i+1], "/"))
		item, found := m.items[key]
		if !found {
			item = modelItem{name, "folder"}
		}
		if i == len(path)-1 {
			item.is = is
		}
		m.items[key] = item
	}
	return true
}

func (m *model) remove(path []string) bool {
	key := m.fold(strings.Join(path, "/"))
	_, found := m.items[key]
	maps.DeleteFunc(m.items, func(other string, _ modelItem) bool { return other == key || strings.HasPrefix(other, key+"/") })
	return found
}

// state spells every item out by its stored path.
func (m *model) state() map[string]string {
	all := map[string]string{m.root: "folder"}
	for key, item := range m.items {
		spelled := m.root
		elements := strings.Split(key, "/")
		for i := range elements {
			spelled += "/" + m.items[strings.Join(elements[:i+1], "/")].name
		}
		all[spelled] = item.is
	}
	return all
}

func (m *model) record(stamp time.Time) {
	m.stamps, m.versions = append(m.stamps, stamp), append(m.versions, m.state())
}

func (m *model) at(t time.Time) map[string]string {
	found := 0
	for i, stamp := range m.stamps {
		if !stamp.After(t) || stamp.Equal(m.stamps[0]) {
			found = i
		}
	}
	return m.versions[found]
}

// flatten is state for the real thing.
func flatten(tb testing.TB, t *tree) map[string]string {
	all := map[string]string{}
	var walk func(path string)
	walk = func(path string) {
		_, children, err := t.browse(path)
		done(tb, err)
		for _, child := range children {
			switch {
			case child.browsable:
				all[child.path] = "folder"
				walk(child.path)
			case child.downloadable:
				all[child.path] = "file " + contentOf(tb, t, child.path)
			default:
				all[child.path] = "link"
			}
		}
	}
	walk("")
	return all
}

func TestRandomChangesMatchAPlainModel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, mount string
		layout      Layout
		fold        func(string) string
	}{
		{"Linux", "/", LinuxLayout(), func(s string) string { return s }},
		{"Windows", "C:/", WindowsLayout(), strings.ToUpper},
	} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s/%d", tc.name, seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, 0))
				clock := &guestClock{guestEpoch}
				g := newGuest(clock.now)
				done(t, g.SetLayout(tc.layout))
				m := &model{root: tc.layout[0].Root, fold: tc.fold, items: map[string]modelItem{}}
				m.record(clock.t)
				names := []string{"a", "A", "b", "c d", "é", "É"}
				for step := range 200 {
					clock.advance(time.Duration(random.IntN(3)) * time.Second)
					path := make([]string, 1+random.IntN(3))
					for i := range path {
						path[i] = names[random.IntN(len(names))]
					}
					where := tc.mount + strings.Join(path, "/")
					var err error
					var expected bool
					switch random.IntN(6) {
					case 0, 1, 2:
						err = g.WriteFile(where, []byte(fmt.Sprint(step)))
						expected = m.put(path, fmt.Sprintf("file %d", step))
					case 3:
						err = g.Mkdir(where)
						expected = m.put(path, "folder")
					case 4:
						err = g.Symlink("x", where)
						expected = m.put(path, "link")
					case 5:
						err = g.Remove(where)
						expected = m.remove(path)
					}
					if (err == nil) != expected {
						t.Fatalf("step %d on %q: got %v, want success: %v", step, where, err, expected)
					}
					m.record(clock.t)
				}
				for moment := guestEpoch.Add(-time.Second); !moment.After(clock.t.Add(time.Second)); moment = moment.Add(1300 * time.Millisecond) {
					if want, got := m.at(moment), flatten(t, g.at(moment)); !maps.Equal(want, got) {
						expect(t, fmt.Sprintf("state at %v", moment), want, got)
					}
				}
			})
		}
	}
}

func TestItemSetStaysOrderedAndBalanced(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var set *itemSet
	plain := map[string]bool{}
	for step := range 4000 {
		key := fmt.Sprintf("%04d", random.IntN(600))
		if step > 3000 || random.IntN(3) == 0 {
			set = set.without(key)
			delete(plain, key)
		} else {
			set = set.with(key, key, nil)
			plain[key] = true
		}
		if step%100 == 0 {
			checkItemSet(t, set, slices.Sorted(maps.Keys(plain)))
		}
	}
	rising, falling := (*itemSet)(nil), (*itemSet)(nil)
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("%04d", i))
		rising = rising.with(keys[i], keys[i], nil)
		down := fmt.Sprintf("%04d", 999-i)
		falling = falling.with(down, down, nil)
	}
	checkItemSet(t, rising, keys)
	checkItemSet(t, falling, keys)
	checkItemSet(t, sortedItems(1000, func(i int) (string, string, *inode) { return keys[i], keys[i], nil }), keys)
}

func checkItemSet(t *testing.T, set *itemSet, want []string) {
	t.Helper()
	for _, offset := range []int{0, 1, len(want) / 2, len(want)} {
		var got []string
		for name := range set.from(offset) {
			got = append(got, name)
		}
		if !slices.Equal(want[min(offset, len(want)):], got) {
			t.Fatalf("from %d: want %q, got %q", offset, want[min(offset, len(want)):], got)
		}
	}
	var balanced func(e *itemSet) bool
	balanced = func(e *itemSet) bool {
		return e == nil || balanced(e.left) && balanced(e.right) && e.count == e.left.size()+e.right.size()+1 &&
			e.left.weight() <= maxWeightRatio*e.right.weight() && e.right.weight() <= maxWeightRatio*e.left.weight()
	}
	if set.size() != len(want) || !balanced(set) {
		t.Fatalf("a set of %d is out of balance or counts %d", len(want), set.size())
	}
}
