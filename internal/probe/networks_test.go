package probe

import (
	"net/netip"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) Networks {
	t.Helper()
	networks, err := ParseNetworks(text)
	if err != nil {
		t.Fatalf("ParseNetworks(%q): %v", text, err)
	}
	return networks
}

func TestNetworksAllow(t *testing.T) {
	const everything = "0.0.0.0/0, ::/0"
	for name, test := range map[string]struct {
		networks, address string
		want              bool
	}{
		"no networks":                              {"", "10.0.0.5", false},
		"spaces alone are no networks":             {"  ", "10.0.0.5", false},
		"an address inside":                        {"10.0.0.0/8", "10.0.0.5", true},
		"an address outside":                       {"10.0.0.0/8", "11.0.0.5", false},
		"inside the second of two":                 {"10.0.0.0/8, fd00::/8", "fd00::5", true},
		"one address alone":                        {"10.0.0.5/32", "10.0.0.6", false},
		"IPv6 is not in IPv4 networks":             {"0.0.0.0/0", "2a00::5", false},
		"everything: a private address":            {everything, "192.168.0.5", true},
		"everything: an IPv6 address":              {everything, "2a00::5", true},
		"everything: loopback":                     {everything, "127.0.0.1", false},
		"everything: another loopback":             {everything, "127.9.9.9", false},
		"everything: loopback of IPv6":             {everything, "::1", false},
		"everything: link-local":                   {everything, "169.254.169.254", false},
		"everything: link-local of IPv6":           {everything, "fe80::5", false},
		"everything: multicast":                    {everything, "224.0.0.1", false},
		"everything: multicast of IPv6":            {everything, "ff02::1", false},
		"everything: unspecified":                  {everything, "0.0.0.0", false},
		"everything: unspecified of IPv6":          {everything, "::", false},
		"everything: this network":                 {everything, "0.0.0.1", false},
		"everything: broadcast":                    {everything, "255.255.255.255", false},
		"everything: loopback in the form of IPv6": {everything, "::ffff:127.0.0.1", false},
		"everything: an IPv4 address in IPv6":      {everything, "::ffff:10.0.0.5", false},
		"everything: an IPv4-compatible address":   {everything, "::127.0.0.1", false},
		"everything: link-local through NAT64":     {everything, "64:ff9b::a9fe:a9fe", false},
		"everything: through NAT64 of the network": {everything, "64:ff9b:1::a9fe:a9fe", false},
		"everything: loopback through 6to4":        {everything, "2002:7f00:1::1", false},
		"everything: Teredo":                       {everything, "2001:0:7f00:1::1", false},
		"a network of link-local addresses: never": {"169.254.0.0/16,fe80::/10", "169.254.0.5", false},
		"a network of loopback addresses: never":   {"127.0.0.0/8,::1/128", "::1", false},
		"an address with a zone":                   {everything, "2a00::5%eth0", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustParse(t, test.networks).Allows(netip.MustParseAddr(test.address)); got != test.want {
				t.Errorf("%q allows %s: %t, want %t", test.networks, test.address, got, test.want)
			}
		})
	}
	if mustParse(t, everything).Allows(netip.Addr{}) {
		t.Error("no address is allowed")
	}
}

func TestParseNetworksSaysWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.5":            `"10.0.0.5" is not a network in CIDR notation, such as 10.20.0.0/16`,
		"10.0.0.0/8,":         `"" is not a network in CIDR notation`,
		"10.0.0.0/33":         `"10.0.0.0/33" is not a network`,
		"10.0.0.0/8;fd00::/8": `"10.0.0.0/8;fd00::/8" is not a network`,
		"10.0.0.0/8, 10.1/16": `"10.1/16" is not a network`,
		"10.0.0.5/8":          `"10.0.0.5/8" is not the first address of its network: write 10.0.0.0/8`,
		"::ffff:10.0.0.0/104": `write it as IPv4`,
	} {
		t.Run(text, func(t *testing.T) {
			networks, err := ParseNetworks(text)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want %q in it", err, want)
			}
			if networks.Allows(netip.MustParseAddr("10.0.0.5")) {
				t.Error("what could not be read as a whole allows an address")
			}
		})
	}
}
