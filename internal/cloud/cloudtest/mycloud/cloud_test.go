// Package mycloud_test is the worked example of docs/cloud-api.md: it runs the
// conformance suite against a cloud that speaks the REST API. The mock cloud
// stands in for that cloud.
package mycloud_test

import (
	"net/http/httptest"
	"testing"

	"github.com/privatecloud/operator/mockcloud"
)

// startMyCloud starts a cloud with labels and power states alone, and returns its URL.
func startMyCloud(t *testing.T) string {
	t.Helper()
	has := map[mockcloud.Capability]bool{}
	for _, name := range mockcloud.AllCapabilities {
		has[name] = name == mockcloud.Labels || name == mockcloud.Power
	}
	mock, err := mockcloud.New(mockcloud.Options{Capabilities: has, Token: "of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mock.Handler())
	t.Cleanup(func() {
		if err := mock.Close(); err != nil {
			t.Errorf("closing the mock cloud: %v", err)
		}
		server.Close()
	})
	return server.URL
}
