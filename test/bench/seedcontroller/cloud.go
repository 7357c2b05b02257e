package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// callTimeout is the timeout of one call.
const callTimeout = 30 * time.Second

// cloudClient calls the cloud.
type cloudClient struct {
	url  string
	http *http.Client
}

// newCloudClient returns a client that keeps one connection for each worker.
func newCloudClient(endpoint string, workers int) *cloudClient {
	return &cloudClient{url: endpoint, http: &http.Client{
		Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: workers},
	}}
}

// call sends one call, and reads the answer if its status is 2xx.
func (c *cloudClient) call(ctx context.Context, method, path string, body, into any) (status int, err error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		sent = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, sent)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return answer.StatusCode, err
	case answer.StatusCode >= http.StatusMultipleChoices:
		return answer.StatusCode, fmt.Errorf("%s %s: %s", method, path, answer.Status)
	case into == nil:
		return answer.StatusCode, nil
	}
	return answer.StatusCode, json.Unmarshal(data, into)
}

// checkName returns an error if the name cannot be used.
func (c *cloudClient) checkName(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodGet, "/check/"+url.PathEscape(name), nil, nil)
	return err
}

// server is the answer to a create.
type server struct {
	ID string `json:"id"`
	// CPUUtilization is absent if the cloud does not report it here.
	CPUUtilization *int32 `json:"cpuUtilization"`
}

// create makes a server.
func (c *cloudClient) create(ctx context.Context, name string) (server, error) {
	var made server
	_, err := c.call(ctx, http.MethodPost, "/servers", map[string]string{"name": name}, &made)
	return made, err
}

// utilization returns the CPU use of a server in percent.
func (c *cloudClient) utilization(ctx context.Context, id string) (int32, error) {
	var status struct {
		CPUUtilization int32 `json:"cpuUtilization"`
	}
	_, err := c.call(ctx, http.MethodGet, "/servers/"+url.PathEscape(id)+"/status", nil, &status)
	return status.CPUUtilization, err
}

// remove deletes a server. One that does not exist is no error.
func (c *cloudClient) remove(ctx context.Context, id string) error {
	status, err := c.call(ctx, http.MethodDelete, "/servers/"+url.PathEscape(id), nil, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return err
}
