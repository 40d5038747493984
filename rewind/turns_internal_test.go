package rewind

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestTurnsComeInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := &turns{}
		first, err := all.take(t.Context(), "v")
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i := range 20 {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				mine, err := all.take(ctx, "v")
				if err != nil {
					return
				}
				got = append(got, i) // whoever holds the turn is alone
				mine.done()
			}()
			synctest.Wait() // it stands in the queue
			if i%5 == 0 {
				leave() // and frees its place
				synctest.Wait()
			} else {
				defer leave()
			}
		}
		other, err := all.take(t.Context(), "another VPG")
		if err != nil {
			t.Fatal(err)
		}
		other.done()
		first.done()
		synctest.Wait()
		want := slices.DeleteFunc([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, func(i int) bool { return i%5 == 0 })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	})
}
