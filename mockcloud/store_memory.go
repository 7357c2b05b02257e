package mockcloud

import (
	"maps"
	"slices"
	"sync"
)

// MemoryStore is a Store in memory. Tests of a restart pass the same MemoryStore
// to one Cloud after another.
type MemoryStore struct {
	mu      sync.Mutex
	buckets map[string]map[string][]byte
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{buckets: map[string]map[string][]byte{}}
}

// Load implements Store.
func (m *MemoryStore) Load(bucket string, visit func(string, []byte) error) error {
	m.mu.Lock()
	content := maps.Clone(m.buckets[bucket])
	m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if err := visit(key, content[key]); err != nil {
			return err
		}
	}
	return nil
}

// Write implements Store. It never returns an error.
func (m *MemoryStore) Write(changes ...Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, change := range changes {
		bucket := m.buckets[change.Bucket]
		if bucket == nil {
			bucket = map[string][]byte{}
			m.buckets[change.Bucket] = bucket
		}
		if change.Value == nil {
			delete(bucket, change.Key)
			continue
		}
		bucket[change.Key] = change.Value
	}
	return nil
}

// Close implements Store. The content is kept.
func (m *MemoryStore) Close() error { return nil }
