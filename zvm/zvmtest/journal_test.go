package zvmtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// modelled is a journal beside a plain list that says what it has to show.
type modelled struct {
	journal
	now     time.Time
	shown   []checkpoint
	gap     bool
	nextTag int
}

func (m *modelled) step(rng *rand.Rand) string {
	before := m.now
	m.now = m.now.Add(time.Duration(1+rng.IntN(40)) * time.Second)
	for k := int64(0); m.interval > 0; k++ {
		at := m.epoch.Add(time.Duration(k) * m.interval)
		if at.After(m.now) {
			break
		}
		if at.After(before) && !m.gap {
			m.shown = append(m.shown, checkpoint{id: m.firstID + k*idStride, at: at})
		}
	}
	action := "wait"
	switch rng.IntN(8) {
	case 0:
		action = "gap"
		if m.gap {
			m.gaps[len(m.gaps)-1].to = m.now
		} else {
			m.gaps = append(m.gaps, span{from: m.now})
		}
		m.gap = !m.gap
		// A checkpoint of this very moment belongs to what begins now.
		m.shown = slices.DeleteFunc(m.shown, func(c checkpoint) bool { return c.tag == nil && c.at.Equal(m.now) })
		if k := m.now.Sub(m.epoch); !m.gap && m.interval > 0 && k >= 0 && k%m.interval == 0 {
			m.shown = append(m.shown, checkpoint{id: m.firstID + int64(k/m.interval)*idStride, at: m.now})
		}
	case 1, 2, 3:
		action = "insert"
		m.nextTag++
		tag := fmt.Sprint("tag ", m.nextTag)
		if m.insert(checkpoint{at: m.now, tag: &tag, visible: m.now}) {
			last := m.tagged[len(m.tagged)-1]
			m.shown = append(m.shown, checkpoint{id: last.id, at: m.now, tag: &tag})
		}
	case 4:
		if len(m.shown) > 0 {
			action = "lose"
			i := rng.IntN(len(m.shown))
			m.lose(m.shown[i].id)
			m.shown = slices.Delete(m.shown, i, i+1)
		}
	case 5:
		if len(m.shown) > 0 {
			action = "retag"
			i := rng.IntN(len(m.shown))
			tag := "Tested"
			m.retag(m.shown[i].id, tag)
			m.shown[i].tag = &tag
		}
	case 6:
		if rng.IntN(6) == 0 {
			action = "rebuild"
			m.rebuild(m.now, false)
			m.shown = nil
		}
	}
	m.shown = slices.DeleteFunc(m.shown, func(c checkpoint) bool { return c.at.Before(m.now.Add(-m.history)) })
	return action
}

func plain(list []checkpoint) []Checkpoint {
	var all []Checkpoint
	for _, c := range list {
		all = append(all, c.public())
	}
	return all
}

func TestJournalShowsWhatAPlainListWould(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			m := &modelled{now: noon}
			m.journal = journal{epoch: noon.Add(time.Second), interval: 5 * time.Second, firstID: 780_000, history: 3 * time.Minute}
			if seed%5 == 0 {
				m.interval = -1
			}
			for range 80 {
				action := m.step(rng)
				v := m.at(m.now, span{})
				got := plain(slices.Collect(v.within(span{})))
				if diff := cmp.Diff(plain(m.shown), got); diff != "" {
					t.Fatalf("after %s (-want +got):\n%s", action, diff)
				}
				checkEnds(t, &v, m.shown)
				from := m.now.Add(-time.Duration(rng.IntN(240)) * time.Second)
				r := span{from: from, to: from.Add(time.Duration(rng.IntN(120)) * time.Second), exclusive: rng.IntN(2) == 0}
				want := slices.DeleteFunc(slices.Clone(m.shown), func(c checkpoint) bool { return !r.holds(c.at) })
				narrow := m.at(m.now, r)
				if diff := cmp.Diff(plain(want), plain(slices.Collect(narrow.within(r)))); diff != "" {
					t.Fatalf("window after %s (-want +got):\n%s", action, diff)
				}
			}
		})
	}
}

