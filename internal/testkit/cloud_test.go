package testkit

import (
	"net/http"
	"testing"

	"github.com/privatecloud/operator/mockcloud"
)

func TestCloudServerKeepsItsAddressAndStateWhenItIsDisconnected(t *testing.T) {
	cloud, err := ServeCloud(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := cloud.PutServer(mockcloud.Server{Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	status := func() (int, error) {
		response, err := http.Get(cloud.URL + "/servers/" + server.ID)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}

	cloud.Disconnect()
	if code, err := status(); err == nil {
		t.Errorf("disconnected: got status %d, want an error", code)
	}
	if err := cloud.Connect(); err != nil {
		t.Fatal(err)
	}
	if code, err := status(); err != nil || code != http.StatusOK {
		t.Errorf("connected again: got status %d and error %v, want %d", code, err, http.StatusOK)
	}
}
