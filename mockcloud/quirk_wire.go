package mockcloud

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"
)

// connections has the addresses of clients that made a call.
type connections struct {
	mu   sync.Mutex
	used map[string]bool
}

// maxConnections bounds the addresses that are remembered.
const maxConnections = 10_000

// reused reports whether there was a call from this address before. Each connection
// has an address of its own.
func (c *connections) reused(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[address] {
		return true
	}
	if c.used == nil || len(c.used) >= maxConnections {
		c.used = map[string]bool{}
	}
	c.used[address] = true
	return false
}

// sendGzipBomb sends a listing of empty objects that is size bytes long when it is
// decompressed.
func sendGzipBomb(w http.ResponseWriter, size int64, profile Profile) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(http.StatusOK)
	packed := gzip.NewWriter(w)
	head, tail := "[", "{}]\n"
	if profile != Core {
		head, tail = `{"servers":[`, "{}]}\n"
	}
	if _, err := packed.Write([]byte(head)); err != nil {
		return
	}
	chunk := bytes.Repeat([]byte("{},"), 20_000)
	for left := size - int64(len(head)+len(tail)); left > 0; left -= int64(len(chunk)) {
		part := chunk
		if left < int64(len(chunk)) {
			part = chunk[:left/3*3]
		}
		if _, err := packed.Write(part); err != nil {
			return
		}
	}
	_, _ = packed.Write([]byte(tail))
	_ = packed.Close()
}
