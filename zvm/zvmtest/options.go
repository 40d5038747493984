package zvmtest

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
)

// Option configures a Server. An option that makes no sense is an error of
// New, and fails the test that called Start.
type Option func(*config) error

type config struct {
	seed               uint64
	clock              func() time.Time
	listener           net.Listener
	prefix             string
	realm              string
	siteName           string
	utcOffset          time.Duration
	tokenTTL           time.Duration
	refreshTTL         time.Duration
	loginTime          time.Duration
	insertTime         func(n int) time.Duration
	listLag            time.Duration
	mountTime          time.Duration
	unmountTime        time.Duration
	testTime           time.Duration
	cloneTime          time.Duration
	linkTTL            time.Duration
	taskVisibleAfter   time.Duration
	taskRetention      time.Duration
	checkpointInterval time.Duration
	users              map[string]account
	clients            map[string]account
	keycloak           *keycloak // nil: the server issues tokens itself
	switches           map[Switch]bool
	hostile            bool
	inventories        []*inventory
	mirror             *mirror // nil unless this is another server's peer
	sessionLimit       int     // 0: none
	lockout            int     // 0: never
	listLimit          int     // 0: none
	mountLimit         int     // 0: none
	mountTTL           time.Duration
	requestLog         int // negative: unlimited
	onRequest          func(Request)
	reach              []string // nil: any call
}

const (
	defaultUser     = "svc-rewind"
	defaultPassword = "MARKER-password-of-svc-rewind"
	publicClient    = "zerto-client"
)

func defaultConfig() config {
	return config{
		seed:               1,
		clock:              time.Now,
		realm:              "zerto",
		siteName:           "Production",
		utcOffset:          -4 * time.Hour,
		tokenTTL:           60 * time.Second,
		refreshTTL:         30 * time.Minute,
		loginTime:          20 * time.Millisecond,
		insertTime:         func(int) time.Duration { return 3 * time.Second },
		mountTime:          3 * time.Second,
		unmountTime:        time.Second,
		testTime:           5 * time.Second,
		cloneTime:          5 * time.Second,
		checkpointInterval: 5 * time.Second,
		users:              map[string]account{defaultUser: {name: defaultUser, secret: defaultPassword, role: Admin}},
		clients:            map[string]account{publicClient: {name: publicClient, public: true}},
		switches:           map[Switch]bool{},
		requestLog:         -1,
	}
}

// WithSeed sets the seed of every id, 1 by default. Servers with one seed and
// one sequence of calls have the same ids.
func WithSeed(seed uint64) Option {
	return func(c *config) error { c.seed = seed; return nil }
}

// WithClock replaces the server's clock, time.Now by default. It is called
// from many goroutines.
func WithClock(now func() time.Time) Option {
	return func(c *config) error {
		if now == nil {
			return errors.New("WithClock: nil clock")
		}
		c.clock = now
		return nil
	}
}

// WithManualClock stops the server's clock at start; only Advance moves it.
func WithManualClock(start time.Time) Option {
	return func(c *config) error {
		if start.IsZero() {
			return errors.New("WithManualClock: zero time")
		}
		c.clock = func() time.Time { return start }
		return nil
	}
}

// WithListener serves on l instead of a free port of 127.0.0.1. The
// certificate is valid for 127.0.0.1, ::1 and localhost. The server closes l.
func WithListener(l net.Listener) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("WithListener: nil listener")
		}
		c.listener = l
		return nil
	}
}

// WithPathPrefix puts the API and the token endpoint behind a path such as
// "/zvm", as a reverse proxy does. The prefix is part of URL.
func WithPathPrefix(prefix string) Option {
	return func(c *config) error {
		prefix = strings.TrimSuffix(prefix, "/")
		if prefix != "" && !strings.HasPrefix(prefix, "/") {
			return fmt.Errorf("WithPathPrefix: %q does not begin with a slash", prefix)
		}
		c.prefix = prefix
		return nil
	}
}

// WithRealm renames the Keycloak realm, "zerto" by default (zvm-wire 1.1).
func WithRealm(realm string) Option {
	return func(c *config) error {
		if realm == "" || strings.Contains(realm, "/") {
			return fmt.Errorf("WithRealm: %q is no realm name", realm)
		}
		c.realm = realm
		return nil
	}
}

// WithSiteName names the local site, "Production" by default.
func WithSiteName(name string) Option {
	return func(c *config) error { c.siteName = name; return nil }
}

