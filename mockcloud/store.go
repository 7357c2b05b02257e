package mockcloud

// The buckets of a Store.
const (
	bucketMeta     = "meta"
	bucketServers  = "servers"
	bucketNetworks = "networks"
	bucketKeys     = "keys"
	bucketLedger   = "ledger"
	// bucketOperations has the operations of the last day.
	bucketOperations = "operations"
)

// Change sets a key of a bucket, or removes it if Value is nil.
type Change struct {
	Bucket string
	Key    string
	Value  []byte
}

// Store is the persistent state of a cloud. The cloud reads it once, when it
// starts, and writes each effect before it responds.
type Store interface {
	// Load calls visit for every key of a bucket, in byte order of the keys.
	// Value is valid only until visit returns.
	Load(bucket string, visit func(key string, value []byte) error) error
	// Write applies all changes or none.
	Write(changes ...Change) error
	// Close releases the store. No method may be called afterwards.
	Close() error
}
