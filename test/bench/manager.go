package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// manager is the process of the operator.
type manager struct {
	*process
	metrics, pprof string
}

// startManager starts the operator and waits until it has listed the clouds.
func (s *stage) startManager(ctx context.Context) (*manager, error) {
	addresses := make([]string, 3)
	for i := range addresses {
		var err error
		if addresses[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	m := &manager{metrics: "http://" + addresses[0] + "/metrics", pprof: "http://" + addresses[1] + "/debug/pprof/"}
	s.starts++
	log := filepath.Join(s.folder, fmt.Sprintf("manager-%d.log", s.starts))
	for _, cloud := range s.mocks() {
		if err := cloud.forget(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	m.process, err = start(ctx, "manager", s.options.manager, log, "http://"+addresses[2]+"/readyz",
		[]string{"KUBECONFIG=" + s.env.Kubeconfig()},
		"--namespace="+namespace, "--leader-elect", "--vm-workers="+strconv.Itoa(s.options.workers),
		"--metrics-bind-address="+addresses[0], "--metrics-secure=false",
		"--pprof-bind-address="+addresses[1], "--health-probe-bind-address="+addresses[2])
	if err != nil {
		return nil, err
	}
	for _, cloud := range s.mocks() {
		if err := s.listed(ctx, cloud, 1); err != nil {
			return nil, stopAfter(fmt.Errorf("%w; last lines of the operator's log:\n%s", err, m.tail()), m)
		}
	}
	if _, err = s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, stopAfter(err, m)
	}
	return m, nil
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	return data, err
}

// cpu returns the CPU time of the process.
func (m *manager) cpu(ctx context.Context) (time.Duration, error) {
	data, err := fetch(ctx, m.metrics)
	if err != nil {
		return 0, err
	}
	seconds, err := sum(data, "process_cpu_seconds_total")
	return time.Duration(seconds * float64(time.Second)), err
}

// reconciles returns the number of reconciles of VMs.
func (m *manager) reconciles(ctx context.Context) (float64, error) {
	data, err := fetch(ctx, m.metrics)
	if err != nil {
		return 0, err
	}
	return sum(data, `controller_runtime_reconcile_total{controller="vm"`)
}

// sum returns the sum of the samples of a metrics page whose line begins with
// prefix.
func sum(page []byte, prefix string) (float64, error) {
	var total float64
	found := false
	for line := range bytes.Lines(page) {
		text := strings.TrimSpace(string(line))
		if !strings.HasPrefix(text, prefix) {
			continue
		}
		value, err := strconv.ParseFloat(text[strings.LastIndexByte(text, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", prefix, err)
		}
		total, found = total+value, true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", prefix)
	}
	return total, nil
}

// heap returns the size of the heap after garbage collection in bytes. It collects
// more than once, because the contents of a sync.Pool survive one collection.
func (m *manager) heap(ctx context.Context) (int64, error) {
	var page []byte
	for range 3 {
		var err error
		if page, err = fetch(ctx, m.pprof+"heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	scanner := bufio.NewScanner(bytes.NewReader(page))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if text, found := strings.CutPrefix(scanner.Text(), "# HeapAlloc = "); found {
			return strconv.ParseInt(text, 10, 64)
		}
	}
	return 0, fmt.Errorf("no HeapAlloc in the heap profile: %w", scanner.Err())
}

// save writes a profile to a file in a folder.
func (m *manager) save(ctx context.Context, profile, folder, file string) error {
	data, err := fetch(ctx, m.pprof+profile)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, file), data, 0o600)
}
