package rewind

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBytesAreToldOfFourTimesASecondAtMostAndNeverOfFewerThanBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type told struct {
			At           time.Duration
			Bytes, Total int64
			Rate         float64
		}
		var got []told
		start := time.Now()
		s := &Session{progress: func(e Event) { got = append(got, told{time.Since(start), e.Bytes, e.Total, e.Rate}) }}
		err := s.metered(mounted{}, 1000, func(m mounted) error {
			for range 10 {
				time.Sleep(30 * time.Millisecond)
				_, _ = m.meter.Write(make([]byte, 10))
			}
			time.Sleep(1300 * time.Millisecond) // a stall
			m.meter.reached(50)
			m.meter.reached(1000)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []told{
			{0, 0, 1000, 0},
			{250 * time.Millisecond, 80, 1000, 320},
			{500 * time.Millisecond, 100, 1000, 200},
			{1600 * time.Millisecond, 1000, 1000, 625},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestANilMeterCountsNothing(t *testing.T) {
	t.Parallel()
	var m *meter
	m.reached(7)
	if n, err := m.Write([]byte("seven..")); n != 7 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
