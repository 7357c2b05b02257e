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
	// began is when the process was started.
	began time.Time
}

// startManager starts the operator and waits until it has listed the clouds.
func (s *stage) startManager(ctx context.Context) (*manager, error) {
	started, err := s.startManagers(ctx, nil)
	if err != nil {
		return nil, err
	}
	return started[0], nil
}

// startManagers starts a manager for each list of additional arguments, and waits until
// they have listed the clouds.
func (s *stage) startManagers(ctx context.Context, lists ...[]string) ([]*manager, error) {
	for _, cloud := range s.mocks() {
		if err := cloud.forget(ctx); err != nil {
			return nil, err
		}
	}
	var started []*manager
	for _, args := range lists {
		m, err := s.launchManager(ctx, args...)
		if err != nil {
			return nil, stopAfter(err, started...)
		}
		started = append(started, m)
	}
	for _, cloud := range s.mocks() {
		if err := s.listed(ctx, cloud, 1); err != nil {
			return nil, stopAfter(fmt.Errorf("%w; last lines of the operator's log:\n%s", err, started[0].tail()), started...)
		}
	}
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, stopAfter(err, started...)
	}
	return started, nil
}

// launchManager starts the operator, and does not wait for what it does.
func (s *stage) launchManager(ctx context.Context, args ...string) (*manager, error) {
	addresses := make([]string, 3)
	for i := range addresses {
		var err error
		if addresses[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	m := &manager{metrics: "http://" + addresses[0] + "/metrics", pprof: "http://" + addresses[1] + "/debug/pprof/", began: time.Now()}
	s.starts++
	log := filepath.Join(s.folder, fmt.Sprintf("manager-%d.log", s.starts))
	args = append([]string{
		"--namespace=" + namespace, "--leader-elect", "--vm-workers=" + strconv.Itoa(s.options.workers),
		"--metrics-bind-address=" + addresses[0], "--metrics-secure=false",
		"--pprof-bind-address=" + addresses[1], "--health-probe-bind-address=" + addresses[2],
	}, args...)
	var err error
	m.process, err = start(ctx, "manager", s.options.manager, log, "http://"+addresses[2]+"/readyz",
		[]string{"KUBECONFIG=" + s.env.Kubeconfig()}, args...)
	return m, err
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

// profile begins to write a CPU profile of 5 s of the operator to a file, if profiles were
// requested. The function that it returns waits for the end.
func (s *stage) profile(ctx context.Context, m *manager, file string) (wait func()) {
	if s.options.profile == "" {
		return func() {}
	}
	saved := make(chan error, 1)
	go func() { saved <- m.save(ctx, "profile?seconds=5", s.options.profile, file) }()
	return func() {
		if err := <-saved; err != nil {
			say("no CPU profile: %v", err)
		}
	}
}
