package zvmtest

import "iter"

// itemSet is the content of a folder: a persistent set ordered by key, as a weight-balanced tree. A change copies only
// the nodes from its place up to the top, so that every older version stays as it was and shares the rest; each node
// knows its count, so that a page in the middle of a large folder is found without walking to it. Nil is the empty set.
type itemSet struct {
	left, right *itemSet
	count       int
	key         string // the name, folded where the file system ignores case
	name        string
	item        *inode
}

// The two constants of the balance, for which the tree is proven to stay balanced under insertion and deletion when a
// weight is the count plus one (Hirai and Yamamoto, "Balancing weight-balanced trees", 2011).
const (
	maxWeightRatio    = 3
	singleRotateRatio = 2
)

func (e *itemSet) size() int {
	if e == nil {
		return 0
	}
	return e.count
}

func (e *itemSet) weight() int { return e.size() + 1 }

// find returns the entry under key, or nil.
func (e *itemSet) find(key string) *itemSet {
	for e != nil && key != e.key {
		if key < e.key {
			e = e.left
		} else {
			e = e.right
		}
	}
	return e
}

// with returns the set in which key stands for item, under name.
func (e *itemSet) with(key, name string, item *inode) *itemSet {
	switch {
	case e == nil:
		return &itemSet{count: 1, key: key, name: name, item: item}
	case key < e.key:
		return e.join(e.left.with(key, name, item), e.right)
	case key > e.key:
		return e.join(e.left, e.right.with(key, name, item))
	default:
		return &itemSet{left: e.left, right: e.right, count: e.count, key: key, name: name, item: item}
	}
}

// without returns the set from which key is gone.
func (e *itemSet) without(key string) *itemSet {
	switch {
	case e == nil:
		return nil
	case key < e.key:
		return e.join(e.left.without(key), e.right)
	case key > e.key:
		return e.join(e.left, e.right.without(key))
	case e.right == nil:
		return e.left
	default:
		next := e.right
		for next.left != nil {
			next = next.left
		}
		return next.join(e.left, e.right.without(next.key))
	}
}

// join puts e's own entry between left and right, which differ from a balanced pair by one entry at most.
func (e *itemSet) join(left, right *itemSet) *itemSet {
	switch {
	case right.weight() > maxWeightRatio*left.weight():
		if right.left.weight() < singleRotateRatio*right.right.weight() {
			return right.put(e.put(left, right.left), right.right)
		}
		middle := right.left
		return middle.put(e.put(left, middle.left), right.put(middle.right, right.right))
	case left.weight() > maxWeightRatio*right.weight():
		if left.right.weight() < singleRotateRatio*left.left.weight() {
			return left.put(left.left, e.put(left.right, right))
		}
		middle := left.right
		return middle.put(left.put(left.left, middle.left), e.put(middle.right, right))
	default:
		return e.put(left, right)
	}
}

// put is join without balancing.
func (e *itemSet) put(left, right *itemSet) *itemSet {
	return &itemSet{left: left, right: right, count: left.size() + right.size() + 1, key: e.key, name: e.name, item: e.item}
}

// from yields the entries in order, without the first offset ones.
func (e *itemSet) from(offset int) iter.Seq2[string, *inode] {
	return func(yield func(string, *inode) bool) { e.walk(offset, yield) }
}

func (e *itemSet) walk(offset int, yield func(string, *inode) bool) bool {
	if offset >= e.size() {
		return true
	}
	before := e.left.size()
	return e.left.walk(offset, yield) &&
		(offset > before || yield(e.name, e.item)) &&
		e.right.walk(max(offset-before-1, 0), yield)
}

// sortedItems builds the set of n entries whose i-th in order is made by at, without n insertions.
func sortedItems(n int, at func(i int) (key, name string, item *inode)) *itemSet {
	var build func(low, high int) *itemSet
	build = func(low, high int) *itemSet {
		if low >= high {
			return nil
		}
		middle := low + (high-low)/2
		e := &itemSet{count: high - low}
		e.left = build(low, middle)
		e.key, e.name, e.item = at(middle)
		e.right = build(middle+1, high)
		return e
	}
	return build(0, n)
}
