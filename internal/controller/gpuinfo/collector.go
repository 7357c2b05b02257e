package gpuinfo

import (
	"sync"
	"time"
)

// collector collects events that concern many GPUInfos, so that these are looked up and
// enqueued once for all events of a delay.
type collector struct {
	delay time.Duration

	mu      sync.Mutex
	pending map[concern]bool
}

// concern is what events have in common that are collected, and the Cloud, if any.
type concern struct{ what, cloud string }

func newCollector(delay time.Duration) *collector {
	return &collector{delay: delay, pending: map[concern]bool{}}
}

// add calls enqueue when the delay has passed, unless that is due for the same concern.
func (c *collector) add(of concern, enqueue func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[of] {
		return
	}
	c.pending[of] = true
	time.AfterFunc(c.delay, func() {
		c.mu.Lock()
		delete(c.pending, of) // an event from now on may not be in what enqueue looks up
		c.mu.Unlock()
		enqueue()
	})
}
