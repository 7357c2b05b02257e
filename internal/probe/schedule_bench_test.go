package probe

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkSchedule takes the next entry of 50,000 in 200 namespaces, and puts it back.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			const period = 10 * time.Second
			now := time.Unix(1_700_000_000, 0)
			s := newSchedule()
			for i := range n {
				e := &entry{key: Key{UID: fmt.Sprint(i), Namespace: fmt.Sprint("namespace-", i%200)}, index: none}
				s.put(e, now.Add(period*time.Duration(i)/time.Duration(n)))
			}
			for b.Loop() {
				now = now.Add(period / time.Duration(n))
				e, _ := s.next(now)
				if e == nil {
					continue
				}
				s.done(e)
				s.put(e, now.Add(period))
			}
		})
	}
}
