package mockcloud

// The buckets of a Store.
const (
	bucketMeta     = "meta"
	bucketServers  = "servers"
	bucketNetworks = "networks"
	bucketKeys     = "keys"
	bucketLedger   = "ledger"
)

// Change sets one key of a bucket, or removes it where Value is nil.
type Change struct {
	Bucket string
	Key    string
	Value  []byte
}

// Store is what the cloud remembers. The cloud works from its own indexes; it
// reads a store once, at the start, and writes each effect before answering.
type Store interface {
	// Load calls visit for every key of a bucket, in byte order of the keys.
	// Value is valid only until visit returns.
	Load(bucket string, visit func(key string, value []byte) error) error
	// Write applies all changes or none.
	Write(changes ...Change) error
	// Close releases the store; nothing may be called afterwards.
	Close() error
}
