package network

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Each field of a change is shown in messages and plans, and decides whether a network is in sync.
func TestEachFieldOfAChangeIsAsked(t *testing.T) {
	t.Parallel()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cloud.UpdateNetwork]()) {
		if field.Name == "ExternalNetwork" { // the step Connect changes it alone: see connected
			continue
		}
		var change cloud.UpdateNetwork
		switch value := reflect.ValueOf(&change).Elem().FieldByIndex(field.Index); value.Kind() {
		case reflect.String:
			value.SetString("x")
		case reflect.Slice:
			value.Set(reflect.ValueOf([]string{"x"}))
		default:
			t.Fatalf("%s is a %s, which this test does not know", field.Name, value.Kind())
		}
		if got := asked(change, cloud.Network{}); len(got) != 1 || got[0].to != "x" {
			t.Errorf("%s: asked for %+v, want the field", field.Name, got)
		}
	}
}

// What the cloud says of a network is in the status, from which the forecast makes the network again.
func TestEachFieldOfANetworkIsInTheStatus(t *testing.T) {
	t.Parallel()
	n := cloud.Network{
		ID: "n1", Name: "net", CIDR: "10.0.0.0/24", IPv6CIDR: "fd00:10::/64", Gateway: "10.0.0.1", DNSNameservers: []string{"10.0.0.53"},
		Router: cloud.Router{ID: "r1", ExternalNetwork: "ext-net", ExternalID: "e1"},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cloud.Network]()) {
		switch field.Name {
		case "HalfMade", "Shared", "CreatedAt": // they are no part of the status
		default:
			if reflect.ValueOf(n).FieldByIndex(field.Index).IsZero() {
				t.Errorf("the network has no %s", field.Name)
			}
		}
	}
	net := &pcapi.Network{Status: pcapi.NetworkStatus{NetworkID: n.ID}}
	describeInStatus(net, &observation{}, n)
	if diff := cmp.Diff(n, inStatus(net, n.Name)); diff != "" {
		t.Errorf("the network of the status (-want +got):\n%s", diff)
	}
}
