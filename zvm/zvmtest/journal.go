package zvmtest

import (
	"iter"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"
)

// idStride is the distance of the ids of two automatic checkpoints. The ids
// between belong to tagged checkpoints of that time, so that all ids of a
// journal increase with time although automatic ones are never stored.
const idStride = 10_000

// checkpoint is one point of a journal.
type checkpoint struct {
	id  int64
	at  time.Time // to the nanosecond; the wire shows less
	tag *string
	// visible is when the list shows it.
	visible time.Time
	// trees are the guests as a tagged checkpoint froze them. An automatic
	// one has none: its time says what it holds.
	trees map[*VM]*tree
}

// guest is what a VM's disks held at the checkpoint.
func (c checkpoint) guest(vm *VM) *tree {
	if frozen, found := c.trees[vm]; found {
		return frozen
	}
	return vm.guest.at(c.at)
}

// journal holds the tagged checkpoints of a VPG. The automatic ones are
// computed: number k is at epoch + k·interval.
type journal struct {
	epoch    time.Time
	interval time.Duration // negative: no automatic checkpoints
	firstID  int64
	history  time.Duration
	gaps     []span           // times without automatic checkpoints; the last may be open
	lost     map[int64]bool   // automatic checkpoints that went missing
	renamed  map[int64]string // automatic checkpoints that got a tag
	tagged   []checkpoint     // by id, which is by time
}

// view is a journal at one moment, free of the mutex.
type view struct {
	journal
	now time.Time
}

// at freezes what the journal shows within r, tagged checkpoints of other
// times left out.
func (j *journal) at(now time.Time, r span) view {
	v := view{journal: *j, now: now}
	v.gaps = slices.Clone(j.gaps)
	v.lost = maps.Clone(j.lost)
	v.renamed = maps.Clone(j.renamed)
	v.tagged = nil
	oldest := now.Add(-j.history)
	start := sort.Search(len(j.tagged), func(i int) bool {
		return !j.tagged[i].at.Before(oldest) && (r.from.IsZero() || !j.tagged[i].at.Before(r.from))
	})
	for _, c := range j.tagged[start:] {
		if !r.to.IsZero() && c.at.After(r.to) {
			break
		}
		if !c.visible.After(now) {
			v.tagged = append(v.tagged, c)
		}
	}
	return v
}

// automatic returns checkpoint number k and whether the journal still has it.
func (v *view) automatic(k int64) (checkpoint, bool) {
	c := checkpoint{id: v.firstID + k*idStride, at: v.epoch.Add(time.Duration(k) * v.interval)}
	if k < 0 || v.interval <= 0 || c.at.After(v.now) || c.at.Before(v.now.Add(-v.history)) || v.lost[c.id] {
		return c, false
	}
	if tag, found := v.renamed[c.id]; found {
		c.tag = &tag
	}
	_, missing := v.gapAt(c.at)
	return c, !missing
}

func (v *view) gapAt(t time.Time) (span, bool) {
	for _, gap := range v.gaps {
		if !t.Before(gap.from) && (gap.to.IsZero() || t.Before(gap.to)) {
			return gap, true
		}
	}
	return span{}, false
}

// numbers returns the range of automatic checkpoints within r, both ends
// included.
func (v *view) numbers(r span) (first, last int64) {
	if v.interval <= 0 {
		return 0, -1
	}
	from, to := v.now.Add(-v.history), v.now
	if r.from.After(from) {
		from = r.from
	}
	if !r.to.IsZero() && r.to.Before(to) {
		to = r.to
	}
	since := from.Sub(v.epoch)
	first = max(0, int64(since/v.interval))
	if since > 0 && since%v.interval > 0 {
		first++
	}
	if to.Before(v.epoch) {
		return first, -1
	}
	return first, int64(to.Sub(v.epoch) / v.interval)
}

