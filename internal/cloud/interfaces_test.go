package cloud_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestInterfacesKeepUsableAddressesInCanonicalForm(t *testing.T) {
	many := make([]string, cloud.MaxAddresses+1)
	interfaces := make([]cloud.Interface, cloud.MaxInterfaces+1)
	for n := range many {
		many[n] = fmt.Sprintf("10.0.0.%d", n+1)
		interfaces[n] = cloud.Interface{Addresses: many[n : n+1]}
	}
	for name, c := range map[string]struct {
		of, want []cloud.Interface
		text     cloud.Interfaces
		invalid  bool
	}{
		"none": {},
		"two interfaces": {
			of:   []cloud.Interface{{MAC: "FA-16-3E-00-00-01", Addresses: []string{"10.0.0.5", "FD00:0::5"}}, {MAC: "fa:16:3e:00:00:02"}},
			want: []cloud.Interface{{MAC: "fa:16:3e:00:00:01", Addresses: []string{"10.0.0.5", "fd00::5"}}, {MAC: "fa:16:3e:00:00:02"}},
			text: "fa:16:3e:00:00:01,10.0.0.5,fd00::5 fa:16:3e:00:00:02",
		},
		"no MAC address": {
			of: []cloud.Interface{{Addresses: []string{"10.0.0.5"}}}, want: []cloud.Interface{{Addresses: []string{"10.0.0.5"}}}, text: ",10.0.0.5",
		},
		"addresses of one link, of one host, of groups, of none, and twice": {
			of: []cloud.Interface{{Addresses: []string{"fe80::1%eth0", "169.254.1.1", "127.0.0.1", "::1", "224.0.0.1", "0.0.0.0", "::", "255.255.255.255",
				"10.0.0.5", "::ffff:10.0.0.5"}}},
			want: []cloud.Interface{{Addresses: []string{"10.0.0.5"}}}, text: ",10.0.0.5",
		},
		"texts that are no addresses": {
			of:      []cloud.Interface{{MAC: "x", Addresses: []string{"", "10.0.0.5/24", "web-1", "10.0.0.6 10.0.0.7", "10.0.0.8,10.0.0.9"}}, {Addresses: []string{"fd00::5"}}},
			want:    []cloud.Interface{{Addresses: []string{"fd00::5"}}},
			text:    ",fd00::5",
			invalid: true,
		},
		"more addresses than are kept": {
			of: []cloud.Interface{{Addresses: many}}, want: []cloud.Interface{{Addresses: many[:cloud.MaxAddresses]}},
		},
		"more interfaces than are kept": {of: interfaces, want: interfaces[:cloud.MaxInterfaces]},
	} {
		t.Run(name, func(t *testing.T) {
			got, valid := cloud.NewInterfaces(c.of)
			if c.text != "" && got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
			if diff := cmp.Diff(c.want, got.List()); diff != "" {
				t.Errorf("interfaces (-want +got):\n%s", diff)
			}
			if valid == c.invalid {
				t.Errorf("valid: %t, want %t", valid, !c.invalid)
			}
		})
	}
}
