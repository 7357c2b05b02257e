package main

import (
	"strings"
	"testing"
)

func TestInvalidCloudSelectorIsRefusedAtTheStart(t *testing.T) {
	for _, selector := range []string{"shard in", "shard=a b", "{shard: east}", "shard=east,"} {
		t.Run(selector, func(t *testing.T) {
			err := run(t.Context(), flags{namespace: "private-cloud-system", cloudSelector: selector}, nil)
			if err == nil || !strings.Contains(err.Error(), "--cloud-selector") || !strings.Contains(err.Error(), selector) {
				t.Errorf("run ended with %v, want an error that names the flag and its value", err)
			}
		})
	}
}

func TestInvalidProbeNetworksAreRefusedAtTheStart(t *testing.T) {
	for networks, says := range map[string]string{
		"10.0.0.5":            "is not a network in CIDR notation, such as 10.20.0.0/16",
		"10.0.0.0/8 fd00::/8": "is not a network in CIDR notation, such as 10.20.0.0/16",
		"10.0.0.5/8":          "write 10.0.0.0/8",
	} {
		t.Run(networks, func(t *testing.T) {
			err := run(t.Context(), flags{namespace: "private-cloud-system", probeNetworks: networks}, nil)
			if err == nil || !strings.Contains(err.Error(), "--probe-networks") || !strings.Contains(err.Error(), networks) || !strings.Contains(err.Error(), says) {
				t.Errorf("run ended with %v, want an error that names the flag and its value, and %q", err, says)
			}
		})
	}
}
