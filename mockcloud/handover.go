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

func (l *lifetime) handOver() ([]Change, error) {
	l.retired.Store(true)
	l.stop()
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	if _, already := l.core.store.(retiredStore); !already {
		l.core.store = retiredStore{l.core.store}
	}
	l.core.st.due = nil
	l.core.updateNextDue()
	content := []Change{}
	for _, bucket := range handoverBuckets {
		err := l.core.store.Load(bucket, func(key string, value []byte) error {
			content = append(content, Change{Bucket: bucket, Key: key, Value: append([]byte(nil), value...)})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the store for the handover: %w", err)
		}
	}
	return content, nil
}

func (l *lifetime) handle(w http.ResponseWriter, _ *request) error {
	content, err := l.handOver()
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