// within yields the checkpoints of r, oldest first.
func (v *view) within(r span) iter.Seq[checkpoint] {
	return func(yield func(checkpoint) bool) {
		tagged := v.tagged
		first, last := v.numbers(r)
		for k := first; k <= last; k++ {
			c, present := v.automatic(k)
			for len(tagged) > 0 && tagged[0].id < c.id {
				if r.holds(tagged[0].at) && !yield(tagged[0]) {
					return
				}
				tagged = tagged[1:]
			}
			if present && r.holds(c.at) && !yield(c) {
				return
			}
			if gap, inside := v.gapAt(c.at); inside && !gap.to.IsZero() {
				k = max(k, int64((gap.to.Sub(v.epoch)-1)/v.interval))
			} else if inside {
				break
			}
		}
		for _, c := range tagged {
			if r.holds(c.at) && !yield(c) {
				return
			}
		}
	}
}

// earliest and latest return the ends of the journal.
func (v *view) earliest() (checkpoint, bool) {
	for c := range v.within(span{}) {
		return c, true
	}
	return checkpoint{}, false
}

func (v *view) latest() (checkpoint, bool) {
	for back := time.Minute; ; back *= 2 {
		if back <= 0 || back > v.history {
			back = v.history
		}
		from := v.now.Add(-back)
		var last checkpoint
		found := false
		for c := range v.within(span{from: from}) {
			last, found = c, true
		}
		if found || back == v.history {
			return last, found
		}
	}
}

// find looks an id up.
func (v *view) find(id string) (checkpoint, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return checkpoint{}, false
	}
	if (n-v.firstID)%idStride == 0 {
		return v.automatic((n - v.firstID) / idStride)
	}
	for _, c := range v.tagged {
		if c.id == n {
			return c, true
		}
	}
	return checkpoint{}, false
}

// insert gives a tagged checkpoint its id and appends it, or reports that its
// time has no id left.
func (j *journal) insert(c checkpoint) bool {
	distance := j.interval
	if distance <= 0 {
		distance = time.Second
	}
	// Before the epoch is the time of number −1: the division has to round
	// down.
	slot := int64((c.at.Sub(j.epoch)+distance)/distance) - 1
	id := j.firstID + max(slot, -1)*idStride + 1
	if n := len(j.tagged); n > 0 {
		id = max(id, j.tagged[n-1].id+1)
	}
	if (id-j.firstID)%idStride == 0 {
		return false
	}
	c.id = id
	j.tagged = append(j.tagged, c)
	return true
}

func (j *journal) hasTag(tag string) bool {
	return slices.ContainsFunc(j.tagged, func(c checkpoint) bool { return *c.tag == tag })
}

// retag changes a checkpoint's tag. Readers may still hold the old one.
func (j *journal) retag(id int64, tag string) {
	for i := range j.tagged {
		if j.tagged[i].id == id {
			j.tagged[i].tag = &tag
			return
		}
	}
	if j.renamed == nil {
		j.renamed = map[int64]string{}
	}
	j.renamed[id] = tag
}

func (j *journal) lose(id int64) {
	j.tagged = slices.DeleteFunc(j.tagged, func(c checkpoint) bool { return c.id == id })
	if j.lost == nil {
		j.lost = map[int64]bool{}
	}
	j.lost[id] = true
}

// rebuild empties the journal: a resync took its checkpoints.
func (j *journal) rebuild(now time.Time, restartIDs bool) {
	next := j.firstID
	if !restartIDs {
		distance := max(j.interval, time.Second)
		next += (int64(now.Sub(j.epoch)/distance) + 2) * idStride
		if n := len(j.tagged); n > 0 {
			next = max(next, j.tagged[n-1].id+2*idStride)
		}
	}
	j.epoch = now.Truncate(time.Second).Add(time.Second)
	j.firstID = next
	j.tagged, j.lost, j.renamed = nil, nil, nil
	j.gaps = slices.DeleteFunc(j.gaps, func(gap span) bool { return !gap.to.IsZero() })
}
