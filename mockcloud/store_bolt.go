package mockcloud

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// BoltStore is a Store in one bbolt file.
type BoltStore struct {
	db *bolt.DB
}

// OpenBoltStore opens or creates the file. It returns an error if another process
// keeps it open for five seconds.
func OpenBoltStore(path string) (*BoltStore, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("opening data file %s: %w", path, err)
	}
	return &BoltStore{db: db}, nil
}

// Load implements Store.
func (b *BoltStore) Load(bucket string, visit func(string, []byte) error) error {
	return b.db.View(func(tx *bolt.Tx) error {
		content := tx.Bucket([]byte(bucket))
		if content == nil {
			return nil
		}
		return content.ForEach(func(key, value []byte) error {
			return visit(string(key), value)
		})
	})
}

// Write implements Store. It returns when the changes are on disk.
func (b *BoltStore) Write(changes ...Change) error {
	err := b.db.Update(func(tx *bolt.Tx) error {
		for _, change := range changes {
			bucket, err := tx.CreateBucketIfNotExists([]byte(change.Bucket))
			if err != nil {
				return err
			}
			if change.Value == nil {
				err = bucket.Delete([]byte(change.Key))
			} else {
				err = bucket.Put([]byte(change.Key), change.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing data file: %w", err)
	}
	return nil
}

// Close implements Store.
func (b *BoltStore) Close() error { return b.db.Close() }
