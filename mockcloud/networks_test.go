package mockcloud

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNetworkWithAProhibitedNameIsRejected(t *testing.T) {
	h := start(t, Options{})
	if got := codeIn(t, h.call(403, "POST", "/networks", `{"name":"forbidden","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`)); got != CodeNameProhibited {
		t.Errorf("got %s, want %s", got, CodeNameProhibited)
	}
	if got := h.cloud.Networks(); len(got) != 0 {
		t.Errorf("networks %+v, want none", got)
	}
}

func TestNetworksCanBeChangedWithoutTheAPI(t *testing.T) {
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/admin/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`).body)
	h.clock.Advance(time.Second)
	n.CIDR, n.Gateway = "not checked", "either"
	put, err := h.cloud.PutNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	n.UpdatedAt = epoch.Add(time.Second)
	if diff := cmp.Diff([]Network{n}, []Network{put}); diff != "" {
		t.Errorf("PutNetwork (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Network{n}, h.cloud.Networks()); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	h.call(201, "POST", "/servers", `{"name":"web","networkId":"`+n.ID+`"}`)
	h.call(409, "DELETE", "/networks/"+n.ID, "")
	h.call(204, "DELETE", "/admin/networks/"+n.ID, "")
	h.call(404, "DELETE", "/admin/networks/"+n.ID, "")
	h.call(404, "DELETE", "/networks/"+n.ID, "")

	var ops []string
	for _, e := range h.cloud.Ledger() {
		ops = append(ops, e.By+" "+string(e.Op))
	}
	if diff := cmp.Diff([]string{"admin createNetwork", "client create", "admin deleteNetwork"}, ops); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}
