package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// callLog is the size of the call log, which is more than any part needs.
const callLog = "200000"

// mock is the mock cloud, in a process of its own so that its CPU time is separate.
type mock struct {
	*process
	url string
	// admin controls the cloud.
	admin string
}

func startMock(ctx context.Context, o options, folder, name string, args ...string) (*mock, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &mock{url: "http://" + address, admin: "http://" + admin}
	args = append([]string{"--addr=" + address, "--admin-bind-address=" + admin, "--call-log=" + callLog}, args...)
	m.process, err = start(ctx, name, o.mock, filepath.Join(folder, name+".log"), m.url+"/readyz", nil, args...)
	return m, err
}

// ask calls an admin endpoint, which is not in the call log.
func (m *mock) ask(ctx context.Context, method, path string, body, into any) error {
	return send(ctx, method, m.admin+path, "", body, into)
}

// createServer creates a server with a call of the REST API, as the operator does.
func (m *mock) createServer(ctx context.Context, name string, labels map[string]string, key string) (created mockcloud.Server, err error) {
	err = send(ctx, http.MethodPost, m.url+"/servers", key, map[string]any{"name": name, "labels": labels}, &created)
	return created, err
}

// send sends a request with an Idempotency-Key, if key is not empty, and reads the answer.
func send(ctx context.Context, method, url, key string, body, into any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, data)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

// call is one call of the cloud's REST API.
type call struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	Query  string `json:"query"`
	// At is the time of the call.
	At time.Time `json:"at"`
}

// calls returns the calls since the last forget, oldest first.
func (m *mock) calls(ctx context.Context) ([]call, error) {
	var log struct {
		Calls []call `json:"calls"`
	}
	err := m.ask(ctx, http.MethodGet, "/calls", nil, &log)
	return log.Calls, err
}

func (m *mock) forget(ctx context.Context) error {
	return m.ask(ctx, http.MethodDelete, "/calls", nil, nil)
}

// ledger returns the ledger of the cloud, oldest entry first.
func (m *mock) ledger(ctx context.Context) ([]mockcloud.LedgerEntry, error) {
	return m.ledgerSince(ctx, 0)
}

// ledgerSince returns the entries of the ledger after a sequence number.
func (m *mock) ledgerSince(ctx context.Context, seq int) ([]mockcloud.LedgerEntry, error) {
	var entries []mockcloud.LedgerEntry
	err := m.ask(ctx, http.MethodGet, fmt.Sprintf("/ledger?since=%d", seq), nil, &entries)
	return entries, err
}

func (c call) what() string { return c.Method + " " + c.Route }

// poll reports whether the call polls the cloud, rather than being for one VM.
func (c call) poll() bool {
	switch c.what() {
	case "GET /servers", "GET /servers/{id}/status", "GET /capabilities":
		return true
	}
	return false
}

// listings returns the number of calls of each listing. It omits a listing that
// began before the log.
func listings(calls []call) []int {
	var pages []int
	for _, c := range calls {
		switch {
		case c.what() != "GET /servers":
		case !strings.Contains(c.Query, "marker="):
			pages = append(pages, 1)
		case len(pages) > 0:
			pages[len(pages)-1]++
		}
	}
	return pages
}

// behave sets the build and delete times of the cloud.
func (m *mock) behave(ctx context.Context, build, remove time.Duration) error {
	err := m.ask(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"buildTime": build.String(), "deleteTime": remove.String()}, nil)
	if err != nil {
		return fmt.Errorf("setting the cloud's behaviour: %w", err)
	}
	return nil
}
