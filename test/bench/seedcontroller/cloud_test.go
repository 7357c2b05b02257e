package main

import (
	"net/http/httptest"
	"testing"

	"github.com/privatecloud/operator/mockcloud"
)

func newTestCloud(t *testing.T) (*mockcloud.Cloud, *cloudClient) {
	t.Helper()
	cloud, err := mockcloud.New(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud.Handler())
	t.Cleanup(func() {
		_ = cloud.Close()
		server.Close()
	})
	return cloud, newCloudClient(server.URL, 1)
}

func TestCloudClientCreatesAndDeletesAServer(t *testing.T) {
	_, client := newTestCloud(t)
	if err := client.checkName(t.Context(), "web"); err != nil {
		t.Fatalf("checking a free name: %v", err)
	}
	made, err := client.create(t.Context(), "web")
	if err != nil || made.ID == "" {
		t.Fatalf("create: id %q, %v", made.ID, err)
	}
	if use, err := client.utilization(t.Context(), made.ID); err != nil || use != 50 {
		t.Errorf("utilization: %d, %v, want 50", use, err)
	}
	if err := client.checkName(t.Context(), "web"); err == nil {
		t.Error("checking a taken name: got no error")
	}
	for _, what := range []string{"a server", "a server that is gone"} {
		if err := client.remove(t.Context(), made.ID); err != nil {
			t.Errorf("removing %s: %v", what, err)
		}
	}
}

func TestCreateReturnsAnErrorIfTheAnswerIsLost(t *testing.T) {
	cloud, client := newTestCloud(t)
	fault := mockcloud.Fault{Match: mockcloud.Match{Method: "POST"}, Answer: mockcloud.After, Reset: true}
	if _, err := cloud.AddFault(fault); err != nil {
		t.Fatal(err)
	}

	if made, err := client.create(t.Context(), "web"); err == nil {
		t.Errorf("got %+v and no error", made)
	}
}