// WithUTCOffset sets the server's zone, −4 h by default. It is how a date
// without a Z is read (zvm-wire 4.2).
func WithUTCOffset(d time.Duration) Option {
	return func(c *config) error {
		if d%time.Minute != 0 || d.Abs() > 14*time.Hour {
			return fmt.Errorf("WithUTCOffset: %v is no zone", d)
		}
		c.utcOffset = d
		return nil
	}
}

// WithTokenTTL sets the life of an access token, 60 s by default (zvm-wire
// 1.4).
func WithTokenTTL(d time.Duration) Option {
	return positive("WithTokenTTL", d, func(c *config) { c.tokenTTL = d })
}

// WithRefreshTTL sets the life of a refresh token, 30 min by default.
func WithRefreshTTL(d time.Duration) Option {
	return positive("WithRefreshTTL", d, func(c *config) { c.refreshTTL = d })
}

// WithLoginTime sets how long, in real time, a password login occupies its
// user where ConcurrentLoginRefused is on; 20 ms by default.
func WithLoginTime(d time.Duration) Option {
	return positive("WithLoginTime", d, func(c *config) { c.loginTime = d })
}

// WithInsertTime sets how long the insert of a tagged checkpoint runs, 3 s by
// default.
func WithInsertTime(d time.Duration) Option {
	return notNegative("WithInsertTime", d, func(c *config) {
		c.insertTime = func(int) time.Duration { return d }
	})
}

// WithInsertTimes sets the run time of each insert: f(0) of the first that
// the server accepts, and so on. f is called under the server's lock.
func WithInsertTimes(f func(n int) time.Duration) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("WithInsertTimes: nil function")
		}
		c.insertTime = f
		return nil
	}
}

// WithListLag sets how long after its task's completion a tag appears in the
// checkpoint list, 0 by default (zvm-wire 13: it has to be waited for).
func WithListLag(d time.Duration) Option {
	return notNegative("WithListLag", d, func(c *config) { c.listLag = d })
}

// WithMountTime sets how long an FLR mount runs, 3 s by default.
func WithMountTime(d time.Duration) Option {
	return notNegative("WithMountTime", d, func(c *config) { c.mountTime = d })
}

// WithUnmountTime sets how long an FLR unmount runs, 1 s by default.
func WithUnmountTime(d time.Duration) Option {
	return notNegative("WithUnmountTime", d, func(c *config) { c.unmountTime = d })
}

// WithTestTime sets how long the start and the stop of a failover test run,
// 5 s by default.
func WithTestTime(d time.Duration) Option {
	return notNegative("WithTestTime", d, func(c *config) { c.testTime = d })
}

// WithCloneTime sets how long a clone runs, 5 s by default.
func WithCloneTime(d time.Duration) Option {
	return notNegative("WithCloneTime", d, func(c *config) { c.cloneTime = d })
}

// WithLinkTTL limits the life of a download link. By default, and with 0, a
// link lives as long as its FLR session (zvm-wire 12).
func WithLinkTTL(d time.Duration) Option {
	return notNegative("WithLinkTTL", d, func(c *config) { c.linkTTL = d })
}

// WithMountLimit refuses a mount where the VM has n sessions already. By
// default, and with 0, there is no limit (zvm-wire, open question 31).
func WithMountLimit(n int) Option {
	return count("WithMountLimit", n, func(c *config) { c.mountLimit = n })
}

// WithMountTTL unmounts a session by itself d after its mount was asked for.
// By default, and with 0, a session stays (zvm-wire, open question 31).
func WithMountTTL(d time.Duration) Option {
	return notNegative("WithMountTTL", d, func(c *config) { c.mountTTL = d })
}

// WithListLimit ends a list of checkpoints after n of them. By default, and
// with 0, it is whole (zvm-wire, open question 13).
func WithListLimit(n int) Option {
	return count("WithListLimit", n, func(c *config) { c.listLimit = n })
}

// WithSessionLimit refuses a password login with 401 where the user has n
// Keycloak sessions. By default, and with 0, there is no limit (zvm-wire 1.7).
func WithSessionLimit(n int) Option {
	return count("WithSessionLimit", n, func(c *config) { c.sessionLimit = n })
}

