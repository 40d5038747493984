package rewind

import (
	"sync"
	"sync/atomic"
	"time"
)

// tellEvery is how often a download tells how far it has come.
const tellEvery = 250 * time.Millisecond

// meter tells how far the bytes of one mount have come: at the start, then from time to time when more have arrived, and
// once more when all have. In between it tells from a goroutine of its own, which ends with the meter, so that whoever
// looks on never holds up the bytes. A nil meter counts nothing.
type meter struct {
	tell    func(Event)
	event   Event // with all that stays the same
	start   time.Time
	bytes   atomic.Int64
	stop    chan struct{}
	telling sync.WaitGroup
}

// metered has use download, and tells of it. Total is how many bytes will arrive, -1 when that is not known.
func (s *Session) metered(m mounted, total int64, use func(mounted) error) error {
	m.meter = &meter{
		tell:  s.progress,
		event: Event{Stage: StageDownloading, VPGName: m.vpgName, Session: m.session, Total: total},
		start: time.Now(),
		stop:  make(chan struct{}),
	}
	m.meter.tell(m.meter.event)
	m.meter.telling.Go(m.meter.watch)
	whole := false
	defer func() { m.meter.end(whole) }()
	err := use(m)
	whole = err == nil
	return err
}

func (m *meter) watch() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var told int64
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
		}
		if now := m.now(); now.Bytes > told {
			m.tell(now)
			told = now.Bytes
		}
	}
}

func (m *meter) now() Event {
	e := m.event
	e.Bytes = m.bytes.Load()
	if spent := time.Since(m.start).Seconds(); spent > 0 {
		e.Rate = float64(e.Bytes) / spent
	}
	return e
}

func (m *meter) end(whole bool) {
	close(m.stop)
	m.telling.Wait()
	if whole {
		e := m.now()
		e.Stage, e.Total = StageDownloaded, e.Bytes
		m.tell(e)
	}
}

// Write counts what was written beside it.
func (m *meter) Write(b []byte) (int, error) {
	if m != nil {
		m.bytes.Add(int64(len(b)))
	}
	return len(b), nil
}

// reached makes up for bytes that arrived in another way than through Write: there are n in all.
func (m *meter) reached(n int64) {
	for m != nil {
		if now := m.bytes.Load(); now >= n || m.bytes.CompareAndSwap(now, n) {
			return
		}
	}
}
