package zvmtest

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Profile is a set of options under one name.
type Profile int

const (
	// Quick makes every operation take 20 ms, for tests that are not about
	// waiting.
	Quick Profile = iota + 1
	// Realistic has times such as an appliance has: inserts of 1 to 30 s by
	// the seed, tags listed 2 s later, overlapping logins refused.
	Realistic
	// Hostile has Quick's times and turns every switch by the seed with
	// which a recovery is still possible.
	Hostile
)

// WithProfile applies p. Options after it override it.
func WithProfile(p Profile) Option {
	return func(c *config) error {
		switch p {
		case Quick, Hostile:
			const quick = 20 * time.Millisecond
			c.insertTime = func(int) time.Duration { return quick }
			c.mountTime, c.unmountTime, c.testTime, c.cloneTime = quick, quick, quick, quick
			if p == Hostile {
				c.hostile = true
				c.listLag, c.taskVisibleAfter = 2*quick, quick/2
			}
		case Realistic:
			// The seed is read when an insert runs, so that WithSeed may
			// come after WithProfile.
			c.insertTime = func(n int) time.Duration {
				rng := rand.New(rand.NewPCG(c.seed, uint64(n)))
				return time.Second + time.Duration(rng.Int64N(int64(29*time.Second)))
			}
			c.listLag = 2 * time.Second
			c.switches[ConcurrentLoginRefused] = true
		default:
			return fmt.Errorf("WithProfile: there is no profile %d", int(p))
		}
		return nil
	}
}
