package mockcloud

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// twoNetworks creates networks with the ranges 192.0.2.0/24 and 198.51.100.0/30.
func twoNetworks(t *testing.T, h *harness) (first, second Network) {
	t.Helper()
	first = decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"first","cidr":"192.0.2.0/24","gateway":"192.0.2.1"}`).body)
	second = decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"second","cidr":"198.51.100.0/30","gateway":"198.51.100.1"}`).body)
	return first, second
}

func TestServerWithSeveralInterfaces(t *testing.T) {
	h := start(t, Options{})
	first, second := twoNetworks(t, h)
	body := fmt.Sprintf(`{"name":"web","interfaces":[{"networkId":%q},{"networkId":%q,"addresses":["192.0.2.9"]}]}`, second.ID, first.ID)
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", body).body)
	if s.NetworkID != second.ID {
		t.Errorf("networkId %q, want that of the first interface, %q", s.NetworkID, second.ID)
	}
	want := []Interface{
		{MACAddress: s.Interfaces[0].MACAddress, NetworkID: second.ID, Addresses: []string{"198.51.100.2"}}, // the only free one
		{MACAddress: s.Interfaces[1].MACAddress, NetworkID: first.ID, Addresses: []string{"192.0.2.9"}},
	}
	if diff := cmp.Diff(want, s.Interfaces); diff != "" || s.Interfaces[0].MACAddress == s.Interfaces[1].MACAddress {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
	for _, n := range []Network{first, second} {
		if got := codeIn(t, h.send("DELETE", "/networks/"+n.ID, "")); got != CodeAttached {
			t.Errorf("a deletion of the network %s: %s, want %s", n.Name, got, CodeAttached)
		}
	}
	h.call(204, "DELETE", "/servers/"+s.ID, "")
	for _, n := range []Network{first, second} {
		h.call(204, "DELETE", "/networks/"+n.ID, "")
	}
}

func TestInterfacesThatAreRefused(t *testing.T) {
	h := start(t, Options{})
	first, second := twoNetworks(t, h)
	h.call(201, "POST", "/servers", fmt.Sprintf(`{"name":"holder","interfaces":[{"networkId":%q,"addresses":["192.0.2.9"]}]}`, first.ID))
	on := func(network Network, addresses string) string {
		return fmt.Sprintf(`"interfaces":[{"networkId":%q,"addresses":[%s]}]`, network.ID, addresses)
	}
	for name, tc := range map[string]struct {
		fields string
		status int
		code   string
	}{
		"outside the range":      {on(first, `"198.51.100.2"`), 400, CodeAddressInvalid},
		"the gateway":            {on(first, `"192.0.2.1"`), 400, CodeAddressInvalid},
		"the first of the range": {on(first, `"192.0.2.0"`), 400, CodeAddressInvalid},
		"the last of the range":  {on(second, `"198.51.100.3"`), 400, CodeAddressInvalid},
		"no address":             {on(first, `"web.example.com"`), 400, CodeAddressInvalid},
		"in use":                 {on(first, `"192.0.2.9"`), 409, CodeAddressInUse},
		"asked for twice": {
			fmt.Sprintf(`"interfaces":[{"networkId":%q,"addresses":["192.0.2.10"]},{"networkId":%[1]q,"addresses":["192.0.2.10"]}]`, first.ID), 409, CodeAddressInUse,
		},
		"two addresses":            {on(first, `"192.0.2.10","192.0.2.11"`), 400, CodeInvalid},
		"no network":               {`"interfaces":[{"networkId":"nowhere"}]`, 400, CodeInvalid},
		"without a network":        {`"interfaces":[{}]`, 400, CodeInvalid},
		"none":                     {`"interfaces":[]`, 400, CodeInvalid},
		"together with networkId":  {fmt.Sprintf(`"networkId":%q,`, first.ID) + on(second, ""), 400, CodeInvalid},
		"an unknown field of them": {fmt.Sprintf(`"interfaces":[{"networkId":%q,"mac":"x"}]`, first.ID), 400, CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if got := codeIn(t, h.call(tc.status, "POST", "/servers", `{"name":"web",`+tc.fields+`}`)); got != tc.code {
				t.Errorf("got %s, want %s", got, tc.code)
			}
		})
	}
}

func TestAddressesAreFreeInOtherNetworksAndAfterADeletion(t *testing.T) {
	h := start(t, Options{})
	first, _ := twoNetworks(t, h)
	same := decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"same","cidr":"192.0.2.0/24","gateway":"192.0.2.1"}`).body)
	create := func(name string, n Network) Server {
		return decodeInto[Server](t, h.call(201, "POST", "/servers", fmt.Sprintf(`{"name":%q,"interfaces":[{"networkId":%q,"addresses":["192.0.2.9"]}]}`, name, n.ID)).body)
	}
	holder := create("a", first)
	create("b", same)
	h.call(204, "DELETE", "/servers/"+holder.ID, "")
	create("c", first)
}

// Two creates that ask for one address may both be accepted before either has ended.
func TestAddressThatWasTakenMeanwhileFailsTheOperation(t *testing.T) {
	h := start(t, Options{Capabilities: map[Capability]bool{Operations: true}, Behaviour: Behaviour{OperationTime: Duration(time.Minute)}})
	first, _ := twoNetworks(t, h)
	var operations []string
	for _, name := range []string{"a", "b"} {
		got := decodeInto[map[string]string](t, h.call(202, "POST", "/servers", fmt.Sprintf(`{"name":%q,"interfaces":[{"networkId":%q,"addresses":["192.0.2.9"]}]}`, name, first.ID)).body)
		operations = append(operations, got["operation"])
		h.clock.Advance(time.Second)
	}
	h.clock.Advance(time.Hour)
	ended := decodeInto[struct{ Error *Problem }](t, h.call(200, "GET", "/operations/"+operations[1], "").body)
	if ended.Error == nil || ended.Error.Code != CodeAddressInUse {
		t.Errorf("the second create: %+v, want it to fail with %s", ended.Error, CodeAddressInUse)
	}
}

func TestInterfacesNeedTheirCapabilities(t *testing.T) {
	for name, body := range map[Capability]string{
		Networks:        `{"name":"x","interfaces":[{"networkId":"n"}]}`,
		Interfaces:      `{"name":"x","interfaces":[{"networkId":"n"},{"networkId":"m"}]}`,
		StaticAddresses: `{"name":"x","interfaces":[{"networkId":"n","addresses":["192.0.2.9"]}]}`,
	} {
		h := start(t, Options{Capabilities: map[Capability]bool{name: false}})
		if got := codeIn(t, h.send("POST", "/servers", body)); got != CodeUnsupported {
			t.Errorf("without %s: %s, want %s", name, got, CodeUnsupported)
		}
	}
}
