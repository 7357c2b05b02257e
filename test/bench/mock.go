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

// callLog is how many calls the mock remembers, more than any part makes.
const callLog = "200000"

// mock is the cloud, in a process of its own: what it needs of the CPU is not the operator's.
type mock struct {
	*process
	url string
}

func startMock(ctx context.Context, o options, folder, name string, args ...string) (*mock, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &mock{url: "http://" + address}
	args = append([]string{"--addr=" + address, "--call-log=" + callLog}, args...)
	m.process, err = start(ctx, name, o.mock, filepath.Join(folder, name+".log"), m.url+"/readyz", nil, args...)
	return m, err
}

// ask makes a call of the mock's own endpoints, which are not counted.
func (m *mock) ask(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.url+path, sent)
	if err != nil {
		return err
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
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
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
}

// calls are those since the last forget, in the order in which they came.
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

// ledger is what has happened in the cloud so far, oldest first.
func (m *mock) ledger(ctx context.Context) ([]mockcloud.LedgerEntry, error) {
	var entries []mockcloud.LedgerEntry
	err := m.ask(ctx, http.MethodGet, "/ledger", nil, &entries)
	return entries, err
}

func (c call) what() string { return c.Method + " " + c.Route }

// poll tells whether the call is part of watching the cloud rather than of one VM's life.
func (c call) poll() bool {
	switch c.what() {
	case "GET /servers", "GET /servers/{id}/status", "GET /capabilities":
		return true
	}
	return false
}

// listings returns the number of calls that each listing took. One that was
// under way when the log began is left out.
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

// behave sets how long the cloud takes to build and to delete a server.
func (m *mock) behave(ctx context.Context, build, remove time.Duration) error {
	err := m.ask(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"buildTime": build.String(), "deleteTime": remove.String()}, nil)
	if err != nil {
		return fmt.Errorf("setting the cloud's behaviour: %w", err)
	}
	return nil
}
