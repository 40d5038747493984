package rewind

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// group is an errgroup whose goroutines cannot end the process: a panic on one of them goes on in Wait, on the goroutine
// of the caller, who may be able to take it.
type group struct {
	*errgroup.Group

	once     sync.Once
	panicked string
}

func newGroup() *group { return &group{Group: new(errgroup.Group)} }

// groupWithin returns a group and a context that ends with its first error, as [errgroup.WithContext] does.
func groupWithin(ctx context.Context) (*group, context.Context) {
	inner, ctx := errgroup.WithContext(ctx)
	return &group{Group: inner}, ctx
}

var errPanicked = errors.New("a goroutine panicked")

func (g *group) Go(work func() error) {
	g.Group.Go(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				stack := debug.Stack()
				g.once.Do(func() { g.panicked = fmt.Sprintf("%v\n\n%s", p, stack) })
				err = errPanicked
			}
		}()
		return work()
	})
}

func (g *group) Wait() error {
	err := g.Group.Wait()
	if g.panicked != "" {
		panic(g.panicked) //nolint:forbidigo // the panic is another's, and goes on where somebody may take it
	}
	return err
}
