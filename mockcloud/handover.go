package mockcloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// handoverBuckets are all that a store has.
var handoverBuckets = []string{bucketMeta, bucketServers, bucketNetworks, bucketKeys, bucketLedger}

// retiredStore refuses what a call that was under way would still bring about:
// after a handover it would be lost.
type retiredStore struct{ Store }

func (retiredStore) Write(...Change) error { return errRetired() }

func errRetired() error {
	return problem(http.StatusServiceUnavailable, CodeUnavailable, "this cloud has been handed over to another process")
}

// HandOver ends what the cloud does and returns all that it remembers, for
// another process to go on with: nothing takes effect here any more, and calls
// and /readyz answer 503. A second time it returns the same.
func (c *Cloud) HandOver() ([]Change, error) {
	c.retired.Store(true)
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, already := c.store.(retiredStore); !already {
		c.store = retiredStore{c.store}
	}
	c.st.due = nil
	c.noteDue()
	content := []Change{}
	for _, bucket := range handoverBuckets {
		err := c.store.Load(bucket, func(key string, value []byte) error {
			content = append(content, Change{Bucket: bucket, Key: key, Value: append([]byte(nil), value...)})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading what is to be handed over: %w", err)
		}
	}
	return content, nil
}

func (c *Cloud) handleHandOver(w http.ResponseWriter, _ *request) error {
	content, err := c.HandOver()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, content)
}

// TakeOver has the mock cloud at url hand over, and puts what it remembers into
// the data file at path, unless there is one already. Where nobody listens, or
// nobody answers within patience, there is nothing to take over, and no file
// is made.
func TakeOver(ctx context.Context, url, path string, patience time.Duration) (taken bool, err error) {
	if _, err := os.Stat(path); err == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(url, "/")+"/admin/handover", http.NoBody)
	if err != nil {
		return false, fmt.Errorf("taking over: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("taking over: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("taking over: POST %s answered %s", request.URL, response.Status)
	}
	var content []Change
	if err := json.NewDecoder(response.Body).Decode(&content); err != nil {
		return false, fmt.Errorf("taking over: %w", err)
	}
	return true, storeAll(path, content)
}

// storeAll leaves a whole file or none.
func storeAll(path string, content []Change) error {
	partial := path + ".part"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	store, err := OpenBoltStore(partial)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Write(content...), store.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	return nil
}
