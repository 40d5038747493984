package rewind

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestAPanicOfAGroupIsOneOfItsCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "broken") || !strings.Contains(p, "group_internal_test.go") {
			t.Errorf("recovered %q", p)
		}
	}()
	g, ctx := groupWithin(t.Context())
	g.Go(func() error { panic("broken") })
	g.Go(func() error {
		<-ctx.Done() // the others are told to stop
		return nil
	})
	_ = g.Wait()
	t.Error("no panic")
}

func TestAGroupWithoutAPanicReturnsItsFirstError(t *testing.T) {
	t.Parallel()
	g := newGroup()
	g.Go(func() error { return context.Canceled })
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
