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

// handoverBuckets are all buckets of a store.
var handoverBuckets = []string{bucketMeta, bucketServers, bucketNetworks, bucketKeys, bucketLedger, bucketOperations}

// retiredStore rejects the effects of calls in progress, because they would be
// lost after a handover.
type retiredStore struct{ Store }

func (retiredStore) Write(...Change) error { return errRetired() }

func errRetired() error {
	return problem(http.StatusServiceUnavailable, CodeUnavailable, "this cloud has been handed over to another process")
}

// HandOver stops the cloud and returns the content of its store, with which
// another process can continue. From then on, no call has an effect, and calls
// and /readyz return 503. A second call of HandOver returns the same content.
func (c *Cloud) HandOver() ([]Change, error) {
	c.retired.Store(true)
	c.stop()
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if _, already := c.core.store.(retiredStore); !already {
		c.core.store = retiredStore{c.core.store}
	}
	c.core.st.due = nil
	c.core.updateNextDue()
	content := []Change{}
	for _, bucket := range handoverBuckets {
		err := c.core.store.Load(bucket, func(key string, value []byte) error {
			content = append(content, Change{Bucket: bucket, Key: key, Value: append([]byte(nil), value...)})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the store for the handover: %w", err)
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

// TakeOver requests the content of the mock cloud at url and writes it to the data
// file at path. It does nothing if the file exists, if no server listens at url,
// or if it does not respond within timeout.
func TakeOver(ctx context.Context, url, path string, timeout time.Duration) (taken bool, err error) {
	if _, err := os.Stat(path); err == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
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

// storeAll creates the file with all content, or no file.
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
