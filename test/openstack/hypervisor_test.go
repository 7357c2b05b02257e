package openstack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// storeSnapshot does the part of a hypervisor in the answer to a request: the simulated one
// of the tests leaves the image of a snapshot without data. An answer to anything else stays.
func storeSnapshot(req *http.Request, sent []byte, resp *http.Response) error {
	if !strings.HasSuffix(req.URL.Path, "/action") || !bytes.Contains(sent, []byte(`"createImage"`)) || resp.StatusCode != http.StatusAccepted {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"image_id"`
	}
	if err := json.Unmarshal(body, &made); err != nil {
		return err
	}
	server := strings.TrimSuffix(req.URL.Path, "/action")
	return admin().storeImage(made.ID, server[strings.LastIndex(server, "/")+1:])
}

// storeImage puts data into the image of a snapshot, once the compute service has ended its
// work on the server.
func (a *administrator) storeImage(image, server string) error {
	for a.taskOf(server) != "" {
		<-time.After(pollTime)
	}
	const format = `[{"op": "replace", "path": "/disk_format", "value": "raw"}, {"op": "replace", "path": "/container_format", "value": "bare"}]`
	if err := a.patchImage(image, format); err != nil {
		return err
	}
	return a.upload(image)
}

// patchImage changes an image, by a JSON patch.
func (a *administrator) patchImage(image, patch string) error {
	target := a.services["image"] + "/images/" + image
	status, _, text, err := a.request(http.MethodPatch, target, strings.NewReader(patch), "application/openstack-images-v2.1-json-patch")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("PATCH %s: %d, %w: %s", target, status, err, text)
	}
	return nil
}

// taskOf returns the task of the compute service on a server; empty for none.
func (a *administrator) taskOf(server string) string {
	var got struct {
		Server struct {
			Task string `json:"OS-EXT-STS:task_state"`
		}
	}
	a.must(http.MethodGet, a.services["compute"]+"/servers/"+server, nil, &got)
	return got.Server.Task
}

// upload puts data into an image.
func (a *administrator) upload(image string) error {
	target := fmt.Sprintf("%s/images/%s/file", a.services["image"], image)
	status, _, text, err := a.request(http.MethodPut, target, bytes.NewReader(make([]byte, 512)), "application/octet-stream")
	if err != nil || status != http.StatusNoContent {
		return fmt.Errorf("PUT %s: %d, %w: %s", target, status, err, text)
	}
	return nil
}

// imagesOf returns the images of a project.
func imagesOf(t testing.TB, p project) []map[string]any {
	t.Helper()
	return admin().list("image", "images", "owner="+p.id)
}

// imageNames returns the names of the images of a project, sorted.
func imageNames(t testing.TB, p project) []string {
	t.Helper()
	names := []string{}
	for _, i := range imagesOf(t, p) {
		names = append(names, fmt.Sprint(i["name"]))
	}
	slices.Sort(names)
	return names
}