// WithLockout locks a user out for good after n wrong passwords, with the
// same 401 as for a wrong password (zvm-wire 1.5). By default, and with 0,
// nobody is.
func WithLockout(n int) Option {
	return count("WithLockout", n, func(c *config) { c.lockout = n })
}

// WithTaskVisibleAfter hides a new task for d: until then its GET is a 404
// (zvm-wire 5.3). 0 by default.
func WithTaskVisibleAfter(d time.Duration) Option {
	return notNegative("WithTaskVisibleAfter", d, func(c *config) { c.taskVisibleAfter = d })
}

// WithTaskRetention forgets a finished task after d. By default, and with 0,
// tasks are kept.
func WithTaskRetention(d time.Duration) Option {
	return notNegative("WithTaskRetention", d, func(c *config) { c.taskRetention = d })
}

// WithCheckpointInterval sets the distance of automatic checkpoints, 5 s by
// default (zvm-wire 4.3). A negative d switches them off; a VPGConfig may
// override it.
func WithCheckpointInterval(d time.Duration) Option {
	return func(c *config) error {
		if d >= 0 && d < time.Second {
			return fmt.Errorf("WithCheckpointInterval: %v is less than a second", d)
		}
		c.checkpointInterval = d
		return nil
	}
}

// WithOnRequest has f called with each request when it has ended. The calls
// come from the requests' own goroutines, several at a time, and without a
// lock: f may use the server and its handles, but not Close it. An answer that
// fits a buffer reaches the client after f returned.
func WithOnRequest(f func(Request)) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("WithOnRequest: nil function")
		}
		c.onRequest = f
		return nil
	}
}

// WithRequestLog bounds the log of a server that runs for long: it keeps the
// last n requests at least, and twice as many at most. Everything that is
// told from the log, such as Count, MaxInFlight and TokenRequests, then
// speaks of those alone. By default all are kept.
func WithRequestLog(n int) Option {
	return func(c *config) error {
		if n < 0 {
			return fmt.Errorf("WithRequestLog: %d is negative", n)
		}
		c.requestLog = n
		return nil
	}
}

// WithReach makes every call a problem that none of the given ones is: each a
// method and a pattern, "GET /v1/flrs/{id}", in which a segment in braces, or
// "*", stands for any. It is how a test holds what its subject may send.
func WithReach(calls ...string) Option {
	return func(c *config) error {
		c.reach = []string{}
		for _, call := range calls {
			method, pattern, ok := strings.Cut(call, " ")
			if !ok || !strings.HasPrefix(pattern, "/") {
				return fmt.Errorf("WithReach: %q is not a method and a path", call)
			}
			c.reach = append(c.reach, method+" "+variable.ReplaceAllString(pattern, "*"))
		}
		return nil
	}
}

var variable = regexp.MustCompile(`\{[^/]*\}`)

// WithUser adds a user, or replaces one. The server has one Admin from the
// start: see Username and Password.
func WithUser(name, password string, role Role) Option {
	return func(c *config) error {
		if name == "" || password == "" || !role.valid() {
			return fmt.Errorf("WithUser: user %q needs a name, a password and a role", name)
		}
		c.users[name] = account{name: name, secret: password, role: role}
		return nil
	}
}

// WithServiceClient adds a Keycloak client for the client-credentials grant.
func WithServiceClient(id, secret string, role Role) Option {
	return func(c *config) error {
		if id == "" || secret == "" || !role.valid() {
			return fmt.Errorf("WithServiceClient: client %q needs an id, a secret and a role", id)
		}
		c.clients[id] = account{name: id, secret: secret, role: role}
		return nil
	}
}

// WithSwitch turns to the other side of the named questions; see Switch.
// Two switches that answer one question differently are an error.
func WithSwitch(switches ...Switch) Option {
	return func(c *config) error {
		for _, sw := range switches {
			if _, ok := sw.info(); !ok {
				return fmt.Errorf("WithSwitch: there is no switch %d", int(sw))
			}
			c.switches[sw] = true
		}
		return nil
	}
}

func positive(name string, d time.Duration, set func(*config)) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%s: %v is not positive", name, d)
		}
		set(c)
		return nil
	}
}

func count(name string, n int, set func(*config)) Option {
	return func(c *config) error {
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", name, n)
		}
		set(c)
		return nil
	}
}

func notNegative(name string, d time.Duration, set func(*config)) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("%s: %v is negative", name, d)
		}
		set(c)
		return nil
	}
}
