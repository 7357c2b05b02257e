package mockcloud_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// This is the example of docs/mock-cloud.md.
func TestCreateIsHeldUntilItIsReleased(t *testing.T) {
	cloud, err := mockcloud.New(mockcloud.Options{Profile: mockcloud.Core})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud.Handler()) // the REST API; cloud.AdminHandler() has the admin API
	t.Cleanup(func() {
		_ = cloud.Close() // first: it lets held and streaming calls go
		server.Close()
	})
	if err := cloud.SetQuirks(mockcloud.Quirks{ReadLag: mockcloud.Duration(5 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	held, err := cloud.AddFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST"}, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	created := create(t, server.URL, "web") // a call of the client, which waits
	if err := cloud.WaitHeld(t.Context(), held, 1); err != nil {
		t.Fatal(err)
	}
	if err := cloud.ReleaseFault(held); err != nil {
		t.Fatal(err)
	}

	if status := <-created; status != http.StatusCreated {
		t.Errorf("the create ended with %d, want 201", status)
	}
	if servers := cloud.Servers(); len(servers) != 1 {
		t.Errorf("the cloud has %d servers, want 1", len(servers))
	}
}

// create creates a server, and sends the status of the answer: 0 for none.
func create(t *testing.T, url, name string) <-chan int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/servers", strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			status <- 0
			return
		}
		defer func() { _ = answer.Body.Close() }()
		status <- answer.StatusCode
	}()
	return status
}
