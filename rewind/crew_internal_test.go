package rewind

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zerto-rewind/zerto-rewind/zvm"
)

func TestCrewHasAsManyThingsUnderWayAsItHasHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		var now, most, done atomic.Int64
		work := func(context.Context, int) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-time.After(time.Second)
			now.Add(-1)
			done.Add(1)
			return nil
		}
		err := c.each(t.Context(), 5, func(ctx context.Context, _ int) error { return c.each(ctx, 20, work) })
		if err != nil || done.Load() != 100 || most.Load() != hands {
			t.Errorf("%d done, %d at once, %v", done.Load(), most.Load(), err)
		}
	})
}

func TestTheFirstErrorEndsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var begun atomic.Int64
		err := newCrew().each(t.Context(), 1000, func(ctx context.Context, i int) error {
			begun.Add(1)
			if i == 3 {
				<-time.After(time.Second)
				return broken
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, broken) || begun.Load() > hands {
			t.Errorf("%v after %d were begun", err, begun.Load())
		}
	})
}

func TestACallerWhoHasLeftBeginsNothing(t *testing.T) {
	t.Parallel()
	why := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	err := newCrew().each(ctx, 3, func(context.Context, int) error {
		t.Error("begun")
		return nil
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// Whoever opened a session has to be there to close it.
func TestAPanicInACrewIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := newCrew().each(t.Context(), 5, func(ctx context.Context, i int) error {
			if i == 0 {
				panic("scripted")
			}
			<-ctx.Done()
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "scripted") {
			t.Errorf("returned %v", err)
		}
	})
}

func TestWhatIsRefusedInCompanyIsAskedForAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		company := newCompany()
		var now, arrived atomic.Int64
		oneAtATime := func() error {
			defer now.Add(-1)
			if now.Add(1) > 1 {
				return &zvm.Error{Status: http.StatusInternalServerError}
			}
			<-time.After(time.Second)
			arrived.Add(1)
			return nil
		}
		err := newCrew().each(t.Context(), 20, func(ctx context.Context, _ int) error { return company.do(ctx, oneAtATime) })
		if err != nil || arrived.Load() != 20 {
			t.Errorf("%d arrived, %v", arrived.Load(), err)
		}
		lost := errors.New("lost")
		asked := 0
		if err := company.do(t.Context(), func() error { asked++; return lost }); !errors.Is(err, lost) || asked != 1 {
			t.Errorf("asked %d times, %v", asked, err)
		}
	})
}