func checkEnds(t *testing.T, v *view, shown []checkpoint) {
	t.Helper()
	first, hasFirst := v.earliest()
	last, hasLast := v.latest()
	if hasFirst != (len(shown) > 0) || hasLast != hasFirst {
		t.Fatalf("earliest %v, latest %v, shown %d", hasFirst, hasLast, len(shown))
	}
	if !hasFirst {
		return
	}
	if first.id != shown[0].id || last.id != shown[len(shown)-1].id {
		t.Fatalf("ends = %d and %d, want %d and %d", first.id, last.id, shown[0].id, shown[len(shown)-1].id)
	}
	for _, c := range shown {
		if found, ok := v.find(strconv.FormatInt(c.id, 10)); !ok || !found.at.Equal(c.at) {
			t.Fatalf("find %d = %v %v", c.id, found, ok)
		}
	}
	for i := 1; i < len(shown); i++ {
		if shown[i].id <= shown[i-1].id {
			t.Fatalf("ids do not increase: %d, %d", shown[i-1].id, shown[i].id)
		}
	}
}

func TestJournalRunsOutOfIDsHonestly(t *testing.T) {
	t.Parallel()
	j := journal{epoch: noon, interval: time.Hour, firstID: 1, history: time.Hour}
	taken := 0
	for j.insert(checkpoint{at: noon, visible: noon}) {
		taken++
	}
	if taken != idStride-1 {
		t.Errorf("one interval took %d tags, want %d", taken, idStride-1)
	}
}

func TestRestartedIDsNameOtherCheckpoints(t *testing.T) {
	t.Parallel()
	j := journal{epoch: noon, interval: 5 * time.Second, firstID: 780_000, history: time.Hour}
	v := j.at(noon.Add(time.Minute), span{})
	old, _ := v.earliest()
	j.rebuild(noon.Add(time.Minute), true)
	v = j.at(noon.Add(2*time.Minute), span{})
	fresh, _ := v.earliest()
	if fresh.id != old.id || fresh.at.Equal(old.at) {
		t.Errorf("first = %d at %v, after the rebuild %d at %v", old.id, old.at, fresh.id, fresh.at)
	}
}

func TestAMonthOfAutomaticCheckpoints(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	j := journal{epoch: noon.Add(-month).Add(time.Second), interval: 5 * time.Second, firstID: 780_000, history: month}
	v := j.at(noon, span{})
	n := 0
	for range v.within(span{}) {
		n++
	}
	if n != 518_400 {
		t.Errorf("a month holds %d checkpoints, want 518400", n)
	}
}

// The journal of 30 days at 5 s is what a client must be able to wait in.
func BenchmarkWindowOfAFullJournal(b *testing.B) {
	j := journal{epoch: noon.Add(-30 * 24 * time.Hour), interval: 5 * time.Second, firstID: 780_000, history: 30 * 24 * time.Hour}
	for b.Loop() {
		v := j.at(noon, span{from: noon.Add(-time.Minute)})
		if n := len(slices.Collect(v.within(span{from: noon.Add(-time.Minute)}))); n != 13 {
			b.Fatal(n)
		}
	}
}

func TestJournalOfTheLongestDurations(t *testing.T) {
	t.Parallel()
	const longest = time.Duration(1<<63 - 1)
	for _, tc := range []struct{ history, age, interval time.Duration }{
		{time.Nanosecond, longest, time.Second}, {longest, longest, longest}, {longest, 0, -1},
	} {
		j := journal{epoch: noon.Add(-tc.age), interval: tc.interval, history: tc.history}
		frozen := j.at(noon, span{})
		frozen.earliest()
		if last, found := frozen.latest(); found && last.at.After(noon) {
			t.Errorf("the last checkpoint of %+v is of %v", tc, last.at)
		}
	}
}
